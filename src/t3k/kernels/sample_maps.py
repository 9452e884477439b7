"""Samples with no mode left free (applies and entries), streamed: the pipeline of `sample_blocks` chunk by chunk.

They are the maps of `probe_maps` for these samples, with the same promise: scratch memory is that of one chunk. All
take one T3 frame, one tangent and one sample axis w; stacks are `jax.vmap` over them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.checks import bind, check_frame, check_samples, check_variations
from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.jets import total
from t3k.kernels.linear_map import linear_map
from t3k.kernels.probe_cores import frame_cores, tangent_cores
from t3k.kernels.probe_maps import rows_at_once
from t3k.kernels.reducers import Reducer, add, concat
from t3k.kernels.sample_blocks import (
    SampleGradient,
    sample_gauss_newton_block,
    sample_jacobian_block,
    sample_residual_block,
    sample_transpose_block,
)
from t3k.kernels.types import Array, Cores, Frame, Variations, as_tuple, like_train
from t3k.kernels.varying import vary_like

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


@dataclass(frozen=True, eq=False)
class _AddColumns:
    """A reducer of ``columns (w, m)``: adds each to the column of the result ``(m, o)`` that its index names.

    The sum lives in the loop's carry, where the additions are done in place, so that a chunk costs its own rows even
    where the mode is very large.
    """

    index: Array
    size: int

    def init(self, block: Any, n_rows: int) -> Array:
        del n_rows
        return vary_like(jnp.zeros((self.size, block.shape[1]), block.dtype), block)

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        return state.at[jax.lax.dynamic_slice_in_dim(self.index, start, block.shape[0])].add(block)

    def finish(self, state: Array) -> Array:
        return state.T


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


def _mask(rows: Array | None, valid: Array | None, like: Array) -> Array | None:
    """The samples' own weights, zero where a chunk overlaps the one before it."""
    if valid is None:
        return rows
    return valid.astype(like.dtype) if rows is None else jnp.where(valid, rows, 0)


def _stream(
    block: Any, samples: Samples, frame: Frame, rows: int | None, reducers: Any, extra: Any = None, axis: Any = None
) -> Any:
    """Reduces ``block(samples, extra)`` over chunks of at most `rows`, with the rows masked that do not count."""

    def masked(xs: Any, valid: Array | None) -> Any:
        at, pp, rows, rest = xs
        return block(Samples(at, pp, samples.weights, _mask(rows, valid, frame.up[0])), rest)

    xs, axes = (samples.at, samples.pp, samples.rows, extra), (_axis(samples.at), -2, 0, axis)
    return chunk_reduce(masked, xs, reducers, chunk_size=rows, n_rows=len(as_tuple(samples.at)[0]), axes=axes)


def _reducers(samples: Samples, frame: Frame, reducer: Reducer) -> SampleGradient:
    """How the parts of a summed gradient are reduced."""
    sizes = [U.shape[1] for U in as_tuple(frame.up)]
    columns = tuple(map(_AddColumns, as_tuple(samples.at), sizes)) if _axis(samples.at) == -1 else reducer
    return SampleGradient(reducer, columns, reducer)  # type: ignore[arg-type]


def _variations(gradient: SampleGradient, frame: Frame) -> Variations:
    """The gradient as variations in the layout of the frame."""
    parts = zip(gradient.tucker, gradient.columns, strict=True)
    tucker = tuple(total(x for x in pair if x is not None) for pair in parts)
    return Variations(like_train(tucker, frame.up), like_train(gradient.tt, frame.left))


def _part_axes(gradient: SampleGradient, frame: Frame) -> SampleGradient:
    """The gradient with the left bond and the Tucker index of dG apart."""
    cores = zip(gradient.tt, as_tuple(frame.left), strict=True)
    return gradient._replace(tt=tuple(dG.reshape(*dG.shape[:-2], *L.shape[:2], dG.shape[-1]) for dG, L in cores))


def point_samples(at: Cores, pp: Cores | None, frame: Frame, order: int, *, chunk_size: int | None) -> Array:
    """The sampled derivatives of the base point ``(U, L)`` of a frame; of a T3 in its corewise frame (U, G, G, G).

    Arguments and result as in `sample_jacobian`.

    Example:
      >>> U, G = (jnp.eye(2),) * 2, (jnp.ones((1, 2, 1)),) * 2
      >>> ww = (jnp.ones((1, 2)),) * 2
      >>> point_samples(ww, ww, Frame(U, G, G, G), 2, chunk_size=None)[:, 0].tolist()
      [4.0, 8.0, 8.0]
    """
    samples, cores = Samples(at, pp), frame_cores(frame, order)
    _check(samples, frame, order)

    def block(samples: Samples, _: None) -> Array:
        return sample_jacobian_block(cores, None, samples.at, samples.pp, order)

    return _stream(block, samples, frame, rows_at_once(chunk_size, frame, order), concat(1))


