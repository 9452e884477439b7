"""Laws of jets: products of truncated polynomials, and their transposes."""

import math
from functools import partial

import jax
import numpy as np
import pytest

from t3k.kernels import jets
from tests.trains import assert_trees_close, assert_trees_equal, dot, normal, quick_jit, small_integers

A, K, W = 2, 3, 4  # ranks and probes


def draw_jet(draw, rank, length):
    return tuple(draw(rank, W) for _ in range(length))


def derivatives(jet):
    return tuple(x * math.factorial(t) for t, x in enumerate(jet))


def value(jet, s):
    return sum(x * s**t for t, x in enumerate(jet))


def test_the_product_rule_is_exact_and_symmetric():
    trs = jets.binomial_combine_tensor(5)
    assert trs.dtype == np.int64
    for t in range(6):
        for r in range(6):
            for s in range(6):
                assert trs[t, r, s] == (math.comb(t, r) if r + s == t else 0)
    assert_trees_equal(trs, trs.transpose(0, 2, 1))


def test_lift_is_the_outer_product_over_each_probe():
    draw = normal(0)
    x, u = draw(A, W), draw(K, W)
    assert_trees_equal(quick_jit(jets.lift)(x, u), np.einsum("aw,kw->akw", x, u).reshape(A * K, W))


def test_multiply_is_the_product_of_polynomials():
    draw = normal(1)
    x, u, s = draw_jet(draw, A, 3), draw_jet(draw, K, 2), 0.7
    product = quick_jit(partial(jets.multiply, length=10))(x, u)
    assert len(product) == 4, "degrees add"
    expected = np.einsum("aw,kw->akw", value(x, s), value(u, s)).reshape(A * K, W)
    assert_trees_close(value(product, s), expected)
    assert_trees_equal(quick_jit(partial(jets.multiply, length=2))(x, u), product[:2])


@pytest.mark.parametrize("order", [0, 1, 5])
def test_with_the_product_rule_derivatives_multiply_like_taylor_coefficients(order):
    draw = normal(2)
    x, u = draw_jet(draw, A, order + 1), draw_jet(draw, K, min(order + 1, 2))
    trs = jets.binomial_combine_tensor(order)
    taylor = quick_jit(partial(jets.multiply, length=order + 1))(x, u)
    product = quick_jit(partial(jets.multiply, length=order + 1, trs=trs))(derivatives(x), derivatives(u))
    assert_trees_close(product, derivatives(taylor))


def test_the_product_rule_may_be_traced():
    draw = small_integers(0)
    x, u, trs = draw_jet(draw, A, 3), draw_jet(draw, K, 3), jets.binomial_combine_tensor(2)
    traced = quick_jit(lambda x, u, trs: jets.multiply(x, u, 3, trs))(x, u, trs)
    assert_trees_equal(traced, quick_jit(partial(jets.multiply, length=3, trs=trs))(x, u))


@pytest.mark.parametrize("with_trs", [False, True])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("long", "short"), [(4, 2), (1, 2), (3, 3)])
def test_correlate_is_the_transpose_of_multiply(with_trs, swap, long, short):
    draw = normal(3)
    length = min(4, long + short - 1)
    trs = jets.binomial_combine_tensor(3) if with_trs else None
    x, u = draw_jet(draw, A, long), draw_jet(draw, K, short)
    y = tuple(draw(A * K, W) for _ in range(length))

    @quick_jit
    def transposed(x, u, y):
        product, pull = jax.vjp(lambda x: jets.multiply(x, u, length, trs), x)
        # An adjoint of the lifted product, one row at a time: the row (a, k) of y times u_k.
        rows = [tuple(z.reshape(A, K, W)[:, k] for z in y) for k in range(K)]
        lifted = [jets.correlate(row, tuple(z[k : k + 1] for z in u), long, trs) for k, row in enumerate(rows)]
        swapped = [
            jets.correlate(row, tuple(z[k : k + 1] for z in u), long, trs, swap=True) for k, row in enumerate(rows)
        ]
        return pull(y)[0], jets.add_jets(*(swapped if swap else lifted))

    assert_trees_close(*transposed(x, u, y))


def test_correlate_swaps_the_two_indices():
    draw = normal(4)
    y, u = draw_jet(draw, A, 2), draw_jet(draw, K, 2)
    plain, swapped = quick_jit(lambda y, u: (jets.correlate(y, u, 2), jets.correlate(y, u, 2, swap=True)))(y, u)
    assert_trees_equal(swapped, tuple(np.asarray(x).reshape(A, K, W).swapaxes(0, 1).reshape(-1, W) for x in plain))


def test_the_empty_jet_is_zero():
    x = draw_jet(normal(5), A, 2)
    assert jets.multiply((), x, 3) == ()
    assert jets.multiply(x, (), 3) == ()
    assert jets.correlate((), x, 3) == ()
    assert_trees_equal(jets.add_jets(x, ()), x)


def test_jets_of_different_lengths_add():
    draw = normal(6)
    x, y = draw_jet(draw, A, 3), draw_jet(draw, A, 1)
    assert_trees_equal(quick_jit(jets.add_jets)(x, y), (x[0] + y[0], x[1], x[2]))


def test_scales_are_the_factorials():
    assert jets.taylor_scales(5) == (1, 1, 2, 6, 24)
    x = draw_jet(normal(7), A, 4)
    assert_trees_equal(quick_jit(lambda x: jets.scale_orders(x, jets.taylor_scales(4)))(x), derivatives(x))


def test_a_matrix_acts_on_every_order():
    draw = normal(8)
    matrix, x = draw(5, A), draw_jet(draw, A, 2)
    assert_trees_close(quick_jit(jets.transform)(matrix, x), tuple(matrix @ y for y in x))


def test_arrays_and_jets_are_each_others_inverse_and_missing_orders_are_zero():
    array = normal(9)(3, W, A)

    @quick_jit
    def back(array):
        jet = jets.from_derivatives(array)
        return jets.jet_to_array(jet, 2, (A, W), array), jets.jet_to_array(jet[:1], 2, (A, W), array)

    whole, first = back(array)
    assert_trees_equal(whole, array)
    assert_trees_equal(first, np.concatenate([array[:1], np.zeros_like(array[1:])]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_are_kept(dtype):
    x = (jax.ShapeDtypeStruct((A, W), dtype),) * 2
    trs = jets.binomial_combine_tensor(3)

    def everything(x):
        padded = jets.pad_jet(x, 4, (A, W), x[0])
        scaled = jets.scale_orders(padded, jets.taylor_scales(4))
        return jets.multiply(scaled, x, 4, trs), jets.correlate(scaled, x, 4, trs)

    assert {str(y.dtype) for y in jax.tree.leaves(jax.eval_shape(everything, x))} == {dtype}


def test_the_inner_product_of_a_product_moves_to_the_other_side():
    draw = normal(10)
    x, u, y = draw_jet(draw, A, 3), draw_jet(draw, 1, 2), draw_jet(draw, A, 3)
    product, moved = quick_jit(lambda x, u, y: (jets.multiply(x, u, 3), jets.correlate(y, u, 3)))(x, u, y)
    assert dot(product, y) == pytest.approx(dot(x, moved), rel=1e-13)
