"""Other formats hold the same tensor."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import assert_trees_close, stacked, tensor

RNG = np.random.default_rng(0)


def test_tensor_trains_and_back():
    x = tensor(tt_ranks=(2, 2, 2, 2))
    tt = x.to_tt()
    assert [G.shape for G in tt] == [(1, 5, 2), (2, 6, 2), (2, 7, 1)]
    assert_trees_close(jnp.einsum("aob,bpc,cqd->opq", *tt), x.to_dense())
    again = t3k.TuckerTensorTrain.from_tt(tt)
    assert_trees_close(again.to_dense(), x.to_dense(), 1e-12)
    assert again.tucker_ranks == (2, 4, 2)
    assert stacked(2).to_tt()[1].shape == (2, 2, 6, 2)


def test_tucker_decompositions_and_back():
    core, factors = RNG.standard_normal((2, 3, 4)), [RNG.standard_normal((k, k + 2)) for k in (2, 3, 4)]
    x = t3k.TuckerTensorTrain.from_tucker(core, factors)
    dense = np.einsum("abc,ao,bp,cq->opq", core, *factors)
    assert_trees_close(x.to_dense(), dense, 1e-12)
    small, bases = x.to_tucker()
    assert_trees_close(jnp.einsum("abc,ao,bp,cq->opq", small, *bases), dense, 1e-12)


@pytest.mark.parametrize("weights", [None, [2, -1, 3]])
def test_cp_decompositions_of_any_rank(weights):
    factors = [RNG.standard_normal((3, n)) for n in (2, 4, 5)]
    x = t3k.TuckerTensorTrain.from_cp(factors, weights)
    expected = np.einsum("r,ro,rp,rq->opq", np.ones(3) if weights is None else weights, *factors)
    assert_trees_close(x.to_dense(), expected, 1e-12)
    one = t3k.TuckerTensorTrain.from_cp([factors[0]], weights)
    assert_trees_close(one.to_dense(), (np.ones(3) if weights is None else np.array(weights)) @ factors[0], 1e-12)


@pytest.mark.parametrize(
    ("tucker_ranks", "tt_ranks", "terms"), [((2, 3, 2), (1, 2, 2, 1), 4), ((2, 3, 1), (2, 2, 3, 1), 2)]
)
def test_sums_of_rank_one_tensors_by_bonds_or_by_tucker_indices(tucker_ranks, tt_ranks, terms):
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6, 7), tucker_ranks, tt_ranks)
    factors = x.to_cp()
    assert [A.shape for A in factors] == [(terms, 5), (terms, 6), (terms, 7)]
    assert_trees_close(jnp.einsum("ro,rp,rq->opq", *factors), x.to_dense(), 1e-12)
    assert_trees_close(t3k.TuckerTensorTrain.from_cp(factors).to_dense(), x.to_dense(), 1e-12)


def test_one_mode_and_stacks_are_sums_too_and_long_ones_are_refused():
    one = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5,), (2,), (1, 1))
    assert_trees_close(one.to_cp()[0][0], one.to_dense(), 1e-12)
    assert stacked(2).to_cp()[1].shape == (2, 4, 6)
    with pytest.raises(ValueError, match="max_terms must be at least 4, the terms of these ranks; got 3"):
        tensor().to_cp(max_terms=3)


BAD: list[Any] = [
    (
        lambda: t3k.TuckerTensorTrain.from_tt([np.ones((1, 2, 3)), np.ones((2, 2, 1))]),
        ValueError,
        r"tt_cores\[1\] must have shape",
    ),
    (
        lambda: t3k.TuckerTensorTrain.from_tucker(np.ones((2, 2)), [np.ones((2, 3)), np.ones((3, 3))]),
        ValueError,
        r"core must have shape \(2, 3\)",
    ),
    (
        lambda: t3k.TuckerTensorTrain.from_cp([np.ones((2, 3)), np.ones((3, 3))]),
        ValueError,
        r"factors\[1\] must have shape \(2, N\)",
    ),
    (
        lambda: t3k.TuckerTensorTrain.from_cp([np.ones((2, 3))], cast(Any, [1, 2, 3])),
        ValueError,
        r"weights must have shape \(2,\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_what_does_not_fit_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
