"""Samples of a dense tensor, and their transpose: residuals back-projected to a dense tensor, streamed over samples.

Along ``w_i + s p_i`` a sample is a polynomial in s. Contracting mode after mode, its Taylor coefficients are ::

    x_t  <-  x_t(.., w_i) + x_{t-1}(.., p_i)

The transpose is what reverse mode makes of that, for one chunk of samples after another, into one dense tensor.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.checks import bind
from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.jets import scale_orders, taylor_scales, total
from t3k.kernels.linalg import contract
from t3k.kernels.reducers import add
from t3k.kernels.types import Array, Cores, Jet, as_tuple

__all__ = ["ambient_probes", "ambient_samples", "ambient_transpose"]


def _contract_last(x: Array, vectors: Array, first: bool) -> Array:
    """Contracts the last mode of ``(w, ..)`` with a vector ``(w, o)`` each, or (`first`) of ``(..)`` for all w."""
    flat = x.reshape(*x.shape[: 0 if first else 1], -1, x.shape[-1])
    y = contract("mo,wo->wm" if first else "wmo,wo->wm", flat, vectors)
    return y.reshape(len(vectors), *x.shape[0 if first else 1 : -1])


def _contract_modes(x: Array, vectors: Sequence[Sequence[Array]], order: int) -> Jet:
    """The jet of all modes of ``x`` but the leading ones left, contracted with those of ``w + s p`` in turn."""
    jet: Jet = (x,)
    for i, pair in enumerate(reversed(vectors)):
        terms = [[_contract_last(y, v, i == 0) for y in jet] for v in pair]
        length = min(order + 1, len(jet) + len(pair) - 1)
        jet = tuple(total(x[t - j] for j, x in enumerate(terms) if 0 <= t - j < len(x)) for t in range(length))
    return jet


def _vectors(at: Cores, pp: Cores | None, shape: Sequence[int], dtype: Any) -> list[tuple[Array, ...]]:
    """The vectors and directions of each mode; an index stands for its unit vector."""
    ww = [jax.nn.one_hot(x, N, dtype=dtype) if x.ndim == 1 else x for x, N in zip(as_tuple(at), shape, strict=True)]
    return [(w,) for w in ww] if pp is None else list(zip(ww, as_tuple(pp), strict=True))


def _derivatives(jet: Jet, order: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """``(t,) + shape``, zero in the orders beyond the jet's length."""
    scaled = scale_orders(jet, taylor_scales(len(jet)))
    return jnp.stack([*scaled, *(jnp.zeros(shape, dtype) for _ in range(order + 1 - len(jet)))])


def ambient_samples(dense: Array, at: Cores, pp: Cores | None, order: int) -> Array:
    """The applies or entries ``(t, w)`` of a dense tensor and their derivatives.

    Args:
      dense: (N_0, .., N_{d-1}).
      at: vectors ``(w, o)``, or integer indices ``(w,)``, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      order: the highest derivative (static).

    Example:
      >>> ambient_samples(jnp.arange(4.0).reshape(2, 2), (jnp.array([0, 1]), jnp.array([1, 1])), None, 0).tolist()
      [[1.0, 3.0]]
    """
    if pp is None and as_tuple(at)[0].ndim == 1:
        return dense[tuple(as_tuple(at))][None]
    jet = _contract_modes(dense, _vectors(at, pp, dense.shape, dense.dtype), order)
    return _derivatives(jet, order, (len(as_tuple(at)[0]),), dense.dtype)


def ambient_probes(dense: Array, ww: Cores, pp: Cores | None, order: int) -> tuple[Array, ...]:
    """The probes of a dense tensor and their derivatives, one array ``(t, w, o)`` per mode.

    Arguments as in `ambient_samples`, with vectors.
    """
    vectors = _vectors(ww, pp, dense.shape, dense.dtype)

    def free(i: int) -> Array:
        # The free mode comes first, so that it is what is left.
        jet = _contract_modes(jnp.moveaxis(dense, i, 0), vectors[:i] + vectors[i + 1 :], order)
        if dense.ndim == 1:
            jet = (jnp.broadcast_to(dense, (len(as_tuple(ww)[0]), *dense.shape)),)
        return _derivatives(jet, order, (len(as_tuple(ww)[0]), dense.shape[i]), dense.dtype)

    return tuple(map(free, range(dense.ndim)))


def ambient_transpose(
    residuals: Any, at: Cores, pp: Cores | None, shape: tuple[int, ...], order: int, *, chunk_size: int | None
) -> Array:
    """The dense tensor ``A^T r`` for the map A of `ambient_samples` or `ambient_probes`.

    Args:
      residuals: ``(t, w)``; or one array ``(t, w, o)`` per mode, for probes.
      at: vectors ``(w, o)``, or integer indices ``(w,)``, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      shape: (N_0, .., N_{d-1}) (static).
      order: the highest derivative (static).
      chunk_size: samples at a time (static); None takes all. A chunk takes the memory of the tensor for each sample.

    Example:
      >>> index = (jnp.array([0, 0]), jnp.array([1, 1]))
      >>> ambient_transpose(jnp.ones((1, 2)), index, None, (1, 2), 0, chunk_size=None).tolist()
      [[0.0, 2.0]]
    """
    by_probes = isinstance(residuals, tuple | list)
    dims = {"t": order + 1, "w": len(as_tuple(at)[0])}
    for i, r in enumerate(residuals if by_probes else [residuals]):
        bind(dims, f"residuals[{i}]", r, "tw" + ("o" if by_probes else ""))
        dims.pop("o", None)
    measure = ambient_probes if by_probes else ambient_samples
    first = residuals[0] if by_probes else residuals

    def block(xs: Any, valid: Array | None) -> Array:
        residuals, at, pp = xs
        if valid is not None:
            residuals = jax.tree.map(lambda r: jnp.where(valid.reshape(1, -1, *(1,) * (r.ndim - 2)), r, 0), residuals)
        zero = jnp.zeros(shape, first.dtype)
        _, pull = jax.vjp(lambda dense: measure(dense, at, pp, order), zero)
        return pull(tuple(residuals) if by_probes else residuals)[0]

    axes = 1, 0, 0
    return chunk_reduce(block, (residuals, at, pp), add, chunk_size=chunk_size, n_rows=dims["w"], axes=axes)
