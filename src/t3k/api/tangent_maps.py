"""What the maps of tangents have in common, whatever is sampled: checks, stacks W, V and C, chunks and devices."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.sharding import NamedSharding

from t3k.api import validate
from t3k.api.frame import as_frame, as_variations
from t3k.api.point_sampling import resolve_chunk
from t3k.api.stacks import merge_axes
from t3k.kernels.sharded import n_shards, row_sharding
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import Frame, Variations

__all__ = ["Limits", "jacobian", "transpose"]


class Limits(NamedTuple):
    """How much is computed at a time, and where (see `tv_probe_derivatives`), of what kind of samples."""

    chunk_size: Any
    memory: Any
    sharding: NamedSharding | None
    kind: str = "probe"


def jacobian(
    kernel: Callable[..., Any],
    flatten: Callable[..., Any],
    at: Any,
    pp: Any,
    variations: Any,
    frame: Any,
    order: Any,
    limits: Limits,
) -> Any:
    """The outputs ``(order+1,) + W + V + C + ...`` of `kernel` at the rows that `flatten` makes of ``(at, pp)``."""
    order, frame = validate.as_order(order), as_frame(frame)
    variations = as_variations(variations, frame)
    rows, at, pp = flatten(at, pp, frame.shape, frame.dtype, order)
    points, stack = frame.stack_shape, variations.tucker[0].shape[:-2]
    tangents = stack[: len(stack) - len(points)]
    coordinates, cores = variations.cores, frame.cores
    if points:
        cores = merge_axes(cores, 0, len(points))
        coordinates = merge_axes(coordinates, len(tangents), len(points))
    if tangents:
        coordinates = merge_axes(coordinates, 0, len(tangents))
    n_tangent = coordinates.tucker[0].shape[0] if tangents else 1
    settings = _settings(frame, at, order, limits, n_tangent, "jacobian")

    def mapped(v: Variations, f: Frame) -> Any:
        return kernel(at, pp, v, f, order, **settings)

    if points:
        mapped = jax.vmap(mapped, out_axes=2)
    if tangents:
        mapped = jax.vmap(mapped, in_axes=(0, None), out_axes=2)
    with reading(at, pp) as wait:
        zz = wait(mapped(coordinates, cores))
    flat = 2 + bool(tangents) + bool(points)
    return jax.tree.map(lambda z: z.reshape(order + 1, *rows, *stack, *z.shape[flat:]), zz)


def transpose(
    kernel: Callable[..., Any],
    flatten: Callable[..., Any],
    residuals: Callable[..., tuple[Any, tuple[int, ...]]],
    at: Any,
    pp: Any,
    frame: Any,
    order: Any,
    sum_over_probes: bool,
    limits: Limits,
) -> Variations:
    """The gradient ``[W +] V + C + ...`` that `kernel` makes of residuals.

    ``residuals(order, rows, frame)`` gives them checked, and their stack V + C.
    """
    order, frame = validate.as_order(order), as_frame(frame)
    rows, at, pp = flatten(at, pp, frame.shape, frame.dtype, order)
    zz, stack = residuals(order, rows, frame)
    points = frame.stack_shape
    tangents = stack[: len(stack) - len(points)]
    if stack[len(tangents) :] != points:
        raise ValueError(f"the stack of ztildes must end with that of the frame, {points}; got {stack}")
    zz, cores, axis = merge_axes(zz, 1, len(rows)), frame.cores, 0 if sum_over_probes else 1
    if points:
        cores = merge_axes(cores, 0, len(points))
        zz = merge_axes(zz, 2 + len(tangents), len(points))
    if tangents:
        zz = merge_axes(zz, 2, len(tangents))
    n_tangent = jax.tree.leaves(zz)[0].shape[2] if tangents else 1
    settings = _settings(frame, at, order, limits, n_tangent, "transpose")

    def mapped(z: Any, f: Frame) -> Variations:
        return kernel(z, at, pp, f, order, sum_over_probes=sum_over_probes, **settings)

    if points:
        mapped = jax.vmap(mapped, in_axes=(2, 0), out_axes=axis)
    if tangents:
        mapped = jax.vmap(mapped, in_axes=(2, None), out_axes=axis)
    with reading(zz, at, pp) as wait:
        gradient = wait(mapped(zz, cores))
    lead = stack if sum_over_probes else (*rows, *stack)
    flat = (not sum_over_probes) + bool(tangents) + bool(points)
    return jax.tree.map(lambda g: g.reshape(*lead, *g.shape[flat:]), gradient)


def _settings(frame: Any, at: Any, order: int, limits: Limits, n_tangent: int, operation: str) -> dict[str, Any]:
    """The chunk size and the sharding that a kernel is called with."""
    sharding = limits.sharding or row_sharding(at[0])
    n_rows = at[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(
        limits.chunk_size,
        frame.up,
        frame.left,
        order,
        n_rows,
        n_tangent,
        operation,
        kind=limits.kind,
        memory=limits.memory,
    )
    return {"chunk_size": chunk, "sharding": sharding}
