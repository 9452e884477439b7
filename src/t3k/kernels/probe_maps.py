"""The probe-derivative maps, streamed: the whole pipeline of `probe_blocks` runs chunk by chunk over the probes.

Scratch memory is that of one chunk, whatever the number of probes: nothing that has a probe axis is ever resident
besides the inputs and (where the caller asks for them) the outputs.

All maps take one T3 frame, one tangent and one probe axis w; stacks are `jax.vmap` over them.
"""

from typing import Any, NamedTuple

from jax.sharding import NamedSharding

from t3k.kernels.checks import check_frame, check_probes, check_trains, check_variations, check_weights
from t3k.kernels.linear_map import linear_map
from t3k.kernels.narrow_loop import two_loops
from t3k.kernels.probe_blocks import (
    GradientBlock,
    gauss_newton_block,
    jacobian_block,
    point_block,
    residual_block,
    transpose_block,
)
from t3k.kernels.probe_cores import FrameCores, frame_cores, tangent_cores
from t3k.kernels.reducers import Reducer, add, concat
from t3k.kernels.streaming import as_variations, counted, part_axes, rows_at_once, stream
from t3k.kernels.sweeps import unstack_runs
from t3k.kernels.types import Array, Cores, Frame, Variations, like_train

__all__ = [
    "Probes",
    "gauss_newton_product",
    "misfit",
    "point_probes",
    "probe_jacobian",
    "probe_transpose",
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


def _by_modes(gradient: GradientBlock, cores: FrameCores, frame: Frame) -> GradientBlock:
    """The gradient of a block mode by mode, no longer grouped by runs of equal cores, with all axes of dG apart."""
    runs = cores.runs.value
    return GradientBlock(unstack_runs(runs, gradient.tucker), part_axes(unstack_runs(runs, gradient.tt), frame))


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
    cores = frame_cores(frame, order)
    xs, fixed = (ww, pp), (cores, tangent_cores(frame, variations, cores.runs.value))
    rows, loop = two_loops(rows_at_once(chunk_size, frame, order), xs, frame, sharding)

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        del valid
        (ww, pp), (cores, tangents) = xs
        return jacobian_block(cores, tangents, ww, pp, order, loop=loop)

    zz = stream(block, xs, fixed, concat(JET_PROBE_AXIS), rows=rows, axes=PROBE_AXIS, sharding=sharding)
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
    xs, fixed = (ww, pp), (frame_cores(frame, order), point)
    rows, loop = two_loops(rows_at_once(chunk_size, frame, order), xs, frame, sharding)

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        del valid
        (ww, pp), (cores, point) = xs
        return point_block(cores, point, ww, pp, order, loop=loop)

    zz = stream(block, xs, fixed, concat(JET_PROBE_AXIS), rows=rows, axes=PROBE_AXIS, sharding=sharding)
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
    xs, fixed, reduction = (ww, pp, ztildes), frame_cores(frame, order), reducer if sum_over_probes else concat(0)
    rows, loop = two_loops(rows_at_once(chunk_size, frame, order), xs, frame, sharding, reduction)

    def block(xs: Any, valid: Array | None) -> GradientBlock:
        (ww, pp, zz), cores = xs
        rows = counted(None, valid, frame.up[0].dtype) if sum_over_probes else None
        gradient = transpose_block(cores, ww, pp, zz, order, rows, kept=not sum_over_probes, loop=loop)
        # To take apart what has been concatenated would cost a copy of all of it.
        return gradient if sum_over_probes else _by_modes(gradient, cores, frame)

    gradient = stream(block, xs, fixed, reduction, rows=rows, axes=PROBE_AXIS, sharding=sharding)
    return as_variations(frame, *(_by_modes(gradient, fixed, frame) if sum_over_probes else gradient))


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
    cores = frame_cores(frame, order)
    xs, fixed = (
        (probes.ww, probes.pp, probes.rows),
        (cores, tangent_cores(frame, variations, cores.runs.value), probes.weights),
    )
    rows, loop = two_loops(rows_at_once(chunk_size, frame, order), xs[:2], frame, sharding, reducer)

    def block(xs: Any, valid: Array | None) -> GradientBlock:
        (ww, pp, rows), (cores, tangents, weights) = xs
        rows = counted(rows, valid, frame.up[0].dtype)
        return gauss_newton_block(cores, tangents, ww, pp, order, weights, rows, loop=loop)

    axes = PROBE_AXIS, PROBE_AXIS, 0
    gradient = stream(block, xs, fixed, reducer, rows=rows, axes=axes, sharding=sharding)
    return as_variations(frame, *_by_modes(gradient, fixed[0], frame))


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
        rows = counted(rows, valid, frame.up[0].dtype)
        return residual_block(cores, point, ww, pp, measured, order, weights, rows, gradient=gradient)

    xs, axes = (probes.ww, probes.pp, data, probes.rows), (PROBE_AXIS, PROBE_AXIS, PROBE_AXIS, 0)
    rows = rows_at_once(chunk_size, frame, order)
    value, found = stream(block, xs, fixed, reducer, rows=rows, axes=axes, sharding=sharding)
    return value, as_variations(frame, *_by_modes(found, fixed[0], frame)) if gradient else None
