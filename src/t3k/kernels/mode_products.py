"""The products of a block of rows with the ambient axis o of a mode: all that ever touches arrays of that length.

Rows are probes ``(w, o)`` or residual jets ``z (t, w, o)``, which hold derivatives; jets ``(k, w)`` hold Taylor
coefficients. With E = U_i or V_i, the lift of a jet to the mode is ``z_t = t! E^T x_t``; its transpose is
``D_t = t! E z_t``.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax

from t3k.kernels.jets import pad_jet, scale_orders, taylor_scales, total
from t3k.kernels.types import Array, Jet

__all__ = ["input_jet", "lift_to_mode", "matmul_rows", "pull_residual", "sum_orders"]


#: From so many ambient indices for each Tucker index on, products have the rows first, which is up to twice as fast,
#: and what is left is transposed. The barriers keep the compiler from turning the products around again.
LONG = 32


def _project(matrix: Array, rows: Array) -> Array:
    """``matrix (k, o)`` applied to rows ``(w, o)``: ``(k, w)``."""
    k, size = matrix.shape
    return lax.optimization_barrier(rows @ matrix.T).T if size >= LONG * k else matrix @ rows.T


def _sum_rows(x: Array, rows: Array) -> Array:
    """``x (m, w)`` times ``rows (w, o)``: ``(m, o)``."""
    m, size = x.shape[0], rows.shape[1]
    return jnp.einsum("wm,wo->mo", lax.optimization_barrier(x.T), rows) if size >= LONG * m else x @ rows


def input_jet(matrix: Array, vectors: Sequence[Array]) -> Jet:
    """The jet of ``matrix (w_i + s p_i)``: one or (with a direction) two arrays ``(k, w)``."""
    return tuple(_project(matrix, x) for x in vectors)


def pull_residual(up: Array, z: Array, length: int) -> Jet:
    """``D_t = t! U z_t``: the adjoint of the lift to ``z_t = t! U^T deta_t``, from ``z (t, w, o)``."""
    w = z.shape[1]
    flat = _project(up, z[:length].reshape(length * w, z.shape[2]))
    return scale_orders(tuple(flat[:, t * w : (t + 1) * w] for t in range(length)), taylor_scales(length))


def lift_to_mode(order: int, *pairs: tuple[Array, Jet]) -> Array:
    """``z (t, w, o) = t! sum E^T x_t`` over the pairs (E, x), zero in the orders beyond the jets' length.

    It is one product for all orders and pairs, whose small factor is put together beforehand: z itself is then written
    once.
    """
    rows = []
    for _, jet in pairs:
        k, w = jet[0].shape
        scaled = scale_orders(jet, taylor_scales(len(jet)))
        rows.append(jnp.stack([x.T for x in pad_jet(scaled, order + 1, (k, w), jet[0])]))
    return jnp.concatenate(rows, axis=-1) @ jnp.concatenate([matrix for matrix, _ in pairs])


def matmul_rows(kept: bool, x: Array, rows: Array) -> Array:
    """``x (m, w)`` times ``rows (w, o)``: summed over the rows to ``(m, o)``, or kept as ``(w, m, o)``."""
    return x.T[:, :, None] * rows[:, None, :] if kept else _sum_rows(x, rows)


def sum_orders(jet: Jet, z: Array, kept: bool) -> Array:
    """``sum_t x_t z_t`` for a jet ``(m, w)`` and an array ``(t, w, o)``, summed over the rows too or `kept` apart."""
    if kept:
        return total(matmul_rows(kept, x, z[t]) for t, x in enumerate(jet))
    return _sum_rows(jnp.concatenate(jet, axis=1), z[: len(jet)].reshape(len(jet) * z.shape[1], z.shape[2]))
