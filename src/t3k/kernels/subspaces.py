"""Dominant subspaces with a derivative that is finite whatever the singular values.

Truncation keeps the r dominant left singular vectors Q of a matrix A. Differentiating QR or SVD fails exactly where a
retraction is differentiated, at rank-deficient A with repeated (zero) singular values, because individual singular
vectors have no derivative there. The subspace does have one as long as the last kept singular value s_r exceeds the
first discarded one t_1, and the truncated tensor depends on nothing else. So the vectors are computed without a
derivative, and given that of the invariant subspace of the Gram matrix A A^T, in the gauge Q^T dQ = 0 (first-order
perturbation theory; Stewart and Sun, "Matrix perturbation theory", 1990, ch. V)::

    D = d(A A^T) Q        dQ = Q2 [ (Q2^T D)_ji / (s_i^2 - t_j^2) ]  +  (1 - Q Q^T - Q2 Q2^T) D / s_i^2

with Q2 the discarded vectors of the range. Vanishing denominators belong to a kept singular value that is zero or equal
to a discarded one: there the truncation is not differentiable, and that term is taken as 0.

Only the product ``(A A^T) Q`` enters, so a factored Gram matrix is never formed. The derivative is right to first
order; second derivatives come out as NaN, rather than wrong in silence.
"""

import jax
import jax.numpy as jnp

from t3k.kernels.linalg import HIGHEST
from t3k.kernels.types import Array

__all__ = ["subspace"]


@jax.custom_jvp
def subspace(basis: Array, complement: Array, kept: Array, discarded: Array, product: Array) -> Array:
    """Returns `basis`, with the derivative of the dominant subspace of a Gram matrix.

    Args:
      basis: Q (p, r), the kept left singular vectors; a constant.
      complement: Q2 (p, c), the discarded ones; a constant.
      kept: (r,), singular values in descending order; a constant.
      discarded: (c,), the others; a constant.
      product: (p, r), the Gram matrix, which carries the derivative, times the constant Q.

    Returns:
      Q (p, r).

    Example:
      >>> A = jnp.array([[2.0, 0.0], [0.0, 1.0]])
      >>> turned = lambda a: subspace(A[:, :1] / 2, A[:, 1:], A[0, :1], A[1, 1:], (A + a) @ (A + a).T @ A[:, :1] / 2)
      >>> jax.jvp(turned, (jnp.zeros((2, 2)),), (jnp.array([[0.0, 0.0], [3.0, 0.0]]),))[1].tolist()
      [[0.0], [2.0]]
    """
    return basis


@subspace.defjvp
def _subspace_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    Q, Q2, kept, discarded, product = primals
    D = _once_differentiable(tangents[-1], product)
    D = D - _matmul(Q, _matmul(Q.T, D))
    inside = _matmul(Q2.T, D)
    beyond = D - _matmul(Q2, inside)
    floor = 8 * jnp.finfo(kept.dtype).eps
    smallest = (floor * kept[0]) ** 2
    gap = kept[None, :] ** 2 - discarded[:, None] ** 2
    turn = inside * _inverse(gap, jnp.maximum(floor * kept[None, :] ** 2, smallest))
    return Q, _matmul(Q2, turn) + beyond * _inverse(kept[None, :] ** 2, smallest)


def _once_differentiable(D: Array, product: Array) -> Array:
    """D, times a 1 whose derivative by `product` is NaN, because the other factors of dQ are taken as constant."""
    return D * (1 + jnp.sqrt(0 * jnp.sum(product)))


def _matmul(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y, precision=HIGHEST)


def _inverse(x: Array, threshold: Array) -> Array:
    """1/x, or 0 where x is no larger than the threshold."""
    usable = x > threshold
    return jnp.where(usable, 1 / jnp.where(usable, x, jnp.ones_like(x)), jnp.zeros_like(x))
