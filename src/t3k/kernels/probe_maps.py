"""The probe-derivative maps, streamed: the whole pipeline of `probe_blocks` runs chunk by chunk over the probes.

Scratch memory is that of one chunk, whatever the number of probes: nothing that has a probe axis is ever resident
besides the inputs and (where the caller asks for them) the outputs.

All maps take one T3 frame, one tangent and one probe axis w; stacks are `jax.vmap` over them.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.sharding import NamedSharding

from t3k.kernels.checks import check_frame, check_probes, check_trains, check_variations, check_weights
from t3k.kernels.chunking import LANE, chunk_reduce
from t3k.kernels.linear_map import linear_map
from t3k.kernels.probe_blocks import (
    GradientBlock,
    gauss_newton_block,
    jacobian_block,
    point_block,
    residual_block,
    transpose_block,
)
from t3k.kernels.probe_cores import frame_cores, tangent_cores
from t3k.kernels.reducers import Reducer, add, concat
from t3k.kernels.types import Array, Cores, Frame, Variations, as_tuple, like_train

__all__ = [
    "Probes",
    "gauss_newton_product",
    "misfit",
    "point_probes",
    "probe_jacobian",
    "probe_transpose",
    "rows_at_once",
]


class Probes(NamedTuple):
    """Where a tensor is measured, and how much each measurement counts.

    ``ww`` and ``pp`` are the probes and their directions, one array ``(w, o)`` per mode (``pp`` may be None where the
    order is 0). ``weights (d, t)`` for each mode and order and ``rows (w,)`` for each probe multiply the *squared*
    residuals; None counts all alike.
    """

    ww: Cores
    pp: Cores | None
    weights: Array | None = None
    rows: Array | None = None


#: What the lifted jets of one core may take before a chunk is cut shorter than asked for.
LIFTED_BYTES = 64 * 2**20
#: The axis of the probes in ``ww (w, o)`` and ``zz (t, w, o)``, whether they are tuples or stacked.
PROBE_AXIS = -2
#: The same axis of one ``z (t, w, o)``, from the front.
JET_PROBE_AXIS = 1


def _check_point(point: Cores, frame: Frame) -> None:
    check_frame(*frame)
    check_trains({}, up=(frame[0], "ko"), down=(frame[1], "amb"), point=(point, "mo"))


def _check_measurements(probes: Probes, frame: Frame, order: int, **zz: Cores) -> None:
    check_probes(order, probes.ww, probes.pp, frame[0], **zz)
    check_weights(order, probes.ww, probes.weights, probes.rows)


def _n_probes(ww: Cores) -> int:
    return ww[0].shape[0]


def _row_weights(rows: Array | None, valid: Array | None, like: Array) -> Array | None:
    """The probes' own weights, zero where a chunk overlaps the one before it."""
    if valid is None:
        return rows
    return valid.astype(like.dtype) if rows is None else jnp.where(valid, rows, 0)


def _part_axes(gradient: GradientBlock, frame: Frame) -> GradientBlock:
    """The gradient with the left bond and the Tucker index of dG apart.

    A block does this itself: to reshape what is concatenated may cost a copy of all of it.
    """
    cores = zip(gradient.tt, as_tuple(frame.left), strict=True)
    tt = tuple(dG.reshape(*dG.shape[:-2], *core.shape[:2], dG.shape[-1]) for dG, core in cores)
    return GradientBlock(gradient.tucker, tt)


def _variations(gradient: GradientBlock, frame: Frame) -> Variations:
    """The gradient as variations in the layout of the frame."""
    return Variations(like_train(gradient.tucker, frame.up), like_train(gradient.tt, frame.left))


