"""Retractions: from a tangent back to a T3 of the ranks that the iteration works with.

On the manifold the retraction truncates X + v, a T3 of doubled ranks, to the ranks of X (`t3k.kernels.truncation`). A
truncation within a constant of the best one is a retraction: it agrees with X + t v to O(t^2) (Steinlechner 2016,
"Riemannian optimization for high-dimensional tensor completion"). It is of second order: what a step of the truncation
discards is ``sum_j s_j u_j w_j^T`` of one unfolding, with s_j = O(t^2) and u_j, w_j orthogonal to the dominant
subspaces of X + t v, which are those of X up to O(t). So its projection on the tangent space at X, which is within that
of the matrices of the rank of this unfolding, is O(t^3), and the curve ``t -> retract(t v)`` has no acceleration along
the manifold (Absil, Malick, "Projection-like retractions on matrix manifolds", SIAM J. Optim. 22, 2012).

Corewise, cores live in a vector space.
"""

import jax

from t3k.kernels.tangents import tangent_to_t3
from t3k.kernels.truncation import truncate
from t3k.kernels.types import Frame, T3Cores, Variations

__all__ = ["retract", "retract_corewise"]


def retract(frame: Frame, v: Variations) -> T3Cores:
    """The point on the manifold that the tangent v leads to. Jittable; first derivatives by v are right, at 0 too.

    Args:
      frame: an orthogonal frame.
      v: V (m, o) and H (a, k, b) each, gauged or not.

    Returns:
      A T3 of the ranks of the frame, with orthonormal rows in U and left orthogonal G but for the last one.

    Example:
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import ranks_of, zeros_cores
      >>> from t3k.kernels.variations import zero_variations
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> ranks_of(retract(frame, zero_variations(frame)))
      ((4, 5), (2, 2), (1, 2, 1))
    """
    tt_ranks = [frame.left[0].shape[0], *(L.shape[2] for L in frame.left)]
    return truncate(tangent_to_t3(frame, v, include_point=True), [U.shape[0] for U in frame.up], tt_ranks)


def retract_corewise(cores: T3Cores, v: Variations) -> T3Cores:
    """The cores moved by the variations.

    Args:
      cores: U (k, o) and G (a, k, b) each.
      v: V (k, o) and H (a, k, b) each.

    Returns:
      ``(U + V, G + H)``.

    Example:
      >>> import jax.numpy as jnp
      >>> U, G = (jnp.ones((1, 1)),), (jnp.ones((1, 1, 1)),)
      >>> retract_corewise(T3Cores(U, G), Variations(U, G)).tucker[0].item()
      2.0
    """
    tucker, tt = jax.tree.map(lambda x, y: x + y, tuple(cores), tuple(v))
    return T3Cores(tucker, tt)