def sample_jacobian(
    at: Cores, pp: Cores | None, variations: Variations, frame: Frame, order: int, *, chunk_size: int | None
) -> Array:
    """J: the sampled derivatives of a tangent, orders 0 to `order`.

    Args:
      at: vectors ``(w, o)``, or integer indices ``(w,)`` in range, one array per mode.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      variations: the tangent's coordinates (V, H).
      frame: (U, O, L, R).
      order: the highest derivative K (static).
      chunk_size: samples at a time (static); None takes all.

    Returns:
      Array ``(t, w)``.
    """
    check_variations(*variations, frame)
    _check(Samples(at, pp), frame, order)

    def forward(kept: Any, variations: Variations) -> Array:
        at, pp, frame = kept
        cores, tangents = frame_cores(frame, order), tangent_cores(frame, variations)

        def block(samples: Samples, _: None) -> Array:
            return sample_jacobian_block(cores, tangents, samples.at, samples.pp, order)

        return _stream(block, Samples(at, pp), frame, rows_at_once(chunk_size, frame, order), concat(1))

    def transpose(kept: Any, zz: Array) -> Variations:
        at, pp, frame = kept
        return sample_transpose(zz, at, pp, frame, order, sum_over_samples=True, chunk_size=chunk_size)

    return linear_map(forward, transpose, (at, pp, frame), variations)


def sample_transpose(
    ztildes: Array,
    at: Cores,
    pp: Cores | None,
    frame: Frame,
    order: int,
    *,
    sum_over_samples: bool,
    chunk_size: int | None,
    reducer: Reducer = add,
) -> Variations:
    """J^T: from residuals ``(t, w)`` to the gradient with respect to the variations.

    Args:
      ztildes: residuals ``(t, w)``.
      at: vectors ``(w, o)`` or indices ``(w,)``.
      pp: directions ``(w, o)``; may be None where `order` is 0.
      frame: (U, O, L, R).
      order: K (static).
      sum_over_samples: sum the samples' gradients, or keep them apart (static).
      chunk_size: samples at a time (static); None takes all.
      reducer: how chunks are summed, `add` or `compensated_add`.

    Returns:
      Variations with dU ``(m, o)`` and dG ``(a, k, b)``; with a leading w where samples are kept apart.
    """
    samples, cores, kept = Samples(at, pp), frame_cores(frame, order), not sum_over_samples
    _check(samples, frame, order, ztildes=ztildes)

    def block(samples: Samples, residual: Array) -> SampleGradient:
        rows = None if kept else samples.rows
        gradient = sample_transpose_block(cores, samples.at, samples.pp, residual, order, rows, kept=kept)
        return _part_axes(gradient, frame)

    reducers = concat(0) if kept else _reducers(samples, frame, reducer)
    rows = rows_at_once(chunk_size, frame, order)
    return _variations(_stream(block, samples, frame, rows, reducers, ztildes, 1), frame)


def sample_gauss_newton(
    samples: Samples,
    variations: Variations,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
) -> Variations:
    """``J^T (weights J v)`` in one pass over the samples; J v of all of them never exists.

    Args:
      samples: the samples and their weights.
      variations: the tangent v.
      frame: (U, O, L, R).
      order: K (static).
      chunk_size: samples at a time (static); None takes all.
      reducer: how chunks are summed.
    """
    check_variations(*variations, frame)
    _check(samples, frame, order)
    cores, tangents = frame_cores(frame, order), tangent_cores(frame, variations)

    def block(samples: Samples, _: None) -> SampleGradient:
        at, pp, weights, rows = samples
        return _part_axes(sample_gauss_newton_block(cores, tangents, at, pp, order, weights, rows), frame)

    rows = rows_at_once(chunk_size, frame, order)
    return _variations(_stream(block, samples, frame, rows, _reducers(samples, frame, reducer)), frame)


def sample_misfit(
    samples: Samples,
    data: Array,
    frame: Frame,
    order: int,
    *,
    chunk_size: int | None,
    reducer: Reducer = add,
    gradient: bool = True,
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

    Returns:
      The value, and ``J^T (weights (y - data))`` as variations.
    """
    _check(samples, frame, order, data=data)
    cores = frame_cores(frame, order)

    def block(samples: Samples, measured: Array) -> tuple[Array, SampleGradient | None]:
        at, pp, weights, rows = samples
        value, part = sample_residual_block(cores, at, pp, measured, order, weights, rows, gradient=gradient)
        return value, None if part is None else _part_axes(part, frame)

    reducers = (reducer, _reducers(samples, frame, reducer) if gradient else None)
    rows = rows_at_once(chunk_size, frame, order)
    value, part = _stream(block, samples, frame, rows, reducers, data, 1)
    return value, _variations(part, frame) if gradient else None
