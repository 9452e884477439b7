"""Laws of the loop over chunks: every row counts once, and nothing depends on the chunk."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.chunking import balanced_chunk, check_chunk_size, chunk_reduce
from t3k.kernels.reducers import add, concat
from tests.trains import assert_trees_close, assert_trees_equal, normal, quick_jit, small_integers

N_ROWS = 12
CHUNKS = [None, 1, 4, 5, N_ROWS, N_ROWS + 1, 10 * N_ROWS]


def gram(x, valid):
    return x.T @ (x if valid is None else jnp.where(valid[:, None], x, 0))


def chunked(fun, x, reducer, chunk_size, **kwargs):
    return quick_jit(lambda x: chunk_reduce(fun, x, reducer, chunk_size=chunk_size, n_rows=N_ROWS, **kwargs))(x)


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_chunked_sums_and_rows_equal_dense_ones_bit_for_bit(chunk_size):
    x = small_integers(0)(N_ROWS, 3)
    total, rows = chunked(lambda x, valid: (gram(x, valid), 2 * x), x, (add, concat()), chunk_size)
    assert_trees_equal(total, x.T @ x)
    assert_trees_equal(rows, 2 * x)


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_every_row_is_counted_once(chunk_size):
    ones = np.ones(N_ROWS)
    counts = chunked(
        lambda x, valid: jnp.zeros(N_ROWS).at[x[0]].add(x[1] if valid is None else jnp.where(valid, x[1], 0)),
        (np.arange(N_ROWS), ones),
        add,
        chunk_size,
    )
    assert_trees_equal(counts, ones)


@pytest.mark.parametrize("chunk_size", [None, 1, 5])
def test_no_rows_give_zeros(chunk_size):
    total, rows = chunk_reduce(
        lambda x, valid: (gram(x, valid), x), jnp.zeros((0, 3)), (add, concat()), chunk_size=chunk_size, n_rows=0
    )
    assert_trees_equal(total, np.zeros((3, 3)))
    assert rows.shape == (0, 3)


def test_rows_lie_on_any_axis_and_some_inputs_have_none():
    draw = normal(0)
    xs: Any = {"a": draw(2, N_ROWS), "b": (draw(N_ROWS, 3), draw(3))}
    axes = {"a": 1, "b": (-2, None)}

    def block(xs, valid):
        del valid
        return xs["a"].T @ jnp.ones((2,)) + xs["b"][0] @ xs["b"][1]

    expected = xs["a"].sum(0) + xs["b"][0] @ xs["b"][1]
    assert_trees_close(chunked(block, xs, concat(), 5, axes=axes), expected)


@pytest.mark.parametrize("chunk_size", [1, 4, 5])
def test_reverse_mode_equals_that_of_the_dense_function(chunk_size):
    x = normal(1)(N_ROWS, 3)

    def loss(x, chunk_size):
        total, rows = chunk_reduce(
            lambda x, valid: (gram(x, valid), jnp.sin(x)), x, (add, concat()), chunk_size=chunk_size, n_rows=N_ROWS
        )
        return jnp.sum(total**2) + jnp.sum(rows**3)

    gradient = quick_jit(jax.grad(loss), static_argnames="chunk_size")
    assert_trees_close(gradient(x, chunk_size=chunk_size), gradient(x, chunk_size=None))


def test_the_function_is_traced_once_per_program_size():
    traces = []

    def block(x, valid):
        traces.append(x.shape)
        return gram(x, valid)

    chunked(block, np.ones((N_ROWS, 3)), add, 5)
    assert set(traces) == {(5, 3)}, "the last block is as long as the others"


@pytest.mark.parametrize("n_rows", [1, 2, 7, 100, 1000, 1024, 99_999])
@pytest.mark.parametrize("chunk_size", [1, 5, 32, 100, 128, 300])
def test_balanced_chunks_are_no_larger_than_asked_for_and_no_more_than_needed(n_rows, chunk_size):
    chunk = balanced_chunk(n_rows, chunk_size)
    assert 1 <= chunk <= min(chunk_size, n_rows)
    assert -(-n_rows // chunk) == -(-n_rows // chunk_size), "as many blocks as with the chunk that was asked for"


@pytest.mark.parametrize("chunk_size", [1, 7, np.int64(7), None])
def test_chunk_sizes_that_mean_something_are_taken(chunk_size):
    assert check_chunk_size(chunk_size) == chunk_size
    assert check_chunk_size("auto", auto=True) == "auto"


@pytest.mark.parametrize("chunk_size", [0, -3, "big", "auto"])
def test_chunk_sizes_out_of_range_are_refused(chunk_size):
    with pytest.raises(ValueError, match=r"chunk_size must be an int >= 1, None; got"):
        check_chunk_size(chunk_size)


@pytest.mark.parametrize("chunk_size", [2.5, True, np.True_, [3]])
def test_chunk_sizes_of_another_type_are_refused(chunk_size):
    with pytest.raises(TypeError, match="chunk_size must be an int >= 1, None; got"):
        check_chunk_size(chunk_size)
