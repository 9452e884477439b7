"""Laws of the Lanczos process: Ritz values lie within the spectrum, and are its ends once the space is exhausted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.lanczos import extreme_eigenvalues
from tests.trains import quick_jit


def symmetric(eigenvalues, dtype=np.float64):
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(eigenvalues),) * 2))
    return jnp.asarray(q * np.asarray(eigenvalues) @ q.T, dtype)


def extremes(matrix, steps):
    def run(matrix):
        start = {"x": jnp.ones(2, matrix.dtype), "y": jnp.ones((1, len(matrix) - 2), matrix.dtype)}

        def operator(tree):
            product = matrix @ jnp.concatenate([tree["x"], tree["y"][0]])
            return {"x": product[:2], "y": product[None, 2:]}

        return extreme_eigenvalues(operator, start, steps=steps)

    return tuple(map(float, quick_jit(run)(matrix)))


@pytest.mark.parametrize("steps", [6, 9])
def test_the_ends_of_the_spectrum_are_found_and_further_steps_change_nothing(steps):
    values = [1e-6, 0.5, 0.7, 2.0, 30.0, 400.0]
    np.testing.assert_allclose(extremes(symmetric(values), steps), (1e-6, 400.0), rtol=1e-6)


def test_a_space_that_is_exhausted_early_is_no_obstacle():
    np.testing.assert_allclose(extremes(symmetric([3.0] * 4 + [5.0] * 4), 8), (3.0, 5.0), rtol=1e-12)


def test_fewer_steps_stay_within_the_spectrum_and_dtypes_are_kept():
    low, high = extremes(symmetric(np.linspace(1, 9, 20), np.float32), 4)
    assert 1 - 1e-5 <= low < high <= 9 + 1e-5
    low, _ = jax.eval_shape(lambda x: extreme_eigenvalues(lambda v: v, x, steps=2), jnp.ones(3, jnp.float32))
    assert low.dtype == jnp.float32


def test_what_rounding_adds_outside_a_subspace_does_not_grow():
    values = np.linspace(40, 60, 10)
    matrix = jnp.zeros((20, 20), jnp.float32).at[:10, :10].set(symmetric(values, np.float32))
    inside = jnp.arange(20) < 10
    start = jnp.where(inside, 1.0, 1e-7).astype(jnp.float32)
    low, high = extreme_eigenvalues(lambda x: matrix @ x, start, steps=10, project=lambda x: jnp.where(inside, x, 0))
    np.testing.assert_allclose((low, high), (40, 60), rtol=1e-3)
