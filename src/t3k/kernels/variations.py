"""Coordinates of tangents as vectors: inner product, norm, zero and random ones.

The coordinates ``(V, H)`` of a tangent in a frame are V_i (m_i, N_i) and H_i (rL_i, n_i, rR_{i+1}). The dot product of
coordinates is the inner product of the corewise geometry, and that of tangents (Hilbert-Schmidt) when the frame is
orthogonal and the coordinates are gauged (`t3k.kernels.gauge`).
"""

from functools import reduce
from operator import add
from typing import cast

import jax
import jax.numpy as jnp

from t3k.kernels.checks import check_frame
from t3k.kernels.linalg import contract, normal_like, root
from t3k.kernels.types import Array, Frame, Variations, like_train

__all__ = ["random_variations", "variation_inner", "variation_norm", "zero_variations"]


def variation_inner(v: Variations, w: Variations) -> Array:
    """The dot product of coordinates; of gauged ones it is the Hilbert-Schmidt inner product of the tangents.

    Args:
      v: V (m, o) and H (a, k, b) each.
      w: the same shapes.

    Returns:
      A scalar.

    Example:
      >>> import jax.numpy as jnp
      >>> v = Variations((jnp.ones((1, 4)),), (jnp.ones((1, 1, 1)),))
      >>> variation_inner(v, v).item()
      5.0
    """
    products = jax.tree.map(lambda x, y: contract("p,p->", x.reshape(-1), y.reshape(-1)), tuple(v), tuple(w))
    return reduce(add, jax.tree.leaves(products))


def variation_norm(v: Variations) -> Array:
    """The square root of ``variation_inner(v, v)``, with derivative 0 at 0.

    Args:
      v: V (m, o) and H (a, k, b) each.

    Returns:
      A scalar.

    Example:
      >>> import jax.numpy as jnp
      >>> variation_norm(Variations((jnp.ones((1, 3)),), (jnp.ones((1, 1, 1)),))).item()
      2.0
    """
    return root(variation_inner(v, v))


def zero_variations(frame: Frame) -> Variations:
    """The coordinates of the zero tangent.

    Args:
      frame: (up, down, left, right), orthogonal or not.

    Returns:
      V (m, o) and H (a, k, b) each, where a is the left bond of L and b the right bond of R.

    Example:
      >>> import jax.numpy as jnp
      >>> U, G = (jnp.ones((2, 4)),), (jnp.ones((1, 2, 1)),)
      >>> [V.shape for V in zero_variations(Frame(U, G, G, G)).tucker]
      [(2, 4)]
    """
    check_frame(*frame)
    tucker = [jnp.zeros((O.shape[1], U.shape[1]), U.dtype) for U, O in zip(frame.up, frame.down, strict=True)]
    bonds = zip(frame.left, frame.right, strict=True)
    tt = [jnp.zeros((L.shape[0], L.shape[1], R.shape[2]), L.dtype) for L, R in bonds]
    return Variations(like_train(tuple(tucker), frame.up), like_train(tuple(tt), frame.left))


def random_variations(key: Array, frame: Frame) -> Variations:
    """Independent standard normal coordinates, not gauged: `orthogonal_gauge` makes a standard normal tangent of it.

    Args:
      key: from `jax.random.key`.
      frame: (up, down, left, right), orthogonal or not.

    Returns:
      V (m, o) and H (a, k, b) each.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> U, G = (jnp.ones((2, 4)),), (jnp.ones((1, 2, 1)),)
      >>> [V.shape for V in random_variations(jax.random.key(0), Frame(U, G, G, G)).tucker]
      [(2, 4)]
    """
    return cast(Variations, normal_like(key, zero_variations(frame)))
