"""The retraction keeps the ranks, agrees with the straight line to second order, and has the right derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.dense import dense_probe
from t3k.kernels.gauge import orthogonal_gauge
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.retraction import retract, retract_corewise
from t3k.kernels.t3 import ranks_of, to_dense
from t3k.kernels.types import Variations
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
    plus,
    quick_jit,
    times,
    zeros_like,
)

GAUGE = quick_jit(orthogonal_gauge)
RETRACT = quick_jit(retract)


def loss(frame, v, ww):
    return sum(jnp.sum(jnp.sin(z)) for z in dense_probe(to_dense(retract(frame, v)), ww))


LOSS = quick_jit(loss)
GRADIENT = quick_jit(jax.grad(loss, argnums=1))


def probes(name, n_probe=2):
    shape = STRUCTURES[name][0]
    keys = jax.random.split(jax.random.key(11), len(shape))
    return [jax.random.normal(keys[i], (n_probe, N)) for i, N in enumerate(shape)]


@pytest.mark.parametrize("name", NAMES)
def test_retraction_at_0_is_the_point_and_keeps_the_ranks(name):
    x, frame, _ = framed(name)
    point = RETRACT(frame, zero_variations(frame))
    assert_close(dense_t3(*point), dense_t3(*x))
    assert ranks_of(point)[1:] == minimal_ranks(*STRUCTURES[name])


@pytest.mark.parametrize("name", NAMES)
def test_retraction_agrees_with_the_straight_line_to_second_order(name):
    x, frame, v = framed(name)
    v = GAUGE(frame, v)
    array, tangent = dense_t3(*x), dense_tangent(frame, v)
    errors = [
        np.linalg.norm(np.asarray(dense_t3(*RETRACT(frame, times(t, v))) - array - t * tangent)) for t in (1e-2, 1e-3)
    ]
    assert errors[1] < 1.5e-2 * errors[0] + 1e-12 * np.linalg.norm(array)


@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("name", ["one mode", "matrix", "over-large", "a run"])
def test_gradient_through_the_retraction_is_that_of_central_differences(name, size):
    _, frame, v = framed(name)
    v, w, ww, step = times(size, v), draw(5, zero_variations(frame)), probes(name), 1e-5
    near, far = (
        LOSS(frame, plus(v, times(s, w)), ww) - LOSS(frame, plus(v, times(-s, w)), ww) for s in (step, 2 * step)
    )
    difference = (8 * near - far) / (12 * step)  # of fourth order
    assert_close(variation_inner(GRADIENT(frame, v, ww), w), difference, 1e-6)


@pytest.mark.parametrize("name", ["over-large", "a run"])
def test_derivative_at_0_is_the_tangent_itself(name):
    _, frame, v = framed(name)
    zero = zero_variations(frame)
    at_zero = quick_jit(lambda v: jax.jvp(lambda u: to_dense(retract(frame, u)), (zero,), (v,))[1])
    assert_close(at_zero(v), dense_tangent(frame, v), 1e-10)


@pytest.mark.parametrize("name", ["matrix", "over-large"])
def test_retraction_from_zero_is_finite_with_a_finite_gradient(name):
    frame, _ = frame_of(zeros_like(example(name)))
    v, ww = draw(5, zero_variations(frame)), probes(name)
    for tangent in (v, zero_variations(frame)):
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(RETRACT(frame, tangent)))
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(GRADIENT(frame, tangent, ww)))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_dtype_is_kept(dtype):
    _, frame, v = framed("minimal", dtype=dtype)
    assert {leaf.dtype for leaf in jax.tree.leaves(RETRACT(frame, v))} == {jnp.dtype(dtype)}


def test_corewise_retraction_adds_the_variations_to_the_cores():
    x, y = example("over-large"), example("over-large", seed=1)
    assert_close(retract_corewise(x, Variations(*y)), plus(x, y), 0)
