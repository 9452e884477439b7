"""Error bars are those of linear regression on the tangent space, and those that noisy data show."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.fit_problems import GEOMETRIES, N_SAMPLES, SHAPE, data_of, sample_of, truth, zeros

INDEX = ([0, 3], [1, 4])
NOISE = 0.05


def entries(x: t3k.TuckerTensorTrain) -> Any:
    return x.entries(INDEX)


@functools.cache
def tangent_basis() -> np.ndarray:
    """An orthonormal basis of the tangent space of rank-2 matrices at the truth, as columns of flat matrices."""
    matrix = np.asarray(truth().to_dense())
    u, _, vt = np.linalg.svd(matrix)
    normal = np.kron(u[:, 2:] @ u[:, 2:].T, vt[2:].T @ vt[2:])
    values, vectors = np.linalg.eigh(np.eye(matrix.size) - normal)
    return vectors[:, values > 0.5]


def covariance(design: np.ndarray) -> np.ndarray:
    """That of the flat tensor, for noise of variance 1 in every row of the design."""
    basis = tangent_basis()
    reduced = design @ basis
    return basis @ np.linalg.pinv(reduced.T @ reduced) @ basis.T


def applies() -> np.ndarray:
    left, right = map(np.asarray, sample_of("apply"))
    return np.einsum("wi,wj->wij", left, right).reshape(N_SAMPLES, -1)


def bars(geometry: Any = t3k.MANIFOLD, quantity: Any = entries, **settings: Any) -> t3k.ErrorBars:
    given = {"noise": NOISE, "n_draws": 0, **settings}
    return t3k.error_bars(geometry, "apply", sample_of("apply"), data_of("apply"), truth(), quantity, **given)


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES.keys())
def test_standard_errors_are_those_of_regression_on_the_tangent_space(geometry):
    found = bars(geometry)
    at = np.ravel_multi_index(INDEX, SHAPE)
    np.testing.assert_allclose(found.values, truth().entries(INDEX), rtol=1e-12)
    np.testing.assert_allclose(found.standard_errors, NOISE * np.sqrt(np.diag(covariance(applies()))[at]), rtol=1e-5)
    assert np.all(found.converged)


def test_the_error_of_the_whole_tensor_is_estimated():
    found = bars(quantity=None, n_draws=200)
    expected = NOISE * np.sqrt(np.trace(covariance(applies())))
    assert found.total is not None
    assert found.total_spread is not None
    assert abs(found.total - expected) < 4 * found.total_spread < 0.3 * expected
    assert "error of the whole tensor" in str(found)


def test_noisy_fits_scatter_as_the_bars_say():
    rng, fits = np.random.default_rng(1), 64
    data = np.asarray(data_of("apply")) + NOISE * rng.standard_normal((fits, N_SAMPLES))
    x_fits, _ = t3k.fit_many(t3k.MANIFOLD, "apply", sample_of("apply"), data, truth(), in_axes=(None, 0, None))
    scatter = np.std(np.asarray(x_fits.entries(INDEX)), axis=-1)
    # The standard deviation of 64 draws is itself uncertain by a factor of 1 +- 1 / sqrt(128).
    np.testing.assert_allclose(scatter, bars().standard_errors, rtol=4 / np.sqrt(2 * fits))


def test_the_noise_is_estimated_by_the_residuals():
    data = np.asarray(data_of("apply")) + NOISE * np.random.default_rng(2).standard_normal(N_SAMPLES)
    x, _ = t3k.newton_cg(t3k.MANIFOLD, "apply", sample_of("apply"), data, truth())
    found = t3k.error_bars(t3k.MANIFOLD, "apply", sample_of("apply"), data, x, n_draws=0)
    assert abs(found.noise / NOISE - 1) < 4 / np.sqrt(2 * N_SAMPLES)


def test_what_was_not_measured_is_not_determined_and_says_so():
    index = tuple(np.meshgrid(np.arange(3), np.arange(5), indexing="ij"))  # nothing of the last row
    found = t3k.error_bars(
        t3k.MANIFOLD, "entries", index, truth().entries(index), truth(), entries, noise=NOISE, n_draws=0
    )
    assert np.asarray(found.converged).tolist() == [True, False]
    assert str(found).endswith("or more")


def test_weights_and_regularizers_count_as_in_a_fit():
    alone = bars().standard_errors
    np.testing.assert_allclose(bars(weight=2.0).standard_errors, alone / 2, rtol=1e-5)
    assert np.all(np.asarray(bars(regularizer=t3k.Tikhonov(1.0)).standard_errors) < alone)


def test_what_does_not_fit_is_refused():
    few: Any = tuple(w[:3] for w in sample_of("apply"))
    with pytest.raises(
        ValueError, match=r"noise must be given where there are no more equations \(3\) than parameters"
    ):
        t3k.error_bars(t3k.MANIFOLD, "apply", few, jnp.ones(3), zeros())
    with pytest.raises(ValueError, match="n_draws must be an int >= 0; got -1"):
        bars(n_draws=-1)
    with pytest.raises(ValueError, match="max_cg must be ints >= 1"):
        bars(max_cg=0)
