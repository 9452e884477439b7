"""Applies and entries of tangents with their derivatives, and the transposes, for stacks W, V and C.

They are `t3k.api.probing` for samples that leave no mode free; both kinds share all code but what is checked.
"""

from collections.abc import Callable
from typing import Any

import jax

from t3k.api import compiled, validate
from t3k.api.frame import as_frame, as_variations
from t3k.api.indices import flat_indices
from t3k.api.point_sampling import resolve_chunk
from t3k.api.probe_vectors import flat_vectors
from t3k.api.stacks import merge_axes
from t3k.kernels.types import Array, Frame, Variations

__all__ = [
    "tv_apply_derivatives",
    "tv_apply_derivatives_transpose",
    "tv_entries_derivatives",
    "tv_entries_derivatives_transpose",
]


def tv_apply_derivatives(
    ww: Any, pp: Any, variations: Any, frame: Any, order: int, chunk_size: int | str | None = "auto"
) -> Array:
    """J: the derivatives of a tangent contracted with a vector in every mode, as ``w_i`` moves along ``p_i``.

    Args:
      ww: vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.

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
    return _jacobian(flat_vectors, ww, pp, variations, frame, order, chunk_size)


def tv_entries_derivatives(
    index: Any, pp: Any, variations: Any, frame: Any, order: int, chunk_size: int | str | None = "auto"
) -> Array:
    """J: the derivatives of entries of a tangent, as unit vectors move along ``p_i``.

    Args:
      index: integers, one array W per mode, or one array ``(d,) + W``; negative ones count from the end.
      pp: directions, one array ``W + (N_i,)`` per mode; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.

    Returns:
      An array ``(order+1,) + W + V + C`` in the dtype of the frame.

    Raises:
      TypeError, ValueError, IndexError: if an argument does not fit, before anything is compiled.
    """
    return _jacobian(flat_indices, index, pp, variations, frame, order, chunk_size)


def tv_apply_derivatives_transpose(
    ztildes: Any,
    ww: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
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
    return _transpose(flat_vectors, ztildes, ww, pp, frame, order, sum_over_probes, chunk_size)


def tv_entries_derivatives_transpose(
    ztildes: Any,
    index: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
) -> Variations:
    """J^T: residuals of `tv_entries_derivatives` back-projected to a gradient; no unit vector is formed.

    `index` is as in `tv_entries_derivatives`; all else is as in `tv_apply_derivatives_transpose`.

    Raises:
      TypeError, ValueError, IndexError: if an argument does not fit, before anything is compiled.
    """
    return _transpose(flat_indices, ztildes, index, pp, frame, order, sum_over_probes, chunk_size)


def _jacobian(
    flatten: Callable[..., Any], at: Any, pp: Any, variations: Any, frame: Any, order: Any, chunk_size: Any
) -> Array:
    order, frame = validate.as_order(order), as_frame(frame)
    variations = as_variations(variations, frame)
    probes, at, pp = flatten(at, pp, frame.shape, frame.dtype, order)
    points, stack = frame.stack_shape, variations.tucker[0].shape[:-2]
    tangents = stack[: len(stack) - len(points)]
    n_tangent = merge_axes(variations.tucker[0], 0, len(tangents)).shape[0] if tangents else 1
    chunk = resolve_chunk(chunk_size, frame.up, frame.left, order, at[0].shape[0], n_tangent, "jacobian")

    def kernel(v: Variations, f: Frame) -> Array:
        return compiled.sample_jacobian(at, pp, v, f, order, chunk_size=chunk)

    coordinates, cores = variations.cores, frame.cores
    if points:
        kernel = jax.vmap(kernel, out_axes=2)
        cores = merge_axes(cores, 0, len(points))
        coordinates = merge_axes(coordinates, len(tangents), len(points))
    if tangents:
        kernel = jax.vmap(kernel, in_axes=(0, None), out_axes=2)
        coordinates = merge_axes(coordinates, 0, len(tangents))
    return kernel(coordinates, cores).reshape(order + 1, *probes, *stack)


def _residuals(ztildes: Any, order: int, probes: tuple[int, ...], points: tuple[int, ...], dtype: Any) -> Array:
    residual = validate.as_array("ztildes", ztildes, dtype).astype(dtype)
    expected = (order + 1, *probes)
    if residual.shape[: len(expected)] != expected:
        raise ValueError(
            f"ztildes must have shape {expected} + V + C (order+1 = {order + 1}, sample axes {probes}); "
            f"got {residual.shape}"
        )
    stack = residual.shape[len(expected) :]
    if stack[len(stack) - len(points) :] != points:
        raise ValueError(f"the stack of ztildes must end with that of the frame, {points}; got {stack}")
    return residual


def _transpose(
    flatten: Callable[..., Any],
    ztildes: Any,
    at: Any,
    pp: Any,
    frame: Any,
    order: Any,
    sum_over_probes: bool,
    chunk_size: Any,
) -> Variations:
    order, frame = validate.as_order(order), as_frame(frame)
    probes, at, pp = flatten(at, pp, frame.shape, frame.dtype, order)
    points = frame.stack_shape
    zz = _residuals(ztildes, order, probes, points, frame.dtype)
    stack = zz.shape[1 + len(probes) :]
    tangents = stack[: len(stack) - len(points)]
    zz = merge_axes(zz, 1, len(probes))
    n_tangent = merge_axes(zz, 2, len(tangents)).shape[2] if tangents else 1
    chunk = resolve_chunk(chunk_size, frame.up, frame.left, order, at[0].shape[0], n_tangent)

    def kernel(z: Array, f: Frame) -> Variations:
        return compiled.sample_transpose(z, at, pp, f, order, sum_over_samples=sum_over_probes, chunk_size=chunk)

    cores, axis = frame.cores, 0 if sum_over_probes else 1
    if points:
        kernel = jax.vmap(kernel, in_axes=(2, 0), out_axes=axis)
        cores = merge_axes(cores, 0, len(points))
        zz = merge_axes(zz, 2 + len(tangents), len(points))
    if tangents:
        kernel = jax.vmap(kernel, in_axes=(2, None), out_axes=axis)
        zz = merge_axes(zz, 2, len(tangents))
    gradient = kernel(zz, cores)
    lead = stack if sum_over_probes else (*probes, *stack)
    flat = (not sum_over_probes) + bool(tangents) + bool(points)
    return jax.tree.map(lambda g: g.reshape(*lead, *g.shape[flat:]), gradient)
