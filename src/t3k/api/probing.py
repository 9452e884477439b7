"""The derivative probe map of tangents and its transpose, for stacks of probes W, tangents V and base points C."""

from typing import Any

import jax
from jax.sharding import NamedSharding

from t3k.api import compiled, validate
from t3k.api.frame import as_frame, as_variations
from t3k.api.point_sampling import resolve_chunk
from t3k.api.probe_vectors import flat_vectors
from t3k.api.stacks import merge_axes
from t3k.kernels.sharded import n_shards, row_sharding
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import Array, Frame, Variations

__all__ = ["tv_probe_derivatives", "tv_probe_derivatives_transpose"]


def tv_probe_derivatives(
    ww: Any,
    pp: Any,
    variations: Any,
    frame: Any,
    order: int,
    chunk_size: int | str | None = "auto",
    *,
    sharding: NamedSharding | None = None,
) -> tuple[Array, ...]:
    """J: the derivatives of the probes of a tangent, as ``w_i`` moves along ``p_i``, orders 0 to `order`.

    Args:
      ww: probe vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: probes at a time, None for all at once, or ``"auto"``.
      sharding: how the first probe axis is spread over devices, as ``NamedSharding(mesh, PartitionSpec("w"))``; None
        reads it from `ww`, which does not tell inside `jax.jit` if the mesh axes are of type ``Auto``.

    Returns:
      One array ``(order+1,) + W + V + C + (N_i,)`` per mode, in the dtype of the frame.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 6 and Appendix A.3, for order 0.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> v = t3k.MANIFOLD.randn(jax.random.key(1), x.frame())
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> [z.shape for z in t3k.tv_probe_derivatives(ww, ww, v.variations, v.frame, 1)]
      [(2, 3, 4), (2, 3, 5)]
    """
    order, frame = validate.as_order(order), as_frame(frame)
    variations = as_variations(variations, frame)
    probes, ww, pp = flat_vectors(ww, pp, frame.shape, frame.dtype, order)
    points = frame.stack_shape
    stack = variations.tucker[0].shape[:-2]
    tangents = stack[: len(stack) - len(points)]
    n_tangent = merge_axes(variations.tucker[0], 0, len(tangents)).shape[0] if tangents else 1
    sharding = sharding or row_sharding(ww[0])
    n_probes = ww[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(chunk_size, frame.up, frame.left, order, n_probes, n_tangent, "jacobian")

    def kernel(v: Variations, f: Frame) -> tuple[Array, ...]:
        return tuple(compiled.probe_jacobian(ww, pp, v, f, order, chunk_size=chunk, sharding=sharding))

    coordinates, cores = variations.cores, frame.cores
    if points:
        kernel = jax.vmap(kernel, out_axes=2)
        cores = merge_axes(cores, 0, len(points))
        coordinates = merge_axes(coordinates, len(tangents), len(points))
    if tangents:
        kernel = jax.vmap(kernel, in_axes=(0, None), out_axes=2)
        coordinates = merge_axes(coordinates, 0, len(tangents))
    with reading(ww, pp) as wait:
        zz = wait(kernel(coordinates, cores))
    return tuple(z.reshape(order + 1, *probes, *stack, z.shape[-1]) for z in zz)


def tv_probe_derivatives_transpose(
    ztildes: Any,
    ww: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
    *,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: residual jets back-projected to a gradient with respect to the variations, streamed over the probes.

    Args:
      ztildes: residual jets, one array ``(order+1,) + W + V + C + (N_i,)`` per mode.
      ww: probe vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      sum_over_probes: sum over W, or keep it as leading axes of the gradient.
      chunk_size: probes at a time, None for all at once, or ``"auto"``. Peak memory is inputs, gradient, one chunk.
      sharding: as in `tv_probe_derivatives`.

    Returns:
      ``(dU_tildes, dG_tildes)``: per mode ``[W +] V + C + (m_i, N_i)`` and ``[W +] V + C + (rL_i, n_i, rR_{i+1})``, in
      the dtype of the frame. It is the bare transpose: no gauge projection.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Theorem 7, for order 0.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> r = (jnp.ones((2, 3, 4)), jnp.ones((2, 3, 5)))
      >>> dU, dG = t3k.tv_probe_derivatives_transpose(r, ww, ww, x.frame(), 1, sum_over_probes=True)
      >>> [u.shape for u in dU], [g.shape for g in dG]
      ([(2, 4), (2, 5)], [(1, 2, 2), (2, 2, 1)])
    """
    order, frame = validate.as_order(order), as_frame(frame)
    probes, ww, pp = flat_vectors(ww, pp, frame.shape, frame.dtype, order)
    zz = validate.require_residuals("ztildes", ztildes, order, probes, frame.shape, frame.dtype)
    points = frame.stack_shape
    stack = zz[0].shape[1 + len(probes) : -1]
    tangents = stack[: len(stack) - len(points)]
    if stack[len(tangents) :] != points:
        raise ValueError(f"the stack of ztildes must end with that of the frame, {points}; got {stack}")
    zz = merge_axes(zz, 1, len(probes))
    n_tangent = merge_axes(zz[0], 2, len(tangents)).shape[2] if tangents else 1
    sharding = sharding or row_sharding(ww[0])
    n_probes = ww[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(chunk_size, frame.up, frame.left, order, n_probes, n_tangent)

    def kernel(z: tuple[Array, ...], f: Frame) -> Variations:
        return compiled.probe_transpose(
            z, ww, pp, f, order, sum_over_probes=sum_over_probes, chunk_size=chunk, sharding=sharding
        )

    cores, axis = frame.cores, 0 if sum_over_probes else 1
    if points:
        kernel = jax.vmap(kernel, in_axes=(2, 0), out_axes=axis)
        cores = merge_axes(cores, 0, len(points))
        zz = merge_axes(zz, 2 + len(tangents), len(points))
    if tangents:
        kernel = jax.vmap(kernel, in_axes=(2, None), out_axes=axis)
        zz = merge_axes(zz, 2, len(tangents))
    with reading(zz, ww, pp) as wait:
        gradient = wait(kernel(zz, cores))
    lead = stack if sum_over_probes else (*probes, *stack)
    flat = (not sum_over_probes) + bool(tangents) + bool(points)
    return jax.tree.map(lambda g: g.reshape(*lead, *g.shape[flat:]), gradient)