def rows_at_once(chunk_size: int | None, frame: Frame, order: int) -> int | None:
    """At most `chunk_size`, and no more than keep the lifted jets of a core within `LIFTED_BYTES`.

    Beyond that, more rows make nothing faster: the matrix products are large enough and the cache is left behind.
    """
    if chunk_size is None:
        return None
    sizes = [
        (L.shape[0], L.shape[1], R.shape[2]) for L, R in zip(as_tuple(frame.left), as_tuple(frame.right), strict=True)
    ]
    largest = max(max(a * k, k * b, a * b) for a, k, b in sizes)
    row_bytes = (5 * (order + 1) + 2) * largest * frame.up[0].dtype.itemsize
    return min(chunk_size, max(LANE, LIFTED_BYTES // row_bytes // LANE * LANE))


def _stream(
    block: Any, xs: Any, fixed: Any, reducers: Any, rows: int | None, axes: Any, sharding: NamedSharding | None
) -> Any:
    """Reduces ``block((xs, fixed), valid)``; `xs` begins with the probe vectors.

    What a block needs besides rows is passed to it, since `jax.shard_map` cannot close over arrays on explicit axes.
    """
    n_rows = _n_probes(xs[0])
    return chunk_reduce(
        block, (xs, fixed), reducers, chunk_size=rows, n_rows=n_rows, axes=(axes, None), sharding=sharding
    )


def probe_jacobian(
    ww: Cores,
    pp: Cores | None,
    variations: Variations,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Cores:
    """J: the probe derivatives of a tangent, orders 0 to `order`.

    Args:
      ww: probe vectors ``(w, o)``, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      variations: the tangent's coordinates (V, H).
      frame: (U, O, L, R).
      order: the highest derivative K (static).
      chunk_size: probes at a time (static); None takes all.
      sharding: of the probe axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      One array ``(t, w, o)`` per mode, in the layout of `ww`. Its derivative with respect to the variations is
      streamed in either mode: reverse mode runs `probe_transpose`.
    """
    check_variations(*variations, frame)
    check_probes(order, ww, pp, frame[0])

    def forward(kept: Any, variations: Variations) -> Cores:
        ww, pp, frame = kept
        return _jacobian(ww, pp, variations, frame, order, chunk_size, sharding)

    def transpose(kept: Any, zz: Cores) -> Variations:
        ww, pp, frame = kept
        return probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size, sharding=sharding)

    return linear_map(forward, transpose, (ww, pp, frame), variations)


def _jacobian(
    ww: Cores,
    pp: Cores | None,
    variations: Variations,
    frame: Frame,
    order: int,
    chunk_size: int | None,
    sharding: NamedSharding | None,
) -> Cores:
    fixed = frame_cores(frame, order), tangent_cores(frame, variations)

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        del valid
        (ww, pp), (cores, tangents) = xs
        return jacobian_block(cores, tangents, ww, pp, order)

    rows = rows_at_once(chunk_size, frame, order)
    zz = _stream(block, (ww, pp), fixed, concat(JET_PROBE_AXIS), rows, PROBE_AXIS, sharding)
    return like_train(zz, ww)


def point_probes(
    ww: Cores,
    pp: Cores | None,
    point: Cores,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Cores:
    """The probe derivatives of the tensor that has `point` ``(m, o)`` as Tucker core at each mode in turn.

    For a T3 itself that is ``point = U`` in the corewise frame (U, G, G, G); arguments and result as in
    `probe_jacobian`.
    """
    _check_point(point, frame)
    check_probes(order, ww, pp, frame[0])
    fixed = frame_cores(frame, order), point

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        del valid
        (ww, pp), (cores, point) = xs
        return point_block(cores, point, ww, pp, order)

    rows = rows_at_once(chunk_size, frame, order)
    zz = _stream(block, (ww, pp), fixed, concat(JET_PROBE_AXIS), rows, PROBE_AXIS, sharding)
    return like_train(zz, ww)


def probe_transpose(
    ztildes: Cores,
    ww: Cores,
    pp: Cores | None,
    frame: Frame,
    order: int,
    *,
    sum_over_probes: bool,
    chunk_size: int | None,
    reducer: Reducer = add,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: from residual jets ``(t, w, o)`` to the gradient with respect to the variations.

    Args:
      ztildes: residual jets, one array ``(t, w, o)`` per mode.
      ww: probe vectors ``(w, o)``.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      frame: (U, O, L, R).
      order: K (static).
      sum_over_probes: sum the probes' gradients, or keep them apart (static).
      chunk_size: probes at a time (static); None takes all.
      reducer: how chunks are summed, `add` or `compensated_add`.
      sharding: of the probe axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      Variations with dU ``(m, o)`` and dG ``(a, k, b)``; with a leading w where probes are kept apart.
    """
    check_frame(*frame)
    check_probes(order, ww, pp, frame[0], ztildes=ztildes)
    fixed = frame_cores(frame, order)

    def block(xs: Any, valid: Array | None) -> GradientBlock:
        (ww, pp, zz), cores = xs
        rows = _row_weights(None, valid, cores[0].up) if sum_over_probes else None
        return _part_axes(transpose_block(cores, ww, pp, zz, order, rows, kept=not sum_over_probes), frame)

    reduction = reducer if sum_over_probes else concat(0)
    rows = rows_at_once(chunk_size, frame, order)
    return _variations(_stream(block, (ww, pp, ztildes), fixed, reduction, rows, PROBE_AXIS, sharding), frame)


def gauss_newton_product(
    probes: Probes,
    variations: Variations,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
    sharding: NamedSharding | None = None,
) -> Variations:
    """``J^T (weights J v)`` in one pass over the probes; J v never exists.

    Args:
      probes: the probes and their weights.
      variations: the tangent v.
      frame: (U, O, L, R).
      order: K (static).
      chunk_size: probes at a time (static); None takes all.
      reducer: how chunks are summed.
      sharding: of the probe axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.
    """
    check_variations(*variations, frame)
    _check_measurements(probes, frame, order)
    fixed = frame_cores(frame, order), tangent_cores(frame, variations), probes.weights

    def block(xs: Any, valid: Array | None) -> GradientBlock:
        (ww, pp, rows), (cores, tangents, weights) = xs
        rows = _row_weights(rows, valid, cores[0].up)
        return _part_axes(gauss_newton_block(cores, tangents, ww, pp, order, weights, rows), frame)

    xs, axes = (probes.ww, probes.pp, probes.rows), (PROBE_AXIS, PROBE_AXIS, 0)
    rows = rows_at_once(chunk_size, frame, order)
    return _variations(_stream(block, xs, fixed, reducer, rows, axes, sharding), frame)


def misfit(
    probes: Probes,
    data: Cores,
    point: Cores,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
    gradient: bool = True,
    sharding: NamedSharding | None = None,
) -> tuple[Array, Variations | None]:
    """``1/2 sum weights |z - data|^2`` at the base point and its gradient, in one pass over the probes.

    Args:
      probes: the probes and their weights.
      data: measured probe derivatives, one array ``(t, w, o)`` per mode.
      point: Tucker cores ``(m, o)`` that make the frame into the base point, at each mode in turn.
      frame: (U, O, L, R).
      order: K (static).
      chunk_size: probes at a time (static); None takes all.
      reducer: how chunks are summed.
      gradient: False spares the adjoint and returns None in its place (static).
      sharding: of the probe axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      The value, and ``J^T (weights (z - data))`` as variations.
    """
    _check_point(point, frame)
    _check_measurements(probes, frame, order, data=data)
    fixed = frame_cores(frame, order), point, probes.weights

    def block(xs: Any, valid: Array | None) -> tuple[Array, GradientBlock | None]:
        (ww, pp, measured, rows), (cores, point, weights) = xs
        rows = _row_weights(rows, valid, cores[0].up)
        value, blocks = residual_block(cores, point, ww, pp, measured, order, weights, rows, gradient=gradient)
        return value, None if blocks is None else _part_axes(blocks, frame)

    xs, axes = (probes.ww, probes.pp, data, probes.rows), (PROBE_AXIS, PROBE_AXIS, PROBE_AXIS, 0)
    rows = rows_at_once(chunk_size, frame, order)
    value, variations = _stream(block, xs, fixed, reducer, rows, axes, sharding)
    return value, _variations(variations, frame) if gradient else None
