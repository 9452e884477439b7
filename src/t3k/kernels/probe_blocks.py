"""The maps from tangents to probe derivatives and back, for one block of probes.

A block is ``ww_i (w, o)``, ``pp_i (w, o)``, and residual jets ``z_i (t, w, o)``, which hold derivatives. It is usually
what one chunk holds: then its middle part, between the products with the ambient axis, is taken at once too. A block of
all rows has it taken chunk by chunk instead (`narrow_loop`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.jets import add_and_store, scale_orders, taylor_scales, total, transform
from t3k.kernels.mode_products import input_jet, lift_to_mode, matmul_rows, pull_residual, sum_orders
from t3k.kernels.narrow_loop import AT_ONCE, NarrowLoop
from t3k.kernels.probe_cores import FrameCore, FrameCores, TangentCore, jet_length, weigh_jet
from t3k.kernels.probe_sweeps import EdgeJets, adjoint_sweeps, forward_sweeps
from t3k.kernels.sweeps import Runs, map_cores, stack_runs, unstack_runs
from t3k.kernels.types import Array, Cores, Jet, as_tuple

__all__ = [
    "GradientBlock",
    "gauss_newton_block",
    "jacobian_block",
    "point_block",
    "residual_block",
    "transpose_block",
]


class GradientBlock(NamedTuple):
    """The gradient of a block: dU ``(m, o)`` and dG ``(a k, b)`` a mode, with a leading w where probes are kept.

    Blocks return it grouped by runs of equal cores, so that a long train is not taken apart for every chunk.
    """

    tucker: tuple[Array, ...]
    tt: tuple[Array, ...]


class _Inputs(NamedTuple):
    """The probes of a block, grouped as its loop has them, and the jets that enter the cores, grouped by runs.

    `order` is the highest that is not zero, `up` are the Tucker cores that go with the probes.
    """

    runs: Runs
    modes: Runs
    order: int
    vectors: tuple[tuple[Array, ...], ...]
    up: Sequence[Array]
    xi: Sequence[Jet]


def _block_inputs(cores: FrameCores, ww: Cores, pp: Cores | None, order: int, loop: NarrowLoop = AT_ONCE) -> _Inputs:
    """Projects the probes of a block through the Tucker cores."""
    runs = cores.runs.value
    modes = loop.mode_runs(runs)
    rows = zip(*(as_tuple(train) for train in (ww, pp) if train is not None), strict=True)
    vectors = stack_runs(modes, list(rows))
    up = loop.by_modes(runs, [core.up for core in cores.cores])
    xi = loop.by_runs(runs, map_cores(input_jet, modes, up, vectors))
    return _Inputs(runs, modes, jet_length(len(cores), order) - 1, vectors, up, xi)


def _tangent_inputs(inputs: _Inputs, tangents: Sequence[TangentCore], loop: NarrowLoop) -> tuple[Any, Any]:
    """The tangent's Tucker cores as the probes are grouped, and the jets that enter its cores, by runs."""
    tucker = loop.by_modes(inputs.runs, [tangent.tucker for tangent in tangents])
    return tucker, loop.by_runs(inputs.runs, map_cores(input_jet, inputs.modes, tucker, inputs.vectors))


def jacobian_block(
    cores: FrameCores,
    tangents: Sequence[TangentCore],
    ww: Cores,
    pp: Cores | None,
    order: int,
    *,
    loop: NarrowLoop = AT_ONCE,
) -> tuple[Array, ...]:
    """J: the probe derivatives ``(t, w, o)`` of a tangent, one array per mode."""
    inputs = _block_inputs(cores, ww, pp, order, loop)
    runs, modes = inputs.runs, inputs.modes
    tucker, dxi = _tangent_inputs(inputs, tangents, loop)

    def forward(jets: Any, fixed: Any, _: Array | None) -> tuple[Any, Any]:
        (xi, dxi), (cores, tangents) = jets, fixed
        edges = forward_sweeps(runs, cores, xi, inputs.order, tangents, dxi)
        return (), tuple((edge.deta or (), edge.eta) for edge in edges)

    _, jets = loop.run(forward, (inputs.xi, dxi), (cores.cores, tangents))

    def lift(up: Array, tucker: Array, jets: tuple[Jet, Jet]) -> Array:
        return lift_to_mode(order, (up, jets[0]), (tucker, jets[1]))

    return unstack_runs(modes, map_cores(lift, modes, inputs.up, tucker, loop.by_modes(runs, jets)))


