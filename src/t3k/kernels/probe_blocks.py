"""The maps from tangents to probe derivatives and back, for one block of probes.

A block is what one chunk holds: ``ww_i (w, o)``, ``pp_i (w, o)``, and residual jets ``z_i (t, w, o)``, which hold
derivatives. With E = U_i or V_i, the lift of a jet to the mode is ``z_t = t! E^T x_t``; its transpose is
``D_t = t! E z_t``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.jets import add_jets, scale_orders, taylor_scales, total, transform
from t3k.kernels.probe_cores import FrameCore, TangentCore, input_jets, jet_length, pull_residual, weigh_jet
from t3k.kernels.probe_sweeps import EdgeJets, GradientParts, adjoint_sweeps, forward_sweeps
from t3k.kernels.sweeps import Runs, find_runs, stack_runs, unstack_runs
from t3k.kernels.types import Array, Cores, Jet, as_tuple

__all__ = ["GradientBlock", "Inputs", "gauss_newton_block", "jacobian_block", "residual_block", "transpose_block"]


class GradientBlock(NamedTuple):
    """The gradient of a block: dU ``(m, o)`` and dG ``(a k, b)`` a mode, with a leading w where probes are kept."""

    tucker: tuple[Array, ...]
    tt: tuple[Array, ...]


class Inputs(NamedTuple):
    """The probes of a block and the jets that enter the cores; `order` is the highest that is not zero."""

    runs: Runs
    order: int
    cores: tuple[FrameCore, ...]
    ww: tuple[Array, ...]
    pp: tuple[Array, ...] | None
    xi: tuple[Jet, ...]


def block_inputs(cores: Sequence[FrameCore], ww: Cores, pp: Cores | None, order: int) -> Inputs:
    """Projects the probes of a block through the Tucker cores; items are grouped by runs of equal cores."""
    ww, pp = as_tuple(ww), None if pp is None else as_tuple(pp)
    runs = find_runs(cores)
    xi = input_jets(tuple(core.up for core in cores), ww, pp)
    return Inputs(runs, jet_length(len(ww), order) - 1, stack_runs(runs, cores), ww, pp, stack_runs(runs, xi))


def _forward(inputs: Inputs, tangents: Sequence[TangentCore] | None = None) -> tuple[EdgeJets, ...]:
    runs, order, cores, ww, pp, xi = inputs
    if tangents is None:
        return forward_sweeps(runs, cores, xi, order)
    dxi = stack_runs(runs, input_jets(tuple(core.tucker for core in tangents), ww, pp))
    return forward_sweeps(runs, cores, xi, order, stack_runs(runs, tangents), dxi)


def _lift_to_mode(order: int, *pairs: tuple[Array, Jet]) -> Array:
    """``z (t, w, o) = t! sum E^T x_t`` over the pairs (E, x), zero in the orders beyond the jets' length."""
    jet = add_jets(*(tuple(x.T @ matrix for x in jet) for matrix, jet in pairs))
    jet = scale_orders(jet, taylor_scales(len(jet)))
    return jnp.stack([*jet, *(jnp.zeros_like(jet[0]) for _ in range(order + 1 - len(jet)))])


def jacobian_block(
    cores: Sequence[FrameCore], tangents: Sequence[TangentCore], ww: Cores, pp: Cores | None, order: int
) -> tuple[Array, ...]:
    """J: the probe derivatives ``(t, w, o)`` of a tangent, one array per mode."""
    inputs = block_inputs(cores, ww, pp, order)
    jets = unstack_runs(inputs.runs, _forward(inputs, tangents))
    return tuple(
        _lift_to_mode(order, (core.up, jet.deta), (tangent.tucker, jet.eta))
        for core, tangent, jet in zip(cores, tangents, jets, strict=True)
    )


def point_block(cores: Sequence[FrameCore], point: Cores, ww: Cores, pp: Cores | None, order: int) -> tuple[Array, ...]:
    """The probe derivatives ``(t, w, o)`` of the tensor that has `point` as Tucker core at each mode in turn."""
    inputs = block_inputs(cores, ww, pp, order)
    jets = unstack_runs(inputs.runs, _forward(inputs))
    return tuple(_lift_to_mode(order, (matrix, jet.eta)) for matrix, jet in zip(as_tuple(point), jets, strict=True))


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


