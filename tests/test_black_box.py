"""Cross approximation finds tensors of low rank, says what it asked for, and refuses what is no function of entries."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels.maxvol import maxvol
from tests.api_problems import assert_trees_close, tensor


def entries_of(array):
    return lambda index: np.asarray(array)[index]


def test_a_tensor_of_low_rank_is_found_exactly_with_its_ranks():
    array = np.asarray(tensor().to_dense())
    x, stats = t3k.from_function(entries_of(array), array.shape, rtol=1e-9)
    assert stats.status == "converged"
    assert_trees_close(x.to_dense(), array, 1e-8)
    assert (x.tucker_ranks, x.tt_ranks) == tensor().minimal_ranks


@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
def test_a_smooth_function_is_approximated_to_its_tolerance_from_few_entries(rtol):
    shape = (12, 40, 15, 20)
    asked = 0

    def function(index):
        nonlocal asked
        asked += len(index[0])
        a, b, c, d = (i / N for i, N in zip(index, shape, strict=True))
        return np.exp(-a * b) / (1 + b + c * d) + np.sin(a + 2 * d)

    x, stats = t3k.from_function(function, shape, rtol=rtol)
    exact = function(np.indices(shape))
    asked -= shape[0]
    assert stats.status == "converged"
    assert stats.evaluations == asked < 0.2 * exact.size
    assert np.linalg.norm(x.to_dense() - exact) < 2 * rtol * np.linalg.norm(exact)
    assert stats.error <= rtol


def test_caps_and_sweeps_end_it():
    array = np.random.default_rng(0).standard_normal((5, 6, 5))
    x, stats = t3k.from_function(entries_of(array), array.shape, 1e-6, (2, 3, 3), (1, 2, 3, 1))
    assert (stats.status, x.tucker_ranks, x.tt_ranks) == ("max_ranks", (2, 3, 3), (1, 2, 3, 1))
    _, short = t3k.from_function(entries_of(array), array.shape, 1e-6, max_sweeps=1)
    assert (short.status, short.sweeps) == ("max_sweeps", 1)
    whole, full = t3k.from_function(entries_of(array), array.shape, 1e-9)
    assert full.status == "converged"
    assert_trees_close(whole.to_dense(), array, 1e-8)


@pytest.mark.parametrize("max_sweeps", [2, 3])
def test_sweeps_from_either_end_give_the_same_orientation(max_sweeps):
    array = np.arange(2.0)[:, None, None] + np.arange(3.0)[:, None] ** 2 + 7 * np.arange(4.0)
    x, _ = t3k.from_function(entries_of(array), array.shape, 0.0, max_sweeps=max_sweeps)
    assert_trees_close(x.to_dense(), array, 1e-10)


def test_short_tensors_and_the_zero_tensor_work():
    x, stats = t3k.from_function(lambda index: index[0] ** 2.0, (7,))
    assert_trees_close(x.to_dense(), np.arange(7.0) ** 2, 1e-12)
    zero, stats = t3k.from_function(lambda index: 0.0 * index[0], (4, 5))
    assert (stats.status, float(zero.norm())) == ("converged", 0.0)


def test_a_jitted_function_is_compiled_once_and_its_dtype_is_kept():
    traces = 0

    @jax.jit
    def function(index):
        nonlocal traces
        traces += 1
        return jnp.asarray(sum(index), jnp.float32) + 1

    x, stats = t3k.from_function(function, (6, 7, 8), 1e-4, batch_size=64)
    assert (traces, x.dtype, stats.status) == (1, jnp.float32, "converged")


def test_all_rows_are_small_combinations_of_those_of_largest_volume():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 5)))[0]
    rows, B = maxvol(Q)
    np.testing.assert_allclose(B @ Q[rows], Q, atol=1e-12)
    assert np.abs(B).max() <= 1.05 + 1e-12


BAD: list[Any] = [
    (lambda: t3k.from_function(cast(Any, 3), (2, 2)), TypeError, "function must be callable; got int"),
    (lambda: t3k.from_function(lambda index: 1.0, (2, 2)), ValueError, r"function must return an array of shape \("),
    (lambda: t3k.from_function(lambda i: np.where(i[0] == 1, np.nan, 1), (2, 2)), ValueError, r"got nan at \(1, "),
    (lambda: t3k.from_function(lambda i: 1j * i[0], (2, 2)), TypeError, "the values of function must be real"),
    (lambda: t3k.from_function(lambda i: i[0], ()), ValueError, "at least one mode"),
    (lambda: t3k.from_function(lambda i: i[0], (2, 2), batch_size=0), ValueError, "batch_size must be ints >= 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_what_is_no_function_of_entries_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