def point_block(
    cores: FrameCores, point: Cores, ww: Cores, pp: Cores | None, order: int, *, loop: NarrowLoop = AT_ONCE
) -> tuple[Array, ...]:
    """The probe derivatives ``(t, w, o)`` of the tensor that has `point` as Tucker core at each mode in turn."""
    inputs = _block_inputs(cores, ww, pp, order, loop)
    runs, modes = inputs.runs, inputs.modes

    def forward(xi: Any, cores: Any, _: Array | None) -> tuple[Any, Any]:
        return (), tuple(edge.eta for edge in forward_sweeps(runs, cores, xi, inputs.order))

    _, etas = loop.run(forward, inputs.xi, cores.cores)
    matrices = stack_runs(modes, as_tuple(point))
    zz = map_cores(lambda matrix, eta: lift_to_mode(order, (matrix, eta)), modes, matrices, loop.by_modes(runs, etas))
    return unstack_runs(modes, zz)


def _contract_jets(x: Jet, y: Jet) -> Array:
    """``sum_t,w x_t[m, w] y_t[k, w]``, shape ``(m, k)``."""
    return total(a @ b.T for a, b in zip(x, y, strict=True))


def _weigh_array(z: Array, orders: Array | None, rows: Array | None) -> Array:
    z = z if orders is None else z * orders[:, None, None]
    return z if rows is None else z * rows[None, :, None]


def _weights(runs: Runs, weights: Array | None) -> tuple[Array | None, ...]:
    """The weights ``(d, t)`` of the orders, mode by mode and grouped."""
    return (None,) * len(runs) if weights is None else stack_runs(runs, list(weights))


def _tucker_gradient(dxi_tilde: Jet, rows: Sequence[Array], residual: Array, *, kept: bool = False) -> Array:
    """``dU = sum_w dxi~_0 w + dxi~_1 p + residual``, where the residual part is ``sum_t eta_t z_t``."""
    return total([residual, *(matmul_rows(kept, x, y) for x, y in zip(dxi_tilde, rows, strict=False))])


def transpose_block(
    cores: FrameCores,
    ww: Cores,
    pp: Cores | None,
    zz: Cores,
    order: int,
    rows: Array | None = None,
    *,
    kept: bool = False,
    loop: NarrowLoop = AT_ONCE,
) -> GradientBlock:
    """J^T: the gradient of the residual jets ``zz``, each probe times its weight in `rows` ``(w,)``."""
    inputs = _block_inputs(cores, ww, pp, order, loop)
    runs, modes = inputs.runs, inputs.modes
    residuals = stack_runs(modes, as_tuple(zz))
    pulled = map_cores(lambda up, z: pull_residual(up, z, inputs.order + 1), modes, inputs.up, residuals)

    def adjoint(jets: Any, cores: Any, rows: Array | None) -> tuple[Any, Any]:
        xi, pulled = jets
        weighted = [weigh_jet(jet, None, rows) for jet in pulled]
        parts = adjoint_sweeps(runs, cores, xi, weighted, inputs.order, kept=kept)
        etas = [weigh_jet(scale_orders(part.eta, taylor_scales(len(part.eta))), None, rows) for part in parts]
        return tuple(part.core for part in parts), tuple(
            (part.dxi_tilde, eta) for part, eta in zip(parts, etas, strict=True)
        )

    tt, jets = loop.run(adjoint, (inputs.xi, loop.by_runs(runs, pulled)), cores.cores, rows)

    def tucker(jets: tuple[Jet, Jet], rows: Sequence[Array], z: Array) -> Array:
        dxi_tilde, eta = jets
        return _tucker_gradient(dxi_tilde, rows, sum_orders(eta, z, kept), kept=kept)

    changes = map_cores(tucker, modes, loop.by_modes(runs, jets), inputs.vectors, residuals)
    return GradientBlock(tuple(loop.by_runs(runs, changes)), tt)


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
    inputs = _block_inputs(cores, ww, pp, order)
    runs, jets = inputs.runs, forward_sweeps(inputs.runs, cores.cores, inputs.xi, inputs.order)

    def compare(
        core: FrameCore, matrix: Array, jet: EdgeJets, measured: Array, orders: Array | None
    ) -> tuple[Array, Jet, Array]:
        residual = lift_to_mode(order, (matrix, jet.eta)) - measured
        weighted = _weigh_array(residual, orders, rows)
        eta = scale_orders(jet.eta, taylor_scales(len(jet.eta)))
        pulled = pull_residual(core.up, weighted, inputs.order + 1)
        return 0.5 * jnp.vdot(weighted, residual), pulled, sum_orders(eta, weighted, kept=False)

    matrices, measured = (stack_runs(runs, as_tuple(train)) for train in (point, data))
    compared = map_cores(compare, runs, cores.cores, matrices, jets, measured, _weights(runs, weights))
    values, pulled, residuals = zip(*compared, strict=True)
    value = total(jnp.sum(x) for x in values)
    if not gradient:
        return value, None
    parts = adjoint_sweeps(runs, cores.cores, inputs.xi, pulled, inputs.order, _known_frame(jets))
    changes = map_cores(_tucker_gradient, runs, [part.dxi_tilde for part in parts], inputs.vectors, residuals)
    return value, GradientBlock(changes, tuple(part.core for part in parts))


