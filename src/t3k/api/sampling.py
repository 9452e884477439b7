"""Applies and entries of tangents with their derivatives, and the transposes, for stacks W, V and C.

They are `t3k.api.probing` for samples that leave no mode free; both kinds share all code but what is checked.
"""

from collections.abc import Callable
from typing import Any

from jax.sharding import NamedSharding

from t3k.api import compiled, validate
from t3k.api.frame import T3Frame
from t3k.api.indices import flat_indices
from t3k.api.probe_vectors import flat_vectors
from t3k.api.tangent_maps import Limits, jacobian, transpose
from t3k.kernels.types import Array, Variations

__all__ = [
    "tv_apply_derivatives",
    "tv_apply_derivatives_transpose",
    "tv_entries_derivatives",
    "tv_entries_derivatives_transpose",
]


def tv_apply_derivatives(
    ww: Any,
    pp: Any,
    variations: Any,
    frame: Any,
    order: int,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> Array:
    """J: the derivatives of a tangent contracted with a vector in every mode, as ``w_i`` moves along ``p_i``.

    Args:
      ww: vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: as in `tv_probe_derivatives`.
      sharding: as in `tv_probe_derivatives`.

    Returns:
      An array ``(order+1,) + W + V + C`` in the dtype of the frame.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> v = t3k.MANIFOLD.randn(jax.random.key(1), x.frame())
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> t3k.tv_apply_derivatives(ww, ww, v.variations, v.frame, 1).shape
      (2, 3)
    """
    limits = Limits(chunk_size, memory, sharding, "apply")
    return jacobian(compiled.sample_jacobian, flat_vectors, ww, pp, variations, frame, order, limits)


def tv_entries_derivatives(
    index: Any,
    pp: Any,
    variations: Any,
    frame: Any,
    order: int,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> Array:
    """J: the derivatives of entries of a tangent, as unit vectors move along ``p_i``.

    Args:
      index: integers, one array W per mode, or one array ``(d,) + W``; negative ones count from the end.
      pp: directions, one array ``W + (N_i,)`` per mode; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: as in `tv_probe_derivatives`.
      sharding: as in `tv_probe_derivatives`.

    Returns:
      An array ``(order+1,) + W + V + C`` in the dtype of the frame.

    Raises:
      TypeError, ValueError, IndexError: if an argument does not fit, before anything is compiled.
    """
    limits = Limits(chunk_size, memory, sharding, "entries")
    return jacobian(compiled.sample_jacobian, flat_indices, index, pp, variations, frame, order, limits)


def tv_apply_derivatives_transpose(
    ztildes: Any,
    ww: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: residuals of `tv_apply_derivatives` back-projected to a gradient, streamed over the samples.

    Args:
      ztildes: residuals ``(order+1,) + W + V + C``.
      ww: vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      sum_over_probes: sum over W, or keep it as leading axes of the gradient.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: as in `tv_probe_derivatives`.
      sharding: as in `tv_probe_derivatives`.

    Returns:
      ``(dU_tildes, dG_tildes)``: per mode ``[W +] V + C + (m_i, N_i)`` and ``[W +] V + C + (rL_i, n_i, rR_{i+1})``, in
      the dtype of the frame. It is the bare transpose: no gauge projection.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> dU, dG = t3k.tv_apply_derivatives_transpose(jnp.ones((2, 3)), ww, ww, x.frame(), 1)
      >>> [u.shape for u in dU]
      [(3, 2, 4), (3, 2, 5)]
    """
    limits = Limits(chunk_size, memory, sharding, "apply")
    return _transpose(flat_vectors, ztildes, ww, pp, frame, order, sum_over_probes, limits)


def tv_entries_derivatives_transpose(
    ztildes: Any,
    index: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: residuals of `tv_entries_derivatives` back-projected to a gradient; no unit vector is formed.

    `index` is as in `tv_entries_derivatives`; all else is as in `tv_apply_derivatives_transpose`.

    Raises:
      TypeError, ValueError, IndexError: if an argument does not fit, before anything is compiled.
    """
    limits = Limits(chunk_size, memory, sharding, "entries")
    return _transpose(flat_indices, ztildes, index, pp, frame, order, sum_over_probes, limits)


def _transpose(
    flatten: Callable[..., Any],
    ztildes: Any,
    at: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool,
    limits: Limits,
) -> Variations:
    def residuals(order: int, samples: tuple[int, ...], frame: T3Frame) -> tuple[Array, tuple[int, ...]]:
        zz, expected = validate.as_array("ztildes", ztildes, frame.dtype).astype(frame.dtype), (order + 1, *samples)
        if zz.shape[: len(expected)] != expected:
            raise ValueError(
                f"ztildes must have shape {expected} + V + C (order+1 = {order + 1}, sample axes {samples}); "
                f"got {zz.shape}"
            )
        return zz, zz.shape[len(expected) :]

    return transpose(compiled.sample_transpose, flatten, residuals, at, pp, frame, order, sum_over_probes, limits)
