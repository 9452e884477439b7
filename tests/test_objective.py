"""The derivatives of what is fitted: Taylor slopes for every kind, geometry and regularizer."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels.krylov import tree_dot
from t3k.kernels.objective import Objective
from t3k.kernels.variations import random_variations
from tests.fit_problems import DERIVATIVES, GEOMETRIES, data_of, measure, near, sample_of, truth
from tests.trains import quick_jit

STEPS = jnp.asarray([1e-3, 1e-4])


@dataclass(frozen=True)
class SquaredEntries(t3k.Kind):
    """A kind of a user's own, which is not linear."""

    def measure(self, x, sample):
        return x.entries(sample) ** 2


def prepared(kind):
    if kind == "own":
        sample = sample_of("entries")
        return SquaredEntries(chunk_size=13).prepare(near(), sample, jnp.square(data_of("entries")))
    make = getattr(t3k, f"{kind}_kind")
    return make(1, chunk_size=None).prepare(near(), sample_of(kind), data_of(kind), np.linspace(0.5, 1.5, 60))


@dataclass(frozen=True)
class Quartic(t3k.Regularizer):
    """A regularizer of a user's own: the sum of the fourth powers of all entries."""

    def value(self, x):
        return jnp.sum(t3k.TuckerTensorTrain(*x).to_dense() ** 4)


@functools.partial(quick_jit, static_argnums=0)
def taylor(objective, sample, data, x, key):
    """Remainders of the first-order model along a tangent, and <v, H v> against the change of the gradient."""
    frame, loss, gradient = objective.local(x, sample, data)
    v = objective.geometry.project(frame, random_variations(key, frame))
    slope = tree_dot(gradient, v)

    def remainder(t):
        moved = objective.geometry.retract(frame, jax.tree.map(lambda leaf: t * leaf, v))
        return objective.value(moved, sample, data) - loss - t * slope

    return jax.lax.map(remainder, STEPS), tree_dot(v, objective.hessian(frame, sample, v)), slope


CASES = [
    *((kind, geometry, t3k.Tikhonov(0.3)) for kind in (*DERIVATIVES, "own") for geometry in GEOMETRIES),
    ("apply_derivatives", "manifold", None),
    ("apply_derivatives", "manifold", Quartic()),
]


@pytest.mark.parametrize(("kind", "geometry", "regularizer"), CASES)
def test_the_gradient_leaves_a_second_order_remainder(kind, geometry, regularizer):
    kernel, sample, data = prepared(kind)
    objective = Objective(GEOMETRIES[geometry].kernel, kernel, regularizer)
    remainders, curvature, slope = taylor(objective, sample, data, near().cores, jax.random.key(3))
    order = np.log10(abs(remainders[0] / remainders[1]))
    assert 1.8 < order < 2.2, (remainders, slope)
    assert float(curvature) > 0


def test_at_the_truth_the_gauss_newton_hessian_is_the_hessian():
    """Where the residual vanishes so does what the model leaves out, and the remainder is half the curvature."""
    kernel, sample, data = prepared("apply_derivatives")
    objective = Objective(t3k.MANIFOLD.kernel, kernel)
    remainders, curvature, _ = taylor(objective, sample, data, truth().cores, jax.random.key(3))
    assert float(remainders[1]) == pytest.approx(float(STEPS[1] ** 2 * curvature / 2), rel=1e-2)


def test_the_share_of_a_minibatch_scales_the_regularizer_alone():
    kernel, sample, data = prepared("apply_derivatives")
    geometry, cores = t3k.MANIFOLD.kernel, near().cores
    whole, part, none = (
        float(
            Objective(geometry, kernel, t3k.Tikhonov(2.0) if share else None, share or 1.0).value(cores, sample, data)
        )
        for share in (1.0, 0.25, None)
    )
    assert part - none == pytest.approx(0.25 * (whole - none))
    assert whole - none == pytest.approx(float(near().norm()) ** 2)


def test_tikhonov_is_half_the_square_of_the_norm_and_refuses_what_is_no_strength():
    assert float(t3k.Tikhonov(2.0).value(near().cores)) == pytest.approx(float(near().norm()) ** 2)
    for strength in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="strength must be a finite number >= 0"):
            t3k.Tikhonov(strength)


def test_squares_are_the_misfit_mode_by_mode_and_order_by_order():
    kernel, sample, data = prepared("probe_derivatives")
    squares = Objective(t3k.MANIFOLD.kernel, kernel).squares(near().cores, sample, data)
    found = measure("probe_derivatives", near(), sample_of("probe_derivatives"))
    rows = np.linspace(0.5, 1.5, 60)[:, None] ** 2
    expected = [
        [float((rows * np.asarray(z - y)[t] ** 2).sum()) for t in range(2)] for z, y in zip(found, data, strict=True)
    ]
    np.testing.assert_allclose(squares, expected, rtol=1e-10)