def gauss_newton_block(
    cores: FrameCores,
    tangents: Sequence[TangentCore],
    ww: Cores,
    pp: Cores | None,
    order: int,
    weights: Array | None = None,
    rows: Array | None = None,
    *,
    loop: NarrowLoop = AT_ONCE,
) -> GradientBlock:
    """``J^T (weights J v)`` of a block; the ambient mode is summed out beforehand, so J v itself is never formed.

    With ``z_t = t! (U^T deta_t + V^T eta_t)``, both uses of z need only U U^T, U V^T and products of small jets:
    ``D_t = t!^2 (U U^T deta_t + U V^T eta_t)`` and ``eta_t z_t = t!^2 (eta_t deta_t^T U + eta_t eta_t^T V)``.
    """
    inputs = _block_inputs(cores, ww, pp, order, loop)
    runs, modes = inputs.runs, inputs.modes
    tucker, dxi = _tangent_inputs(inputs, tangents, loop)
    squares = tuple(scale**2 for scale in taylor_scales(inputs.order + 1))

    def product(jets: Any, fixed: Any, rows: Array | None) -> tuple[Any, Any]:
        (xi, dxi), (cores, tangents, weights) = jets, fixed

        def reflect(tangent: TangentCore, jet: EdgeJets, orders: Array | None) -> tuple[Jet, Any]:
            deta, eta = (weigh_jet(scale_orders(x or (), squares), orders, rows) for x in (jet.deta, jet.eta))
            pulled = add_and_store(transform(tangent.up_up, deta), transform(tangent.up_tucker, eta))
            return pulled, (_contract_jets(jet.eta, deta), _contract_jets(jet.eta, eta))

        edges = forward_sweeps(runs, cores, xi, inputs.order, tangents, dxi)
        pulled, coefficients = zip(*map_cores(reflect, runs, tangents, edges, _weights(runs, weights)), strict=True)
        parts = adjoint_sweeps(runs, cores, xi, pulled, inputs.order, _known_frame(edges))
        return (tuple(part.core for part in parts), coefficients), tuple(part.dxi_tilde for part in parts)

    (tt, coefficients), jets = loop.run(product, (inputs.xi, dxi), (cores.cores, tangents, weights), rows)

    def gradient(found: Any, rows: Sequence[Array], up: Array, tucker: Array) -> Array:
        dxi_tilde, (on_up, on_tucker) = found
        return _tucker_gradient(dxi_tilde, rows, on_up @ up + on_tucker @ tucker)

    by_modes = loop.by_modes(runs, list(zip(jets, coefficients, strict=True)))
    changes = map_cores(gradient, modes, by_modes, inputs.vectors, inputs.up, tucker)
    return GradientBlock(tuple(loop.by_runs(runs, changes)), tt)
