"""Tangents as T3s are the dense tangents; the projection is orthogonal, and the same from cores and from entries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.frames import corewise_frame
from t3k.kernels.gauge import gauge_residual, oblique_gauge
from t3k.kernels.ranks import manifold_dimension
from t3k.kernels.t3 import to_dense, zeros_cores
from t3k.kernels.tangents import project_dense, project_t3, tangent_to_t3, transport
from t3k.kernels.variations import variation_inner, zero_variations
from tests.structures import (
    NAMES,
    STRUCTURES,
    assert_close,
    dense_t3,
    dense_tangent,
    draw,
    example,
    frame_of,
    framed,
    quick_jit,
)

AS_T3 = quick_jit(tangent_to_t3, static_argnames="include_point")
OBLIQUE, RESIDUAL = quick_jit(oblique_gauge), quick_jit(gauge_residual)
TRANSPORT = quick_jit(transport)
PROJECT, PROJECT_DENSE = quick_jit(project_t3), quick_jit(project_dense)


def ambient(name, seed=5):
    """A T3 of other ranks and end bonds than those of the structure."""
    shape = STRUCTURES[name][0]
    d = len(shape)
    return draw(seed, zeros_cores(shape, (2,) * d, (2,) + (3,) * (d - 1) + (1,), jnp.float64))


@pytest.mark.parametrize("name", NAMES)
def test_tangent_as_t3_is_the_sum_of_its_terms(name):
    x, frame, v = framed(name)
    assert_close(dense_t3(*AS_T3(frame, v)), dense_tangent(frame, v))
    assert_close(dense_t3(*AS_T3(frame, v, include_point=True)), dense_t3(*x) + dense_tangent(frame, v))


@pytest.mark.parametrize("name", NAMES)
def test_corewise_tangent_is_the_derivative_by_the_cores(name):
    x = example(name)
    frame, _ = corewise_frame(x)
    v = draw(1, zero_variations(frame))
    value, derivative = jax.jvp(lambda tucker, tt: dense_t3(tucker, tt), tuple(x), tuple(v))
    assert_close(dense_tangent(frame, v), derivative)
    assert_close(dense_t3(*AS_T3(frame, v)), derivative)
    assert_close(dense_t3(*AS_T3(frame, v, include_point=True)), value + derivative)


@pytest.mark.parametrize("name", NAMES)
def test_projection_is_gauged_and_leaves_tangents_alone(name):
    _, frame, v = framed(name)
    projected = PROJECT(frame, AS_T3(frame, v))
    assert RESIDUAL(frame, projected) < 1e-12
    assert_close(projected, OBLIQUE(frame, v))


@pytest.mark.parametrize("name", NAMES)
def test_projection_is_orthogonal(name):
    _, frame, v = framed(name)
    y = ambient(name)
    residual = dense_t3(*y) - dense_tangent(frame, PROJECT(frame, y))
    assert_close(jnp.sum(residual * dense_tangent(frame, v)), 0.0, 1e-11)
    assert_close(variation_inner(PROJECT(frame, y), OBLIQUE(frame, v)), jnp.sum(dense_t3(*y) * dense_tangent(frame, v)))


@pytest.mark.parametrize("name", NAMES)
def test_projection_of_cores_is_that_of_the_entries(name):
    _, frame, _ = framed(name)
    y = ambient(name)
    assert_close(PROJECT(frame, y), PROJECT_DENSE(frame, dense_t3(*y)))


def test_tangent_space_has_the_dimension_of_the_manifold():
    _, frame, _ = framed("over-large")
    size = int(np.prod(STRUCTURES["over-large"][0]))
    shape = STRUCTURES["over-large"][0]
    onto = quick_jit(jax.vmap(lambda e: to_dense(tangent_to_t3(frame, project_dense(frame, e))).reshape(-1)))
    matrix = onto(jnp.eye(size).reshape(size, *shape))
    assert_close(matrix, matrix.T)
    assert_close(jnp.trace(matrix), manifold_dimension(*STRUCTURES["over-large"]))


def test_transport_is_the_projection_on_the_other_tangent_space():
    _, frame, v = framed("minimal")
    other, _ = frame_of(example("minimal", seed=3))
    assert_close(TRANSPORT(frame, v, other), PROJECT_DENSE(other, dense_tangent(frame, v)))
    assert_close(TRANSPORT(frame, v, frame), OBLIQUE(frame, v))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_dtype_is_kept(dtype):
    _, frame, v = framed("minimal", dtype=dtype)
    results = AS_T3(frame, v), PROJECT(frame, AS_T3(frame, v))
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype(dtype)}
