"""Samples of a T3 with no mode left free: applies (contraction with a vector in every mode) and entries.

Both are the left sweep carried through to the end: ``y = sum_b mu_d[b]``, with ``xi_i = U_i w_i`` for an apply and a
column of U_i for an entry. Derivatives along X + s P are the jet of the same sweep.
"""

from typing import Any

import jax.numpy as jnp

from t3k.kernels.checks import check_t3
from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.constants import filled_like
from t3k.kernels.edge_steps import to_right
from t3k.kernels.jets import multiply, pad_jet, scale_orders, taylor_scales, transform
from t3k.kernels.probe_cores import input_jets
from t3k.kernels.reducers import concat
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, Cores, Jet, T3Cores, as_tuple

__all__ = ["apply_derivatives", "entries_derivatives"]


def _left_sweep(tt_cores: tuple[Array, ...], xi: tuple[Jet, ...], order: int) -> Array:
    """The derivatives ``(t, w)`` of the fully contracted train, from the jets that enter its cores."""
    like = xi[0][0]
    shape = tt_cores[0].shape[0], like.shape[1]

    def step(mu: Jet, item: tuple[Jet, Array]) -> tuple[Jet, None]:
        entering, matrix = item
        return transform(matrix, multiply(mu, entering, order + 1)), None

    items = list(zip(xi, map(to_right, tt_cores), strict=True))
    last, _ = sweep_cores(step, pad_jet((filled_like(like, 1, shape),), order + 1, shape, like), items)
    return jnp.stack(scale_orders(tuple(x.sum(axis=0) for x in last), taylor_scales(order + 1)))


def apply_derivatives(x: T3Cores, ww: Cores, pp: Cores | None, order: int, *, chunk_size: int | None = None) -> Array:
    """The derivatives of the contraction of a T3 with ``w_i + s p_i`` in every mode.

    Args:
      x: U (k, o) and G (a, k, b).
      ww: vectors ``(w, o)``, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      order: the highest derivative K (static).
      chunk_size: samples at a time (static); None takes all.

    Returns:
      Array ``(t, w)``.

    Example:
      >>> import jax.numpy as jnp
      >>> x = T3Cores((jnp.eye(2),) * 2, (jnp.ones((1, 2, 1)),) * 2)
      >>> ww = (jnp.ones((1, 2)),) * 2
      >>> apply_derivatives(x, ww, ww, 2)[:, 0].tolist()
      [4.0, 8.0, 8.0]
    """
    tucker, tt = map(as_tuple, x)
    check_t3(tucker, tt)

    def block(xs: Any, valid: Array | None) -> Array:
        del valid
        return _left_sweep(tt, input_jets(tucker, *xs), order)

    xs = as_tuple(ww), None if pp is None else as_tuple(pp)
    return chunk_reduce(block, xs, concat(1), chunk_size=chunk_size, n_rows=xs[0][0].shape[0])


def entries_derivatives(
    x: T3Cores, index: Cores, pp: Cores | None, order: int, *, chunk_size: int | None = None
) -> Array:
    """The entries of a T3 at multi-indices, and their derivatives as unit vectors move along ``p_i``.

    Args:
      x: U (k, o) and G (a, k, b).
      index: integers ``(w,)``, one array per mode, in range.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      order: the highest derivative K (static).
      chunk_size: samples at a time (static); None takes all.

    Returns:
      Array ``(t, w)``.
    """
    tucker, tt = map(as_tuple, x)
    check_t3(tucker, tt)

    def block(xs: Any, valid: Array | None) -> Array:
        del valid
        index, pp = xs
        columns = tuple((U[:, j],) for U, j in zip(tucker, index, strict=True))
        moved = ((),) * len(tucker) if pp is None else input_jets(tucker, pp, None)
        return _left_sweep(tt, tuple(a + b for a, b in zip(columns, moved, strict=True)), order)

    xs = as_tuple(index), None if pp is None else as_tuple(pp)
    return chunk_reduce(block, xs, concat(1), chunk_size=chunk_size, n_rows=xs[0][0].shape[0])
