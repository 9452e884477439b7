"""QR, SVD and roots stay finite where the textbook ones do not, and keep the dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.linalg import in_working_precision, qr, root, svd
from tests.structures import assert_close


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3), (1, 4)])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_q_is_orthonormal_and_qr_is_the_matrix_at_every_rank(shape, rank):
    factors = jax.random.normal(jax.random.key(0), (shape[0] + shape[1], rank))
    matrix = factors[: shape[0]] @ factors[shape[0] :].T
    Q, R = qr(matrix)
    assert_close(Q.T @ Q, np.eye(min(shape)))
    assert_close(Q @ R, matrix)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_svd_gives_the_left_vectors_and_the_values(shape):
    matrix = jax.random.normal(jax.random.key(1), shape)
    vectors, values = svd(matrix)
    assert_close(values, np.linalg.svd(matrix, compute_uv=False))
    assert_close((vectors * values[None] ** 2) @ vectors.T, matrix @ matrix.T)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_factors_keep_the_dtype(dtype):
    assert {leaf.dtype for leaf in (*qr(jnp.ones((3, 2), dtype)), *svd(jnp.ones((3, 2), dtype)))} == {jnp.dtype(dtype)}


def test_working_precision_rounds_once_at_the_end():
    seen = []

    def double(x, n):
        seen.append(x.dtype)
        return x * n

    doubled = in_working_precision(double)(jnp.ones(2, jnp.bfloat16), 2)
    assert (seen, doubled.dtype) == ([jnp.float32], jnp.bfloat16)


def test_root_has_the_derivative_of_the_square_root_and_none_at_zero():
    assert_close(jax.vmap(jax.grad(root))(jnp.array([0.0, 4.0])), np.array([0.0, 0.25]))
