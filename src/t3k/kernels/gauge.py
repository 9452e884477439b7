"""The gauge of variations in an orthogonal frame, and two ways into it.

Many coordinates (V, H) give one tangent. Those in the gauge ::

    V_i U_i^T = 0  for all i             sum_ak L_i[a,k,b] H_i[a,k,c] = 0  for i < d-1

are unique, and the 2d terms of the tangent are orthogonal to each other, so that the Hilbert-Schmidt inner product of
two tangents is the plain dot product of their coordinates. There are two ways into the gauge:

* *orthogonal*: drop what violates it. This is the orthogonal projection of coordinates, and changes the tangent. It is
  what turns the derivative of a function by its coordinates into its Riemannian gradient.
* *oblique*: move what violates it to where it is allowed, keeping the tangent. ``V_i U_i^T`` moves to H_i through O_i,
  and then ``X = L_i^T H_i`` to the next core, because ``[.. L_i X, R_{i+1} ..] = [.. L_i, X R_{i+1} ..]``.

Letters as in `t3k.kernels.types`; d is the right bond of L, c that of H.
"""

import jax.numpy as jnp

from t3k.kernels.checks import check_variations
from t3k.kernels.linalg import contract
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, Frame, Variations, like_train
from t3k.kernels.variations import variation_norm

__all__ = ["gauge_residual", "oblique_gauge", "orthogonal_gauge"]


def orthogonal_gauge(frame: Frame, v: Variations) -> Variations:
    """The orthogonal projection of coordinates on the gauge: ``V <- V - (V U^T) U``, ``H <- H - L (L^T H)``.

    Args:
      frame: an orthogonal frame.
      v: V (m, o) and H (a, k, b) each.

    Returns:
      Gauged coordinates, in general of another tangent.

    Example:
      >>> import jax
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import random_cores
      >>> from t3k.kernels.variations import random_variations
      >>> frame, point = orthogonal_frame(random_cores(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1)))
      >>> v = orthogonal_gauge(frame, random_variations(jax.random.key(1), frame))
      >>> bool(gauge_residual(frame, v) < 1e-5)
      True
    """
    _, modes = sweep_cores(_orthogonal_step, (), _modes(frame, v))
    return _like(v, modes)


def _modes(frame: Frame, v: Variations) -> list[tuple[Array, ...]]:
    """U, O, L, R, V, H of every mode; L is zero at the last one, where the gauge asks nothing of H."""
    check_variations(*v, frame)
    left = [*frame.left[:-1], jnp.zeros_like(frame.left[-1])]
    return list(zip(frame.up, frame.down, left, frame.right, *v, strict=True))


def _like(v: Variations, modes: tuple[tuple[Array, Array], ...]) -> Variations:
    tucker, tt = tuple(V for V, _ in modes), tuple(H for _, H in modes)
    return Variations(like_train(tucker, v.tucker), like_train(tt, v.tt))


def _orthogonal_step(carry: tuple[()], item: tuple[Array, ...]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, _, L, _, V, H = item
    along_up, along_left = contract("mo,ko->mk", V, U), contract("akd,akc->dc", L, H)
    return carry, (V - contract("mk,ko->mo", along_up, U), H - contract("akd,dc->akc", L, along_left))


def oblique_gauge(frame: Frame, v: Variations) -> Variations:
    """Gauged coordinates of the same tangent.

    Args:
      frame: an orthogonal frame.
      v: V (m, o) and H (a, k, b) each.

    Returns:
      The only coordinates of the tangent that satisfy the gauge.

    Example:
      >>> import jax
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import random_cores
      >>> from t3k.kernels.variations import random_variations
      >>> frame, point = orthogonal_frame(random_cores(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1)))
      >>> v = oblique_gauge(frame, random_variations(jax.random.key(1), frame))
      >>> bool(gauge_residual(frame, v) < 1e-5)
      True
    """
    carry = jnp.zeros((frame.left[0].shape[0], frame.right[0].shape[0]), frame.left[0].dtype)
    _, modes = sweep_cores(_oblique_step, carry, _modes(frame, v))
    return _like(v, modes)


def _oblique_step(X: Array, item: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
    """Along U to H through O; what comes in as X R is added; along L to the next core."""
    U, O, L, R, V, H = item
    along_up = contract("mo,ko->mk", V, U)
    H = H + contract("mk,amb->akb", along_up, O) + contract("ae,ekb->akb", X, R)
    X = contract("akd,akc->dc", L, H)
    return X, (V - contract("mk,ko->mo", along_up, U), H - contract("akd,dc->akc", L, X))


def gauge_residual(frame: Frame, v: Variations) -> Array:
    """How far the coordinates are from the gauge: the norm of all ``V_i U_i^T`` and ``L_i^T H_i``.

    Args:
      frame: an orthogonal frame.
      v: V (m, o) and H (a, k, b) each.

    Returns:
      A scalar, 0 in the gauge.

    Example:
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import zeros_cores
      >>> from t3k.kernels.variations import zero_variations
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> gauge_residual(frame, zero_variations(frame)).item()
      0.0
    """
    _, violations = sweep_cores(_violation_step, (), _modes(frame, v))
    return variation_norm(Variations(*zip(*violations, strict=True)))


def _violation_step(carry: tuple[()], item: tuple[Array, ...]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, _, L, _, V, H = item
    return carry, (contract("mo,ko->mk", V, U), contract("akd,akc->dc", L, H))
