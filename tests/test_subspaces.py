"""The derivative of a dominant subspace is that of its projector, and finite where singular vectors have none."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.linalg import svd
from t3k.kernels.subspaces import subspace
from tests.structures import assert_close


@partial(jax.jit, static_argnums=1)
def dominant(matrix, rank):
    vectors, values = svd(jax.lax.stop_gradient(matrix))
    product = matrix @ (matrix.T @ vectors[:, :rank])
    return subspace(vectors[:, :rank], vectors[:, rank:], values[:rank], values[rank:], product)


@partial(jax.jit, static_argnums=1)
def projector(matrix, rank):
    Q = dominant(matrix, rank)
    return Q @ Q.T


def with_values(values, p=6, q=4):
    left, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (p, q)))
    right, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (q, q)))
    return (left * jnp.array(values)[None]) @ right.T


@pytest.mark.parametrize("values", [[4.0, 3.0, 2.0, 1.0], [3.0, 3.0, 1.0, 1.0], [2.0, 1.0, 0.0, 0.0]])
def test_derivative_of_the_projector_is_that_of_finite_differences(values):
    matrix, direction = with_values(values), jax.random.normal(jax.random.key(2), (6, 4))
    step = 1e-5
    difference = (projector(matrix + step * direction, 2) - projector(matrix - step * direction, 2)) / (2 * step)
    _, derivative = jax.jvp(lambda A: projector(A, 2), (matrix,), (direction,))
    assert_close(derivative, difference, 1e-7)


@pytest.mark.parametrize("values", [[0.0] * 4, [1.0, 0.0, 0.0, 0.0], [1.0] * 4])
def test_derivative_is_finite_where_the_subspace_is_not_defined(values):
    matrix, direction = with_values(values), jax.random.normal(jax.random.key(2), (6, 4))
    Q, derivative = jax.jvp(lambda A: dominant(A, 2), (matrix,), (direction,))
    assert np.all(np.isfinite(derivative))
    assert_close(Q.T @ derivative, np.zeros((2, 2)))


def test_second_derivatives_are_nan_rather_than_wrong():
    matrix = with_values([4.0, 3.0, 2.0, 1.0])
    second = jax.grad(jax.grad(lambda s: projector(matrix + s * jnp.ones_like(matrix), 2)[0, 0]))(0.0)
    assert np.isnan(second)
