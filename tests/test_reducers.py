"""Laws of reducers: what sums and concatenations of chunks are equal to."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.reducers import add, compensated_add, concat
from tests.trains import assert_trees_equal, normal, quick_jit


def masked_sum(rows, valid):
    return add.of_rows(rows, valid)


def error_of_sum(reducer, chunk_size):
    """The relative error of a float32 sum of many numbers of one sign."""
    rows = np.random.default_rng(0).uniform(0.5, 1.5, (200_000, 2)).astype(np.float32)
    total = quick_jit(lambda rows: chunk_reduce(masked_sum, rows, reducer, chunk_size=chunk_size, n_rows=len(rows)))(
        rows
    )
    exact = rows.astype(np.float64).sum(0)
    return float(np.max(np.abs(np.asarray(total, np.float64) - exact) / exact))


@pytest.mark.parametrize("chunk_size", [3, 16])
def test_compensated_sums_round_once_whatever_the_chunk(chunk_size):
    # Half a unit in the last place of the result, and the rounding within one chunk's own sum, which is unbiased.
    assert error_of_sum(compensated_add, chunk_size) < 2 * np.finfo(np.float32).eps


def test_plain_sums_lose_what_compensated_ones_keep():
    assert error_of_sum(add, 3) > 10 * error_of_sum(compensated_add, 3)


def test_a_compensated_sum_keeps_what_cancels():
    values = jnp.asarray([1.0, 1e8, -1e8, 2.0], jnp.float32)
    total = quick_jit(lambda x: chunk_reduce(masked_sum, x, compensated_add, chunk_size=1, n_rows=4))(values)
    assert float(total) == 3.0


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("chunk_size", [None, 2, 5])
def test_concat_puts_rows_in_place_on_any_axis(axis, chunk_size):
    rows = normal(0)(7, 2, 3)

    def run(rows):
        def block(rows, valid):
            return concat(axis).of_rows(rows, valid)

        return chunk_reduce(block, rows, concat(axis), chunk_size=chunk_size, n_rows=7)

    assert_trees_equal(quick_jit(run)(rows), np.moveaxis(rows, 0, axis))


def test_every_output_has_its_own_reducer():
    rows = np.arange(7.0)

    def block(rows, valid):
        total = add.of_rows(rows, valid)
        return {"sums": (total, total), "rows": rows, "squares": [rows**2]}

    reducers = {"sums": (add, compensated_add), "rows": concat(), "squares": concat(0)}
    result = quick_jit(lambda x: chunk_reduce(block, x, reducers, chunk_size=3, n_rows=7))(rows)
    assert_trees_equal(result, {"sums": (21.0, 21.0), "rows": rows, "squares": [rows**2]})


def test_one_reducer_serves_a_whole_tree():
    def block(rows, valid):
        total = add.of_rows(rows, valid)
        return {"a": total, "b": (2 * total,)}

    result = chunk_reduce(block, jnp.arange(5), add, chunk_size=2, n_rows=5)
    assert_trees_equal(result, {"a": 10, "b": (20,)})


def test_reducers_hash_and_compare_by_value():
    for reducer in (add, compensated_add, concat(1)):
        for twin in (copy.deepcopy(reducer), pickle.loads(pickle.dumps(reducer))):
            assert twin == reducer
            assert hash(twin) == hash(reducer)
    assert len({add, compensated_add, concat(0), concat(1)}) == 4


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_dtypes_are_kept(dtype):
    rows = jax.ShapeDtypeStruct((7, 2), dtype)
    reducers = (add, compensated_add, concat())

    def run(rows):
        return chunk_reduce(lambda x, valid: (x[0], x[0], x), rows, reducers, chunk_size=3, n_rows=7)

    assert [str(x.dtype) for x in jax.eval_shape(run, rows)] == [dtype] * 3
