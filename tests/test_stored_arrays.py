"""Laws of arrays in files: the loop over chunks gives what it gives in memory, and errors come as they were raised."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import stored_arrays
from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.reducers import add, concat
from t3k.kernels.stored_arrays import StoredArray, block_rows, is_stored, reading
from tests.trains import assert_trees_close, assert_trees_equal, quick_jit, small_integers

N_ROWS = 50


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(
        stored_arrays, "BLOCK_BYTES", 20 * 3 * 8
    )  # 20 rows of 3 numbers: three blocks, the last overlaps


def array(seed=0):
    return small_integers(seed)(N_ROWS, 3)


def moments(xs, valid):
    x, weight = xs
    kept = x if valid is None else jnp.where(valid[:, None], x, 0)
    return weight * kept.T @ kept, 2 * x


def reduce_rows(x, weight, chunk_size):
    xs, axes = (x, weight), (0, None)
    return chunk_reduce(moments, xs, (add, concat()), chunk_size=chunk_size, n_rows=N_ROWS, axes=axes)


run = quick_jit(reduce_rows, static_argnums=2)


@pytest.mark.parametrize("chunk_size", [1, 7, 20, 25, N_ROWS, None])
def test_what_is_read_counts_as_what_is_in_memory(chunk_size):
    stored = StoredArray(array())
    with reading(stored) as wait:
        assert_trees_equal(wait(run(stored, 2.0, chunk_size)), run(array(), 2.0, chunk_size))


def test_one_program_serves_all_files_of_equal_shapes():
    before = run._cache_size()
    for seed in (1, 2, 3):
        stored = StoredArray(array(seed))
        with reading(stored) as wait:
            assert_trees_equal(wait(run(stored, 3.0, 6))[1], 2 * array(seed))
    assert run._cache_size() == before + 1


def test_files_and_memory_mix_in_one_loop():
    x, y = array(0), array(1)
    stored = StoredArray(x)

    def products(xs, valid):
        del valid
        return xs["file"] * xs["memory"]

    def chunked(xs):
        return chunk_reduce(products, xs, concat(), chunk_size=7, n_rows=N_ROWS)

    with reading(stored) as wait:
        assert_trees_equal(wait(quick_jit(chunked)({"file": stored, "memory": y})), x * y)


def test_reverse_mode_reads_again():
    stored = StoredArray(array())

    def loss(matrix, x):
        def block(x, valid):
            y = jnp.sin(x @ matrix)
            return jnp.sum(y if valid is None else jnp.where(valid[:, None], y, 0))

        return chunk_reduce(block, x, add, chunk_size=7, n_rows=N_ROWS)

    gradient = quick_jit(jax.grad(loss))
    matrix = np.linspace(-1, 1, 9).reshape(3, 3)
    with reading(stored) as wait:
        assert_trees_close(wait(gradient(matrix, stored)), gradient(matrix, array()))


def test_rows_come_in_the_dtype_asked_for_with_axes_in_front():
    stored = StoredArray(array(), np.float32)[None]
    assert (stored.shape, stored.ndim, stored.dtype) == ((1, N_ROWS, 3), 3, np.float32)
    with reading(stored) as wait:
        rows = wait(jax.jit(lambda x: x.rows(1, 5, 4))(stored))
    assert_trees_equal(rows, array()[None, 5:9].astype(np.float32))


class Broken:
    shape, dtype = (N_ROWS, 3), np.dtype(float)

    def __getitem__(self, index):
        if index[0].start:
            raise ConnectionError("the disk has gone")
        return array()[index]


@pytest.mark.parametrize("again", [False, True])
def test_an_interrupted_read_raises_what_was_raised_there(again):
    stored, fine = StoredArray(Broken()), StoredArray(array())
    for _ in range(1 + again):
        with pytest.raises(ConnectionError, match="the disk has gone"), reading(fine, stored) as wait:
            wait(run(stored, 2.0, 7))


def test_errors_of_something_else_are_left_alone():
    stored = StoredArray(Broken())
    with pytest.raises(ConnectionError), reading(stored) as wait:
        wait(run(stored, 2.0, 7))
    with pytest.raises(KeyError, match="else"), reading(stored):
        raise KeyError("else")


def test_an_array_that_is_gone_is_missed_in_words():
    number = jax.tree.map(np.asarray, StoredArray(array()))
    gc.collect()
    with pytest.raises(Exception, match="its StoredArray must live until the results are ready"):
        jax.block_until_ready(run(number, 2.0, 7))
    with pytest.raises(RuntimeError, match="its StoredArray must live"):
        _ = number.source


def test_it_is_streamed_and_not_indexed():
    with pytest.raises(TypeError, match="load it to index it"):
        StoredArray(array())[3]


def test_what_lies_elsewhere_is_recognized(tmp_path):
    array().tofile(tmp_path / "rows")
    assert is_stored(np.memmap(tmp_path / "rows", shape=(N_ROWS, 3)))
    assert is_stored(Broken())
    for x in (array(), jnp.ones(3), np.float64(3), 3.0, [1.0], None, jax.ShapeDtypeStruct((3,), np.float32)):
        assert not is_stored(x)


def test_blocks_have_as_many_rows_as_their_bytes_allow():
    stored = StoredArray(array())
    assert block_rows([stored, array()], [0, 0]) == 20
    assert block_rows([stored, stored], [0, 0]) == 10
    assert block_rows([array()], [0]) is None
