"""Samples with no mode left free (applies and entries), streamed: the pipeline of `sample_blocks` chunk by chunk.

They are the maps of `probe_maps` for these samples, with the same promise: scratch memory is that of one chunk. All
take one T3 frame, one tangent and one sample axis w; stacks are `jax.vmap` over them.
"""

from typing import Any, NamedTuple

from jax.sharding import NamedSharding

from t3k.kernels.checks import bind, check_frame, check_samples, check_variations
from t3k.kernels.jets import total
from t3k.kernels.linear_map import linear_map
from t3k.kernels.probe_cores import FrameCores, frame_cores, tangent_cores
from t3k.kernels.reducers import Reducer, add, add_at, concat
from t3k.kernels.sample_blocks import (
    SampleGradient,
    sample_gauss_newton_block,
    sample_jacobian_block,
    sample_residual_block,
    sample_transpose_block,
)
from t3k.kernels.streaming import as_variations, counted, part_axes, rows_at_once, stream
from t3k.kernels.sweeps import unstack_runs
from t3k.kernels.types import Array, Cores, Frame, Variations, as_tuple

__all__ = [
    "Samples",
    "point_samples",
    "sample_gauss_newton",
    "sample_jacobian",
    "sample_misfit",
    "sample_transpose",
]


class Samples(NamedTuple):
    """Where a tensor is sampled, and how much each sample counts.

    ``at`` holds vectors ``(w, o)`` or integer indices ``(w,)``, in range, one array per mode; ``pp`` the directions
    ``(w, o)``, which may be None where the order is 0. ``weights (t,)`` for each order and ``rows (w,)`` for each
    sample multiply the *squared* residuals; None counts all alike.
    """

    at: Cores
    pp: Cores | None
    weights: Array | None = None
    rows: Array | None = None


def _axis(at: Cores) -> int:
    """The axis of the samples in `at`, whether it is a tuple or stacked."""
    return -1 if as_tuple(at)[0].ndim == 1 else -2


def _check(samples: Samples, frame: Frame, order: int, **zz: Array) -> None:
    check_frame(*frame)
    check_samples(order, samples.at, samples.pp, frame.up)
    dims = {"t": order + 1, "w": len(as_tuple(samples.at)[0])}
    for name, array, letters in (("weights", samples.weights, "t"), ("rows", samples.rows, "w")):
        if array is not None:
            bind(dims, name, array, letters)
    for name, array in zz.items():
        bind(dims, name, array, "tw")


def _stream(
    block: Any,
    samples: Samples,
    fixed: Any,
    reducers: Any,
    frame: Frame,
    rows: int | None,
    sharding: NamedSharding | None,
    extra: Array | None = None,
) -> Any:
    """Reduces ``block(samples, extra, fixed)`` over chunks of at most `rows`, with those masked that do not count.

    `extra` ``(t, w)`` are residuals or data.
    """

    def masked(xs: Any, valid: Array | None) -> Any:
        (at, pp, rows, rest), (weights, fixed) = xs
        return block(Samples(at, pp, weights, counted(rows, valid, frame.up[0].dtype)), rest, fixed)

    xs, axes = (samples.at, samples.pp, samples.rows, extra), (_axis(samples.at), -2, 0, 1)
    return stream(masked, xs, (samples.weights, fixed), reducers, rows=rows, axes=axes, sharding=sharding)


def _reducers(samples: Samples, frame: Frame, reducer: Reducer) -> SampleGradient:
    """How the parts of a summed gradient are reduced."""
    columns = reducer if _axis(samples.at) == -2 else tuple(add_at(U.shape[1]) for U in as_tuple(frame.up))
    return SampleGradient(reducer, columns, reducer)  # type: ignore[arg-type]


def _by_modes(gradient: SampleGradient, cores: FrameCores, frame: Frame) -> SampleGradient:
    """The gradient of a block mode by mode, no longer grouped by runs of equal cores, with all axes of dG apart."""
    tucker, tt = (unstack_runs(cores.runs.value, train) for train in (gradient.tucker, gradient.tt))
    return gradient._replace(tucker=tucker, tt=part_axes(tt, frame))


def _variations(gradient: SampleGradient, frame: Frame) -> Variations:
    """The gradient as variations in the layout of the frame, from its parts mode by mode."""
    parts: Any = zip(gradient.tucker, gradient.columns, strict=True)
    return as_variations(frame, [total(x for x in pair if x is not None) for pair in parts], gradient.tt)


