"""Arithmetic of T3s is that of dense tensors, for stacks and broadcast ones as well."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, stacked, tensor


def test_arithmetic_is_that_of_dense_tensors():
    x, y = tensor(0), tensor(1)
    assert_trees_close((x + 2 * y - x / 4).to_dense(), x.to_dense() * 0.75 + 2 * y.to_dense())
    assert_trees_close((-x).to_dense(), -x.to_dense())
    assert_trees_close(x.inner(y), jnp.vdot(x.to_dense(), y.to_dense()))
    assert_trees_close(x.distance(y), jnp.linalg.norm((x.to_dense() - y.to_dense()).ravel()))
    assert_trees_close((x + x).round(TUCKER_RANKS, TT_RANKS).to_dense(), 2 * x.to_dense(), 1e-12)
    assert (x + y).round(rtol=1e-9).tucker_ranks == (x + y).minimal().tucker_ranks


def test_scalars_are_added_to_every_entry():
    x = tensor()
    assert_trees_close((x + 1.5).to_dense(), x.to_dense() + 1.5)
    assert_trees_close((np.float64(2) - x).to_dense(), 2 - x.to_dense())
    assert_trees_close((jnp.float64(2) * x - 1).to_dense(), 2 * x.to_dense() - 1)
    assert (x + 1).tucker_ranks == (3, 4, 3)
    assert sum([x, x], start=0 * x).tucker_ranks == (6, 9, 6)
    assert cast(Any, sum([x, x])).tucker_ranks == (4, 6, 4)


def test_norm_is_accurate_where_a_difference_cancels():
    x = tensor()
    assert float((x - x).norm()) < 1e-13 * float(x.norm())
    assert float(x.distance(x)) < 1e-13 * float(x.norm())


def test_the_product_is_that_of_the_entries():
    x, y = tensor(0), tensor(1)
    product = x * y
    assert_trees_close(product.to_dense(), x.to_dense() * y.to_dense())
    assert (product.tucker_ranks, product.tt_ranks) == ((4, 9, 4), (1, 4, 4, 1))


def test_a_product_with_enough_ranks_is_exact_and_with_few_nearly_the_truncated_one():
    x, y = tensor(0), tensor(1)
    exact = (x * y).to_dense()
    assert_trees_close(x.multiply(y, (4, 6, 4), (1, 4, 4, 1)).to_dense(), exact, 1e-11)
    few = (2, 3, 2), (1, 2, 2, 1)
    rounded, best = x.multiply(y, *few, key=jax.random.key(5)), (x * y).round(*few)
    assert (rounded.tucker_ranks, rounded.tt_ranks) == few
    errors = [float(jnp.linalg.norm((z.to_dense() - exact).ravel())) for z in (rounded, best)]
    assert errors[0] < 1.1 * errors[1]
    assert x.multiply(y, tt_ranks=(1, 3, 3, 1)).tt_ranks == (1, 3, 3, 1)


@pytest.mark.parametrize("stacks", [((), (2,)), ((2,), ()), ((2,), (3, 1))])
def test_stacks_are_broadcast_against_each_other(stacks):
    def make(stack, seed):
        n = int(np.prod(stack))
        return jax.tree.map(lambda leaf: leaf.reshape(*stack, *leaf.shape[1:]), stacked(n, seed))

    x, y = make(stacks[0], 0), make(stacks[1], 10)
    common = np.broadcast_shapes(*stacks)
    dense_x, dense_y = (jnp.broadcast_to(z.to_dense(), (*common, *SHAPE)) for z in (x, y))
    assert_trees_close((x + y).to_dense(), dense_x + dense_y)
    assert_trees_close((x * y).to_dense(), dense_x * dense_y, 1e-11)
    assert_trees_close(x.inner(y), (dense_x * dense_y).sum((-1, -2, -3)))
    assert_trees_close(x.distance(y), jnp.sqrt(((dense_x - dense_y) ** 2).sum((-1, -2, -3))))


def test_arithmetic_works_under_transformations():
    x, y = tensor(0), tensor(1)
    value = jax.jit(lambda s: ((x + s) * y).sum())(2.0)
    assert_trees_close(value, ((x.to_dense() + 2) * y.to_dense()).sum())
    gradient = jax.jit(jax.grad(lambda s: (s * x + s * s).inner(y)))(3.0)
    assert_trees_close(gradient, (x.to_dense() * y.to_dense()).sum() + 6 * y.to_dense().sum())


def test_dtypes_are_kept():
    x = tensor(dtype=jnp.bfloat16)
    outputs = [x + 1, 1 - x, x * x, x.distance(x), x.multiply(x, (2, 2, 2), (1, 2, 2, 1)), x / 3]
    assert {leaf.dtype for leaf in jax.tree.leaves(outputs)} == {jnp.dtype(jnp.bfloat16)}


BAD = [
    (
        lambda: tensor() + t3k.TuckerTensorTrain.zeros((5, 6), (2, 2), (1, 2, 1)),
        ValueError,
        r"the other tensor must have shape \(5, 6, 7\); got \(5, 6\)",
    ),
    (lambda: stacked(2) + stacked(3), ValueError, r"must have a stack that broadcasts against \(2,\); got \(3,\)"),
    (lambda: tensor().inner(cast(Any, 3)), TypeError, "must be a TuckerTensorTrain; got int"),
    (lambda: tensor() + cast(Any, "a"), TypeError, "unsupported operand"),
    (lambda: tensor() * np.ones(3), TypeError, "does not support ufuncs"),
    (lambda: tensor() * 1j, TypeError, "factor must be real"),
    (lambda: tensor().multiply(tensor(), (1, 2)), ValueError, "tucker_ranks must have 3 entries; got 2"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_operands_are_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
