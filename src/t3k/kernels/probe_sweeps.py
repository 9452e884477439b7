"""The sweeps over a block of probes, forward and adjoint; see `edge_steps` for the recursions.

Both work on grouped items (see `sweeps`) and on jets of Taylor coefficients. `forward_sweeps` yields the edge
variables of a frame, and of a tangent in it. `adjoint_sweeps` yields the parts of the gradient; it takes the frame's
jets where a forward sweep has left them, and otherwise computes them as it goes, so that each is lifted once.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.constants import filled_like
from t3k.kernels.edge_steps import (
    core_gradient,
    core_gradients_kept,
    deta_jet,
    lifted_dxi_tilde,
    lifted_sigma_tilde,
    lifted_tau_tilde,
    push_sigma,
    push_tau,
)
from t3k.kernels.jets import multiply, pad_jet, transform, transform_pair
from t3k.kernels.probe_cores import FrameCore, TangentCore
from t3k.kernels.sweeps import Runs, sweep
from t3k.kernels.types import Array, Jet

__all__ = ["EdgeJets", "GradientParts", "adjoint_sweeps", "forward_sweeps"]


#: Lifted jets of a core up to this size may wait, and those of the next core be computed at the same time.
CONCURRENT_BYTES = 8 * 2**20


class EdgeJets(NamedTuple):
    """The edge variables at one core: mu and nu enter it from both sides, eta and deta leave it to the mode."""

    mu: Jet
    nu: Jet
    eta: Jet
    deta: Jet | None


class GradientParts(NamedTuple):
    """The gradient at one core: dG itself, and the jets that make dU together with the probes and residuals."""

    core: Array
    dxi_tilde: Jet
    eta: Jet


class _Item(NamedTuple):
    """What a step sees of a core; what this sweep does without is None or the empty jet."""

    core: FrameCore
    xi: Jet
    tangent: TangentCore | None = None
    dxi: Jet = ()
    pulled: Jet = ()
    mu: Jet = ()
    nu: Jet = ()
    from_right: Any = None


def _items(runs: Runs, **columns: Sequence[Any] | None) -> list[_Item]:
    present = {name: column for name, column in columns.items() if column is not None}
    return [_Item(**{name: column[j] for name, column in present.items()}) for j in range(len(runs))]


def _left_bond(item: _Item) -> int:
    return item.core.left.shape[-1] // item.core.up.shape[-2]


def _right_bond(item: _Item) -> int:
    return item.core.right.shape[-1] // item.core.up.shape[-2]


def _one(bond: int, item: _Item) -> Jet:
    """The jet 1 on an end bond, which is summed over."""
    return (filled_like(item.xi[0], 1, (bond, item.xi[0].shape[-1])),)


def _settle(order: int, first: str, second: str) -> Any:
    """Pads a carry of two jets to the length that they keep along a scanned run, where L and R are square in bonds."""

    def settle(carry: tuple[Jet | None, Jet | None], item: _Item) -> tuple[Jet | None, Jet | None]:
        def pad(jet: Jet | None, side: str) -> Jet | None:
            shape = (getattr(item.core, side).shape[-2], item.xi[0].shape[-1])
            return None if jet is None else pad_jet(jet, order + 1, shape, item.xi[0])

        return pad(carry[0], first), pad(carry[1], second)

    return settle


def _forward_from_right(order: int, carry: tuple[Jet, Any], item: _Item) -> tuple[Any, Any]:
    nu, tau = carry
    tangent, lifted = item.tangent, multiply(item.xi, nu, order + 1)
    if tangent is None:
        return (transform(item.core.right, lifted), None), (nu, None)
    following, varied = transform_pair(tangent.right_and_variation, item.core.right.shape[-2], lifted)
    matrices = tangent.left_to_left, tangent.down_to_left
    return (following, push_tau(*matrices, varied, tau, nu, item.xi, item.dxi, order + 1)), (nu, tau)


def _forward_from_left(order: int, carry: tuple[Jet, Any], item: _Item) -> tuple[Any, EdgeJets]:
    mu, sigma = carry
    nu, tau = item.from_right
    tangent, core = item.tangent, item.core
    to_mode, to_right = multiply(mu, nu, order + 1), multiply(mu, item.xi, order + 1)
    if tangent is None:
        return (transform(core.left, to_right), None), EdgeJets(mu, nu, transform(core.down, to_mode), None)
    eta, varied = transform_pair(tangent.down_and_variation, core.down.shape[-2], to_mode)
    deta = deta_jet(tangent.left_to_mode, tangent.right_to_mode, varied, mu, nu, sigma, tau, order + 1)
    following, varied = transform_pair(tangent.left_and_variation, core.left.shape[-2], to_right)
    matrices = tangent.right_to_right, tangent.down_to_right
    return (following, push_sigma(*matrices, varied, sigma, mu, item.xi, item.dxi, order + 1)), EdgeJets(
        mu, nu, eta, deta
    )


def forward_sweeps(
    runs: Runs,
    cores: Sequence[FrameCore],
    xi: Sequence[Jet],
    order: int,
    tangents: Sequence[TangentCore] | None = None,
    dxi: Sequence[Jet] | None = None,
) -> tuple[EdgeJets, ...]:
    """The edge variables of the frame, and (with `tangents` and `dxi`) deta of the tangent; all grouped by runs."""
    items = _items(runs, core=cores, xi=xi, tangent=tangents, dxi=dxi)
    start = None if tangents is None else ()
    carry = _one(_right_bond(items[-1]), items[-1]), start
    step, settle = partial(_forward_from_right, order), _settle(order, "right", "left")
    _, from_right = sweep(step, carry, runs, items, reverse=True, settle=settle)

    items = _items(runs, core=cores, xi=xi, tangent=tangents, dxi=dxi, from_right=from_right)
    carry = _one(_left_bond(items[0]), items[0]), start
    _, jets = sweep(partial(_forward_from_left, order), carry, runs, items, settle=_settle(order, "left", "right"))
    return jets


def _adjoint_from_right(order: int, carry: tuple[Any, Jet], item: _Item) -> tuple[Any, Any]:
    nu, sigma_tilde = item.nu or carry[0], carry[1]
    lifted = lifted_sigma_tilde(sigma_tilde, item.pulled, item.xi, nu, item.core.mu_length.value)
    following = None if item.nu else transform(item.core.right, multiply(item.xi, nu, order + 1))
    return (following, transform(item.core.right, lifted)), (nu, sigma_tilde)


def _adjoint_from_left(order: int, kept: bool, carry: tuple[Any, Jet], item: _Item) -> tuple[Any, GradientParts]:
    mu, tau_tilde = item.mu or carry[0], carry[1]
    nu, sigma_tilde = item.from_right
    lifted_mu = multiply(mu, item.xi, order + 1)
    lifted_tau = lifted_tau_tilde(tau_tilde, item.pulled, item.xi, mu, len(nu))
    core = (core_gradients_kept if kept else core_gradient)(lifted_mu, sigma_tilde, lifted_tau, nu)
    dxi_tilde = transform(item.core.down, lifted_dxi_tilde(tau_tilde, sigma_tilde, mu, nu, len(item.xi)))
    eta = () if item.mu else transform(item.core.down, multiply(mu, nu, order + 1))
    following = None if item.mu else transform(item.core.left, lifted_mu)
    carry = following, transform(item.core.left, lifted_tau)
    if sum(x.nbytes for x in (*lifted_mu, *lifted_tau)) > CONCURRENT_BYTES:
        carry = _only_after(core, carry)
    return carry, GradientParts(core, dxi_tilde, eta)


def _only_after(done: Array, jets: Any) -> Any:
    """The jets, which nothing can use before `done` is there: lifted jets that wait to be used are freed by then.

    A scheduler is free to put off the products for dG, for the sake of concurrency, and keeps the lifted jets of every
    core meanwhile. Barriers are dropped before it comes to that; a zero that depends on data is not.
    """
    zero = jnp.minimum(jnp.abs(done.ravel()[0]), 0)
    return jax.tree.map(lambda x: x + zero, jets)


def adjoint_sweeps(
    runs: Runs,
    cores: Sequence[FrameCore],
    xi: Sequence[Jet],
    pulled: Sequence[Jet],
    order: int,
    known: Sequence[EdgeJets] | None = None,
    *,
    kept: bool = False,
) -> tuple[GradientParts, ...]:
    """The gradient's parts from the residual jets D (`pulled`), grouped by runs; `kept` leaves the probes apart.

    With the frame's jets `known`, their eta is not computed again (and is empty in the result).
    """
    mus, nus = (None, None) if known is None else ([jets.mu for jets in known], [jets.nu for jets in known])
    items = _items(runs, core=cores, xi=xi, pulled=pulled, nu=nus)
    carry = None if known else _one(_right_bond(items[-1]), items[-1]), ()
    step, settle = partial(_adjoint_from_right, order), _settle(order, "right", "right")
    _, from_right = sweep(step, carry, runs, items, reverse=True, settle=settle)

    items = _items(runs, core=cores, xi=xi, pulled=pulled, mu=mus, from_right=from_right)
    carry = None if known else _one(_left_bond(items[0]), items[0]), ()
    step, settle = partial(_adjoint_from_left, order, kept), _settle(order, "left", "left")
    _, parts = sweep(step, carry, runs, items, settle=settle)
    return parts