def point_samples(
    at: Cores,
    pp: Cores | None,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Array:
    """The sampled derivatives of the base point ``(U, L)`` of a frame; of a T3 in its corewise frame (U, G, G, G).

    Arguments and result as in `sample_jacobian`.

    Example:
      >>> import jax.numpy as jnp
      >>> U, G = (jnp.eye(2),) * 2, (jnp.ones((1, 2, 1)),) * 2
      >>> ww = (jnp.ones((1, 2)),) * 2
      >>> point_samples(ww, ww, Frame(U, G, G, G), 2, chunk_size=None)[:, 0].tolist()
      [4.0, 8.0, 8.0]
    """
    samples = Samples(at, pp)
    _check(samples, frame, order)

    def block(samples: Samples, _: None, cores: FrameCores) -> Array:
        return sample_jacobian_block(cores, None, samples.at, samples.pp, order)

    fixed, rows = frame_cores(frame, order), rows_at_once(chunk_size, frame, order)
    return _stream(block, samples, fixed, concat(1), frame, rows, sharding)


def sample_jacobian(
    at: Cores,
    pp: Cores | None,
    variations: Variations,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Array:
    """J: the sampled derivatives of a tangent, orders 0 to `order`.

    Args:
      at: vectors ``(w, o)``, or integer indices ``(w,)`` in range, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      variations: the tangent's coordinates (V, H).
      frame: (U, O, L, R).
      order: the highest derivative K (static).
      chunk_size: samples at a time (static); None takes all.
      sharding: of the sample axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      Array ``(t, w)``.
    """
    check_variations(*variations, frame)
    _check(Samples(at, pp), frame, order)

    def forward(kept: Any, variations: Variations) -> Array:
        at, pp, frame = kept

        def block(samples: Samples, _: None, fixed: Any) -> Array:
            cores, tangents = fixed
            return sample_jacobian_block(cores, tangents, samples.at, samples.pp, order)

        cores = frame_cores(frame, order)
        fixed = cores, tangent_cores(frame, variations, cores.runs.value)
        rows = rows_at_once(chunk_size, frame, order)
        return _stream(block, Samples(at, pp), fixed, concat(1), frame, rows, sharding)

    def transpose(kept: Any, zz: Array) -> Variations:
        at, pp, frame = kept
        return sample_transpose(
            zz, at, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size, sharding=sharding
        )

    return linear_map(forward, transpose, (at, pp, frame), variations)


def sample_transpose(
    ztildes: Array,
    at: Cores,
    pp: Cores | None,
    frame: Frame,
    order: int,
    *,
    sum_over_probes: bool,
    chunk_size: int | None,
    reducer: Reducer = add,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: from residuals ``(t, w)`` to the gradient with respect to the variations.

    Args:
      ztildes: residuals ``(t, w)``.
      at: vectors ``(w, o)`` or indices ``(w,)``.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      frame: (U, O, L, R).
      order: K (static).
      sum_over_probes: sum the samples' gradients, or keep them apart (static).
      chunk_size: samples at a time (static); None takes all.
      reducer: how chunks are summed, `add` or `compensated_add`.
      sharding: of the sample axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      Variations with dU ``(m, o)`` and dG ``(a, k, b)``; with a leading w where samples are kept apart.
    """
    samples, kept = Samples(at, pp), not sum_over_probes
    _check(samples, frame, order, ztildes=ztildes)

    def block(samples: Samples, residual: Array, cores: FrameCores) -> SampleGradient:
        rows = None if kept else samples.rows
        gradient = sample_transpose_block(cores, samples.at, samples.pp, residual, order, rows, kept=kept)
        # To take apart what has been concatenated would cost a copy of all of it.
        return _by_modes(gradient, cores, frame) if kept else gradient

    reducers = concat(0) if kept else _reducers(samples, frame, reducer)
    fixed, rows = frame_cores(frame, order), rows_at_once(chunk_size, frame, order)
    gradient = _stream(block, samples, fixed, reducers, frame, rows, sharding, ztildes)
    return _variations(gradient if kept else _by_modes(gradient, fixed, frame), frame)


def sample_gauss_newton(
    samples: Samples,
    variations: Variations,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
    sharding: NamedSharding | None = None,
) -> Variations:
    """``J^T (weights J v)`` in one pass over the samples; J v of all of them never exists.

    Args:
      samples: the samples and their weights.
      variations: the tangent v.
      frame: (U, O, L, R).
      order: K (static).
      chunk_size: samples at a time (static); None takes all.
      reducer: how chunks are summed.
      sharding: of the sample axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.
    """
    check_variations(*variations, frame)
    _check(samples, frame, order)

    def block(samples: Samples, _: None, fixed: Any) -> SampleGradient:
        (at, pp, weights, rows), (cores, tangents) = samples, fixed
        return sample_gauss_newton_block(cores, tangents, at, pp, order, weights, rows)

    cores, rows = frame_cores(frame, order), rows_at_once(chunk_size, frame, order)
    fixed, reducers = (cores, tangent_cores(frame, variations, cores.runs.value)), _reducers(samples, frame, reducer)
    gradient = _stream(block, samples, fixed, reducers, frame, rows, sharding)
    return _variations(_by_modes(gradient, cores, frame), frame)


def sample_misfit(
    samples: Samples,
    data: Array,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
    gradient: bool = True,
    sharding: NamedSharding | None = None,
) -> tuple[Array, Variations | None]:
    """``1/2 sum weights (y - data)^2`` at the base point (U, L) and its gradient, in one pass over the samples.

    Args:
      samples: the samples and their weights.
      data: measured derivatives ``(t, w)``.
      frame: (U, O, L, R).
      order: K (static).
      chunk_size: samples at a time (static); None takes all.
      reducer: how chunks are summed.
      gradient: False spares the adjoint and returns None in its place (static).
      sharding: of the sample axis alone, where it is spread over devices (static); see `t3k.kernels.sharded`.

    Returns:
      The value, and ``J^T (weights (y - data))`` as variations.
    """
    _check(samples, frame, order, data=data)

    def block(samples: Samples, measured: Array, cores: FrameCores) -> tuple[Array, SampleGradient | None]:
        at, pp, weights, rows = samples
        return sample_residual_block(cores, at, pp, measured, order, weights, rows, gradient=gradient)

    reducers = reducer, _reducers(samples, frame, reducer) if gradient else None
    fixed, rows = frame_cores(frame, order), rows_at_once(chunk_size, frame, order)
    value, part = _stream(block, samples, fixed, reducers, frame, rows, sharding, data)
    return value, _variations(_by_modes(part, fixed, frame), frame) if gradient else None