def _assemble(inputs: Inputs, parts: Sequence[GradientParts], residuals: Sequence[Array], kept: bool) -> GradientBlock:
    """``dU = sum_w dxi~_0 w + dxi~_1 p + residual``, where the residual part is ``sum_t eta_t z_t``."""
    vectors = zip(*(train for train in (inputs.ww, inputs.pp) if train is not None), strict=True)
    tucker = []
    for part, residual, rows in zip(parts, residuals, vectors, strict=True):
        terms = [matmul_probes(kept, x, y) for x, y in zip(part.dxi_tilde, rows, strict=False)]
        tucker.append(total([residual, *terms]))
    return GradientBlock(tuple(tucker), tuple(part.core for part in parts))


def transpose_block(
    cores: Sequence[FrameCore],
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
    zz = as_tuple(zz)
    pulled = [pull_residual(core.up, z, inputs.order + 1) for core, z in zip(cores, zz, strict=True)]
    grouped = stack_runs(inputs.runs, [weigh_jet(jet, None, rows) for jet in pulled])
    parts = adjoint_sweeps(inputs.runs, inputs.cores, inputs.xi, grouped, inputs.order, kept=kept)
    parts = unstack_runs(inputs.runs, parts)
    etas = [weigh_jet(scale_orders(part.eta, taylor_scales(len(part.eta))), None, rows) for part in parts]
    return _assemble(inputs, parts, [_sum_orders(eta, z, kept) for eta, z in zip(etas, zz, strict=True)], kept)


def _known_frame(jets: Sequence[EdgeJets]) -> Sequence[EdgeJets]:
    """Keeps the compiler from storing every lifted jet of the forward sweep for the adjoint: lifting is cheaper."""
    return jax.lax.optimization_barrier(tuple(jet._replace(eta=(), deta=()) for jet in jets))


def residual_block(
    cores: Sequence[FrameCore],
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
    jets = _forward(inputs)
    etas = [jet.eta for jet in unstack_runs(inputs.runs, jets)]
    values, pulled, residuals = [], [], []
    for i, (core, matrix, eta, measured) in enumerate(zip(cores, as_tuple(point), etas, as_tuple(data), strict=True)):
        residual = _lift_to_mode(order, (matrix, eta)) - measured
        weighted = _weigh_array(residual, None if weights is None else weights[i], rows)
        values.append(0.5 * jnp.vdot(weighted, residual))
        pulled.append(pull_residual(core.up, weighted, inputs.order + 1))
        residuals.append(_sum_orders(scale_orders(eta, taylor_scales(len(eta))), weighted, kept=False))
    if not gradient:
        return total(values), None
    known = _known_frame(jets)
    parts = adjoint_sweeps(inputs.runs, inputs.cores, inputs.xi, stack_runs(inputs.runs, pulled), inputs.order, known)
    return total(values), _assemble(inputs, unstack_runs(inputs.runs, parts), residuals, kept=False)


def gauss_newton_block(
    cores: Sequence[FrameCore],
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
    jets = _forward(inputs, tangents)
    squares = tuple(scale**2 for scale in taylor_scales(inputs.order + 1))
    pulled, residuals = [], []
    for i, (core, tangent, jet) in enumerate(zip(cores, tangents, unstack_runs(inputs.runs, jets), strict=True)):
        orders = None if weights is None else weights[i]
        deta, eta = (weigh_jet(scale_orders(x, squares), orders, rows) for x in (jet.deta, jet.eta))
        up, tucker = core.up, tangent.tucker
        pulled.append(add_jets(transform(up @ up.T, deta), transform(up @ tucker.T, eta)))
        residuals.append(_contract_jets(jet.eta, deta) @ up + _contract_jets(jet.eta, eta) @ tucker)
    known = _known_frame(jets)
    parts = adjoint_sweeps(inputs.runs, inputs.cores, inputs.xi, stack_runs(inputs.runs, pulled), inputs.order, known)
    return _assemble(inputs, unstack_runs(inputs.runs, parts), residuals, kept=False)
