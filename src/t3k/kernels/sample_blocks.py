"""The maps from tangents to samples with no mode left free and back, for one block of samples.

A sample is *at* a vector ``(w, o)`` in every mode (an apply) or at an index ``(w,)`` in every mode (an entry). The two
differ in two places only: what enters a core, ``xi = U w`` or a column of U, and what becomes of the adjoint of it in
dU, an outer product with w or a scatter to that column. No unit vector is ever formed.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.jets import scale_orders, taylor_scales, total, transposed
from t3k.kernels.mode_products import matmul_rows
from t3k.kernels.probe_cores import FrameCore, FrameCores, TangentCore
from t3k.kernels.reducers import IndexedRows
from t3k.kernels.sample_sweeps import SampleParts, adjoint_sweep, forward_sweep
from t3k.kernels.sweeps import Runs, map_cores, stack_runs, unstack_runs
from t3k.kernels.types import Array, Cores, Jet, as_tuple

__all__ = [
    "SampleGradient",
    "sample_gauss_newton_block",
    "sample_jacobian_block",
    "sample_residual_block",
    "sample_transpose_block",
]


class SampleGradient(NamedTuple):
    """The gradient of a block, per mode: dG ``(a k, b)`` and the two parts of dU, of which one may be missing.

    ``tucker (m, o)`` comes from vectors, and `columns` have yet to be added to those of dU at the samples' indices.
    Where samples are kept apart, both trains have a leading w, and all of dU is in `tucker`. Both are grouped by runs
    of equal cores, `columns` are not.
    """

    tucker: tuple[Array | None, ...]
    columns: tuple[IndexedRows | None, ...]
    tt: tuple[Array, ...]


class _Inputs(NamedTuple):
    """The samples of a block and the jets that enter the cores, grouped; `order` is the highest that is not zero."""

    runs: Runs
    order: int
    cores: tuple[FrameCore, ...]
    vectors: tuple[tuple[Array, ...], ...]
    xi: tuple[Jet, ...]


def _enter(matrix: Array, at: Array) -> Array:
    """``matrix (m, o)`` applied to every vector ``(w, o)``, or its columns at the indices ``(w,)``: ``(m, w)``."""
    return transposed(matrix.T[at]) if at.ndim == 1 else matrix @ at.T


def _enter_jet(matrix: Array, vectors: Sequence[Array]) -> Jet:
    return tuple(_enter(matrix, at) for at in vectors)


def _block_inputs(cores: FrameCores, at: Cores, pp: Cores | None, order: int) -> _Inputs:
    """Projects the samples of a block through the Tucker cores."""
    runs = cores.runs.value
    rows = zip(*(as_tuple(train) for train in (at, pp) if train is not None), strict=True)
    vectors = stack_runs(runs, list(rows))
    xi = map_cores(lambda core, rows: _enter_jet(core.up, rows), runs, cores.cores, vectors)
    return _Inputs(runs, min(len(cores), order), cores.cores, vectors, xi)


def _forward(inputs: _Inputs, tangents: Sequence[TangentCore] | None = None) -> tuple[Jet, tuple[Jet, ...]]:
    runs, order, cores, vectors, xi = inputs
    if tangents is None:
        return forward_sweep(runs, cores, xi, order)
    dxi = map_cores(lambda tangent, rows: _enter_jet(tangent.tucker, rows), runs, tangents, vectors)
    return forward_sweep(runs, cores, xi, order, tangents, dxi)


def _derivatives(jet: Jet, order: int) -> Array:
    """The derivatives ``(t, w)`` of a jet of arrays ``(w,)``, zero in the orders beyond its length."""
    scaled = scale_orders(jet, taylor_scales(len(jet)))
    return jnp.stack([*scaled, *(jnp.zeros_like(jet[0]) for _ in range(order + 1 - len(jet)))])


def _adjoint_jet(residual: Array, length: int) -> Jet:
    """``t! z_t``: the transpose of `_derivatives`."""
    return scale_orders(tuple(residual[t] for t in range(length)), taylor_scales(length))


def _weigh(residual: Array, orders: Array | None, rows: Array | None) -> Array:
    residual = residual if orders is None else residual * orders[:, None]
    return residual if rows is None else residual * rows[None, :]


def _tucker(kept: bool, core: FrameCore, part: SampleParts, vectors: Sequence[Array]) -> Array | None:
    """``sum_w dxi~_0 w + dxi~_1 p``, or these for every sample; None if there is nothing but indices to add at."""
    terms = []
    for x, at in zip(part.dxi_tilde, vectors, strict=False):
        if at.ndim == 2:
            terms.append(matmul_rows(kept, x, at))
        elif kept:
            (m, w), size = x.shape, core.up.shape[1]
            terms.append(jnp.zeros((w, m, size), x.dtype).at[jnp.arange(w), :, at].set(x.T))
    return total(terms) if terms else None


def _columns(kept: bool, part: SampleParts, vectors: Sequence[Array]) -> IndexedRows | None:
    return IndexedRows(vectors[0], part.dxi_tilde[0].T) if vectors[0].ndim == 1 and not kept else None


def _assemble(inputs: _Inputs, mus: Sequence[Jet], residual: Array, *, kept: bool = False) -> SampleGradient:
    """The gradient from residuals ``(t, w)``."""
    # Keeps the compiler from storing every lifted jet of the forward sweep for the adjoint: lifting is cheaper.
    mus = jax.lax.optimization_barrier(tuple(mus))
    adjoint = _adjoint_jet(residual, inputs.order + 1)
    parts = adjoint_sweep(inputs.runs, inputs.cores, inputs.xi, mus, adjoint, kept=kept)
    tucker = map_cores(partial(_tucker, kept), inputs.runs, inputs.cores, parts, inputs.vectors)
    columns = map_cores(partial(_columns, kept), inputs.runs, parts, inputs.vectors)
    return SampleGradient(tucker, unstack_runs(inputs.runs, columns), tuple(part.core for part in parts))


def sample_jacobian_block(
    cores: FrameCores, tangents: Sequence[TangentCore] | None, at: Cores, pp: Cores | None, order: int
) -> Array:
    """The sampled derivatives ``(t, w)`` of a tangent, or (`tangents` None) of the base point."""
    sampled, _ = _forward(_block_inputs(cores, at, pp, order), tangents)
    return _derivatives(sampled, order)


def sample_transpose_block(
    cores: FrameCores,
    at: Cores,
    pp: Cores | None,
    residual: Array,
    order: int,
    rows: Array | None = None,
    *,
    kept: bool = False,
) -> SampleGradient:
    """J^T: the gradient of residuals ``(t, w)``, each sample times its weight in `rows` ``(w,)``."""
    inputs = _block_inputs(cores, at, pp, order)
    _, mus = _forward(inputs)
    return _assemble(inputs, mus, _weigh(residual, None, rows), kept=kept)


def sample_residual_block(
    cores: FrameCores,
    at: Cores,
    pp: Cores | None,
    data: Array,
    order: int,
    weights: Array | None = None,
    rows: Array | None = None,
    *,
    gradient: bool = True,
) -> tuple[Array, SampleGradient | None]:
    """``1/2 sum weights_t rows_w (y - data)^2`` of a block at the base point, and its gradient (or None)."""
    inputs = _block_inputs(cores, at, pp, order)
    sampled, mus = _forward(inputs)
    residual = _derivatives(sampled, order) - data
    weighted = _weigh(residual, weights, rows)
    value = 0.5 * jnp.vdot(weighted, residual)
    return value, _assemble(inputs, mus, weighted) if gradient else None


def sample_gauss_newton_block(
    cores: FrameCores,
    tangents: Sequence[TangentCore],
    at: Cores,
    pp: Cores | None,
    order: int,
    weights: Array | None = None,
    rows: Array | None = None,
) -> SampleGradient:
    """``J^T (weights J v)`` of a block."""
    inputs = _block_inputs(cores, at, pp, order)
    sampled, mus = _forward(inputs, tangents)
    return _assemble(inputs, mus, _weigh(_derivatives(sampled, order), weights, rows))
