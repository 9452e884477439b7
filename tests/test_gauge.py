"""The gauge: both ways into it end in it, one is an orthogonal projection, the other keeps the tangent."""

import jax
import jax.numpy as jnp
import pytest

from t3k.kernels.gauge import gauge_residual, oblique_gauge, orthogonal_gauge
from t3k.kernels.variations import variation_inner, zero_variations
from tests.structures import NAMES, assert_close, dense_tangent, draw, framed, quick_jit

ORTHOGONAL, OBLIQUE, RESIDUAL = quick_jit(orthogonal_gauge), quick_jit(oblique_gauge), quick_jit(gauge_residual)


@pytest.mark.parametrize("gauge", [ORTHOGONAL, OBLIQUE])
@pytest.mark.parametrize("name", NAMES)
def test_gauged_coordinates_satisfy_the_gauge_and_stay(name, gauge):
    _, frame, v = framed(name)
    gauged = gauge(frame, v)
    assert RESIDUAL(frame, gauged) < 1e-13
    assert_close(gauge(frame, gauged), gauged)


def test_random_coordinates_are_not_gauged():
    _, frame, v = framed("minimal")
    assert RESIDUAL(frame, v) > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_orthogonal_gauge_is_self_adjoint(name):
    _, frame, v = framed(name)
    w = draw(9, zero_variations(frame))
    assert_close(variation_inner(ORTHOGONAL(frame, v), w), variation_inner(v, ORTHOGONAL(frame, w)))


@pytest.mark.parametrize("name", NAMES)
def test_oblique_gauge_keeps_the_tangent(name):
    _, frame, v = framed(name)
    assert_close(dense_tangent(frame, OBLIQUE(frame, v)), dense_tangent(frame, v))


@pytest.mark.parametrize("name", NAMES)
def test_inner_product_of_gauged_coordinates_is_that_of_the_tangents(name):
    _, frame, v = framed(name)
    v, w = OBLIQUE(frame, v), ORTHOGONAL(frame, draw(9, zero_variations(frame)))
    assert_close(variation_inner(v, w), jnp.sum(dense_tangent(frame, v) * dense_tangent(frame, w)))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_gauges_keep_the_dtype(dtype):
    _, frame, v = framed("minimal", dtype=dtype)
    results = ORTHOGONAL(frame, v), OBLIQUE(frame, v), RESIDUAL(frame, v)
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype(dtype)}
