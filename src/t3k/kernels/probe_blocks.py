"""The maps from tangents to probe derivatives and back, for one block of probes.

A block is what one chunk holds: ``ww_i (w, o)``, ``pp_i (w, o)``, and residual jets ``z_i (t, w, o)``, which hold
derivatives. With E = U_i or V_i, the lift of a jet to the mode is ``z_t = t! E^T x_t``; its transpose is
``D_t = t! E z_t``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.jets import add_jets, pad_jet, scale_orders, taylor_scales, total, transform
from t3k.kernels.probe_cores import FrameCore, FrameCores, TangentCore, input_jet, jet_length, pull_residual, weigh_jet
from t3k.kernels.probe_sweeps import EdgeJets, GradientParts, adjoint_sweeps, forward_sweeps
from t3k.kernels.sweeps import Runs, map_cores, stack_runs, unstack_runs
from t3k.kernels.types import Array, Cores, Jet, as_tuple

__all__ = ["GradientBlock", "Inputs", "gauss_newton_block", "jacobian_block", "residual_block", "transpose_block"]


class GradientBlock(NamedTuple):
    """The gradient of a block: dU ``(m, o)`` and dG ``(a k, b)`` a mode, with a leading w where probes are kept.

    Blocks return it grouped by runs of equal cores, so that a long train is not taken apart for every chunk.
    """

    tucker: tuple[Array, ...]
    tt: tuple[Array, ...]


class Inputs(NamedTuple):
    """The probes of a block and the jets that enter the cores, grouped; `order` is the highest that is not zero."""

    runs: Runs
    order: int
    cores: tuple[FrameCore, ...]
    vectors: tuple[tuple[Array, ...], ...]
    xi: tuple[Jet, ...]


def block_inputs(cores: FrameCores, ww: Cores, pp: Cores | None, order: int) -> Inputs:
    """Projects the probes of a block through the Tucker cores."""
    runs = cores.runs.value
    rows = zip(*(as_tuple(train) for train in (ww, pp) if train is not None), strict=True)
    vectors = stack_runs(runs, list(rows))
    xi = map_cores(lambda core, rows: input_jet(core.up, rows), runs, cores.cores, vectors)
    return Inputs(runs, jet_length(len(cores), order) - 1, cores.cores, vectors, xi)


def _forward(inputs: Inputs, tangents: Sequence[TangentCore] | None = None) -> tuple[EdgeJets, ...]:
    """The edge jets of the frame, and of a tangent that is grouped as the frame is."""
    runs, order, cores, vectors, xi = inputs
    if tangents is None:
        return forward_sweeps(runs, cores, xi, order)
    dxi = map_cores(lambda tangent, rows: input_jet(tangent.tucker, rows), runs, tangents, vectors)
    return forward_sweeps(runs, cores, xi, order, tangents, dxi)


def _lift_to_mode(order: int, *pairs: tuple[Array, Jet]) -> Array:
    """``z (t, w, o) = t! sum E^T x_t`` over the pairs (E, x), zero in the orders beyond the jets' length.

    It is one product for all orders and pairs, whose small factor is put together beforehand: z itself is then written
    once.
    """
    rows = []
    for _, jet in pairs:
        k, w = jet[0].shape
        scaled = scale_orders(jet, taylor_scales(len(jet)))
        rows.append(jnp.stack([x.T for x in pad_jet(scaled, order + 1, (k, w), jet[0])]))
    return jnp.concatenate(rows, axis=-1) @ jnp.concatenate([matrix for matrix, _ in pairs])


def jacobian_block(
    cores: FrameCores, tangents: Sequence[TangentCore], ww: Cores, pp: Cores | None, order: int
) -> tuple[Array, ...]:
    """J: the probe derivatives ``(t, w, o)`` of a tangent, one array per mode."""
    inputs = block_inputs(cores, ww, pp, order)

    def lift(core: FrameCore, tangent: TangentCore, jet: EdgeJets) -> Array:
        return _lift_to_mode(order, (core.up, jet.deta or ()), (tangent.tucker, jet.eta))

    zz = map_cores(lift, inputs.runs, inputs.cores, tangents, _forward(inputs, tangents))
    return unstack_runs(inputs.runs, zz)


def point_block(cores: FrameCores, point: Cores, ww: Cores, pp: Cores | None, order: int) -> tuple[Array, ...]:
    """The probe derivatives ``(t, w, o)`` of the tensor that has `point` as Tucker core at each mode in turn."""
    inputs = block_inputs(cores, ww, pp, order)
    matrices = stack_runs(inputs.runs, as_tuple(point))
    zz = map_cores(lambda matrix, jet: _lift_to_mode(order, (matrix, jet.eta)), inputs.runs, matrices, _forward(inputs))
    return unstack_runs(inputs.runs, zz)


def matmul_probes(kept: bool, x: Array, rows: Array) -> Array:
    """``x (m, w)`` times ``rows (w, o)``: summed over the probes to ``(m, o)``, or kept as ``(w, m, o)``."""
    return x.T[:, :, None] * rows[:, None, :] if kept else x @ rows


def _sum_orders(jet: Jet, z: Array, kept: bool) -> Array:
    """``sum_t x_t z_t`` for a jet ``(m, w)`` and an array ``(t, w, o)``."""
    return total(matmul_probes(kept, x, z[t]) for t, x in enumerate(jet))


def _contract_jets(x: Jet, y: Jet) -> Array:
    """``sum_t,w x_t[m, w] y_t[k, w]``, shape ``(m, k)``."""
    return total(a @ b.T for a, b in zip(x, y, strict=True))


def _weigh_array(z: Array, orders: Array | None, rows: Array | None) -> Array:
    z = z if orders is None else z * orders[:, None, None]
    return z if rows is None else z * rows[None, :, None]


def _weights(runs: Runs, weights: Array | None) -> tuple[Array | None, ...]:
    """The weights ``(d, t)`` of the orders, mode by mode and grouped."""
    return (None,) * len(runs) if weights is None else stack_runs(runs, list(weights))


def _assemble(
    inputs: Inputs, parts: Sequence[GradientParts], residuals: Sequence[Array], *, kept: bool = False
) -> GradientBlock:
    """``dU = sum_w dxi~_0 w + dxi~_1 p + residual``, where the residual part is ``sum_t eta_t z_t``."""

    def tucker(part: GradientParts, residual: Array, rows: Sequence[Array]) -> Array:
        terms = [matmul_probes(kept, x, y) for x, y in zip(part.dxi_tilde, rows, strict=False)]
        return total([residual, *terms])

    changes = map_cores(tucker, inputs.runs, parts, residuals, inputs.vectors)
    return GradientBlock(changes, tuple(part.core for part in parts))


def transpose_block(
    cores: FrameCores,
    ww: Cores,
    pp: Cores | None,
    zz: Cores,
    order: int,
    rows: Array | None = None,
    *,
    kept: bool = False,
) -> GradientBlock:
    """J^T: the gradient of the residual jets ``zz``, each probe times its weight in `rows` ``(w,)``."""
    inputs = block_inputs(cores, ww, pp, order)
    runs, grouped = inputs.runs, stack_runs(inputs.runs, as_tuple(zz))

    def pull(core: FrameCore, z: Array) -> Jet:
        return weigh_jet(pull_residual(core.up, z, inputs.order + 1), None, rows)

    def residual(part: GradientParts, z: Array) -> Array:
        eta = weigh_jet(scale_orders(part.eta, taylor_scales(len(part.eta))), None, rows)
        return _sum_orders(eta, z, kept)

    pulled = map_cores(pull, runs, inputs.cores, grouped)
    parts = adjoint_sweeps(runs, inputs.cores, inputs.xi, pulled, inputs.order, kept=kept)
    return _assemble(inputs, parts, map_cores(residual, runs, parts, grouped), kept=kept)


def _known_frame(jets: Sequence[EdgeJets]) -> Sequence[EdgeJets]:
    """Keeps the compiler from storing every lifted jet of the forward sweep for the adjoint: lifting is cheaper."""
    return jax.lax.optimization_barrier(tuple(jet._replace(eta=(), deta=()) for jet in jets))


def residual_block(
    cores: FrameCores,
    point: Cores,
    ww: Cores,
    pp: Cores | None,
    data: Cores,
    order: int,
    weights: Array | None = None,
    rows: Array | None = None,
    *,
    gradient: bool = True,
) -> tuple[Array, GradientBlock | None]:
    """The misfit ``1/2 sum weights_it rows_w |z - data|^2`` of a block, and its gradient ``J^T (weights (z - data))``.

    Args:
      cores: the frame, from `frame_cores`.
      point: Tucker core ``(m, o)`` that makes the frame into the base point, at each mode in turn.
      ww: probes ``(w, o)``.
      pp: directions ``(w, o)``, or None where order is 0.
      data: measured derivatives ``(t, w, o)``.
      order: K.
      weights: for each mode and order, ``(d, t)``.
      rows: for each probe, ``(w,)``.
      gradient: False leaves the gradient out (None).
    """
    inputs = block_inputs(cores, ww, pp, order)
    runs, jets = inputs.runs, _forward(inputs)

    def compare(
        core: FrameCore, matrix: Array, jet: EdgeJets, measured: Array, orders: Array | None
    ) -> tuple[Array, Jet, Array]:
        residual = _lift_to_mode(order, (matrix, jet.eta)) - measured
        weighted = _weigh_array(residual, orders, rows)
        eta = scale_orders(jet.eta, taylor_scales(len(jet.eta)))
        pulled = pull_residual(core.up, weighted, inputs.order + 1)
        return 0.5 * jnp.vdot(weighted, residual), pulled, _sum_orders(eta, weighted, kept=False)

    matrices, measured = (stack_runs(runs, as_tuple(train)) for train in (point, data))
    compared = map_cores(compare, runs, inputs.cores, matrices, jets, measured, _weights(runs, weights))
    values, pulled, residuals = zip(*compared, strict=True)
    value = total(jnp.sum(x) for x in values)
    if not gradient:
        return value, None
    parts = adjoint_sweeps(runs, inputs.cores, inputs.xi, pulled, inputs.order, _known_frame(jets))
    return value, _assemble(inputs, parts, residuals)


def gauss_newton_block(
    cores: FrameCores,
    tangents: Sequence[TangentCore],
    ww: Cores,
    pp: Cores | None,
    order: int,
    weights: Array | None = None,
    rows: Array | None = None,
) -> GradientBlock:
    """``J^T (weights J v)`` of a block; the ambient mode is summed out beforehand, so J v itself is never formed.

    With ``z_t = t! (U^T deta_t + V^T eta_t)``, both uses of z need only U U^T, U V^T and products of small jets:
    ``D_t = t!^2 (U U^T deta_t + U V^T eta_t)`` and ``eta_t z_t = t!^2 (eta_t deta_t^T U + eta_t eta_t^T V)``.
    """
    inputs = block_inputs(cores, ww, pp, order)
    runs, jets = inputs.runs, _forward(inputs, tangents)
    squares = tuple(scale**2 for scale in taylor_scales(inputs.order + 1))

    def reflect(core: FrameCore, tangent: TangentCore, jet: EdgeJets, orders: Array | None) -> tuple[Jet, Array]:
        deta, eta = (weigh_jet(scale_orders(x or (), squares), orders, rows) for x in (jet.deta, jet.eta))
        up, tucker = core.up, tangent.tucker
        pulled = add_jets(transform(up @ up.T, deta), transform(up @ tucker.T, eta))
        return pulled, _contract_jets(jet.eta, deta) @ up + _contract_jets(jet.eta, eta) @ tucker

    reflected = map_cores(reflect, runs, inputs.cores, tangents, jets, _weights(runs, weights))
    pulled, residuals = zip(*reflected, strict=True)
    parts = adjoint_sweeps(runs, inputs.cores, inputs.xi, pulled, inputs.order, _known_frame(jets))
    return _assemble(inputs, parts, residuals)
