"""Edge-variable jets as arrays, for use in code of your own: one function per sweep of the method.

Everything here is derivative-scaled (entry t is the t-th derivative along X + s P), with the order first, then the
probe axes W, then the rank: ``(order+1,) + W + (rank,)``. Trains are tuples, or stacked arrays if the TT cores or
jets come in stacked. `trs` is `t3k.kernels.binomial_combine_tensor(order)`. The recursions are those of
`t3k.kernels.edge_steps`; a jet of mode i is the one that *enters* core i.

Example:
  >>> import jax.numpy as jnp
  >>> from t3k.kernels.jets import binomial_combine_tensor
  >>> cores = (jnp.ones((1, 2, 3)), jnp.ones((3, 2, 1)))
  >>> xi_jets = build_input_jets([jnp.ones((7, 2))] * 2, [jnp.ones((7, 2))] * 2)
  >>> mu_jets = compute_mu_jets(cores, xi_jets, binomial_combine_tensor(1))
  >>> [jet.shape for jet in mu_jets], float(mu_jets[1][1, 0, 0])
  ([(2, 7, 1), (2, 7, 3)], 2.0)
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from t3k.kernels import edge_steps as steps
from t3k.kernels.constants import filled_like
from t3k.kernels.jets import from_derivatives, jet_to_array, multiply, pad_jet, transform
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, Cores, Jet, as_tuple, like_train

__all__ = [
    "assemble_tangent_z_jets",
    "assemble_z_jets",
    "build_input_jets",
    "compute_deta_jets",
    "compute_deta_tilde_jets",
    "compute_dxi_tilde_jets",
    "compute_eta_jets",
    "compute_mu_jets",
    "compute_nu_jets",
    "compute_sigma_jets",
    "compute_sigma_tilde_jets",
    "compute_tau_jets",
    "compute_tau_tilde_jets",
]


def split_jets(arrays: Cores) -> tuple[Jet, ...]:
    """Arrays ``(t,) + W + (rank,)`` as jets of arrays ``(rank, w)``, with the probe axes flattened."""
    return tuple(from_derivatives(x.reshape(x.shape[0], -1, x.shape[-1])) for x in as_tuple(arrays))


def _join_jets(jets: Sequence[Jet], order: int, like: Cores) -> Cores:
    probes = as_tuple(like)[0].shape[1:-1]
    arrays = (jet_to_array(jet, order, jet[0].shape, jet[0]) for jet in jets)
    return like_train(tuple(x.reshape(order + 1, *probes, x.shape[-1]) for x in arrays), like)


def _order(trs: Any) -> int:
    return np.shape(trs)[0] - 1


def _sweep_jets(
    step: Callable[..., Jet], start: Callable[[Jet], Jet], columns: Sequence[Sequence[Any]], *, reverse: bool = False
) -> tuple[Jet, ...]:
    """The jets that enter each core, where ``step(jet, *items)`` is the jet that leaves it."""

    def advance(jet: Jet, item: Any) -> tuple[Jet, Jet]:
        return step(jet, *item), jet

    items = list(zip(*columns, strict=True))
    return sweep_cores(advance, start(columns[0][-1 if reverse else 0]), items, reverse=reverse)[1]


def _constant_jet(value: float, order: int, bond: int) -> Callable[[Jet], Jet]:
    """The jet that is `value` at order 0 on an end bond, with as many probes as a jet like it."""

    def start(like: Jet) -> Jet:
        shape = (bond, like[0].shape[1])
        return pad_jet((filled_like(like[0], value, shape),), order + 1, shape, like[0])

    return start


def build_input_jets(xis: Cores, dxis: Cores) -> Cores:
    """The jets of the projected probes ``U_i (w + s p)``: value at order 0, direction at order 1, nothing above.

    Args:
      xis: ``U_i w``, one array ``W + (n_i,)`` per mode.
      dxis: ``U_i p``, of the same shapes.

    Returns:
      One array ``(2,) + W + (n_i,)`` per mode.
    """
    pairs = zip(as_tuple(xis), as_tuple(dxis), strict=True)
    return like_train(tuple(jnp.stack(pair) for pair in pairs), xis)


def compute_mu_jets(tt_cores: Cores, xi_jets: Cores, trs: Any) -> Cores:
    """Left edge variables, ``mu' = G(mu * xi)``: one array ``(order+1,) + W + (r_i,)`` per mode.

    Args:
      tt_cores: ``G_i (r_i, n_i, r_{i+1})``; the left cores of a frame, for a tangent.
      xi_jets: from `build_input_jets`.
      trs: ``(order+1,) * 3``.
    """
    order, cores = _order(trs), as_tuple(tt_cores)

    def step(mu: Jet, xi: Jet, matrix: Array) -> Jet:
        return transform(matrix, multiply(mu, xi, order + 1, trs))

    columns = split_jets(xi_jets), [steps.to_right(core) for core in cores]
    jets = _sweep_jets(step, _constant_jet(1, order, cores[0].shape[0]), columns)
    return _join_jets(jets, order, xi_jets)


def compute_nu_jets(tt_cores: Cores, xi_jets: Cores, trs: Any) -> Cores:
    """Right edge variables, ``nu' = G(xi * nu)``: one array ``(order+1,) + W + (r_{i+1},)`` per mode.

    Arguments as in `compute_mu_jets`, with the right cores of a frame.
    """
    order, cores = _order(trs), as_tuple(tt_cores)

    def step(nu: Jet, xi: Jet, matrix: Array) -> Jet:
        return transform(matrix, multiply(xi, nu, order + 1, trs))

    columns = split_jets(xi_jets), [steps.to_left(core) for core in cores]
    jets = _sweep_jets(step, _constant_jet(1, order, cores[-1].shape[2]), columns, reverse=True)
    return _join_jets(jets, order, xi_jets)


def compute_eta_jets(tt_cores: Cores, mu_jets: Cores, nu_jets: Cores, trs: Any) -> Cores:
    """Up edge variables, ``eta = O(mu * nu)``: one array ``(order+1,) + W + (m_i,)`` per mode.

    Args:
      tt_cores: the down cores ``O_i (r_i, m_i, r_{i+1})`` of a frame, or the TT cores of a T3.
      mu_jets: from `compute_mu_jets`.
      nu_jets: from `compute_nu_jets`.
      trs: ``(order+1,) * 3``.
    """
    order = _order(trs)
    columns = as_tuple(tt_cores), split_jets(mu_jets), split_jets(nu_jets)
    etas = tuple(
        transform(steps.to_mode(core), multiply(mu, nu, order + 1, trs)) for core, mu, nu in zip(*columns, strict=True)
    )
    return _join_jets(etas, order, mu_jets)


def assemble_z_jets(tucker_cores: Cores, eta_jets: Cores) -> Cores:
    """Lifts jets to the ambient modes, ``z = U^T eta``: one array ``(order+1,) + W + (N_i,)`` per mode."""
    pairs = zip(as_tuple(eta_jets), as_tuple(tucker_cores), strict=True)
    return like_train(tuple(eta @ up for eta, up in pairs), eta_jets)


def compute_sigma_jets(
    var_tt_cores: Cores,
    right_tt_cores: Cores,
    down_tt_cores: Cores,
    xi_jets: Cores,
    dxi_jets: Cores,
    mu_jets: Cores,
    trs: Any,
) -> Cores:
    """Left tangent edge variables, ``sigma' = R(sigma * xi) + H(mu * xi) + O(mu * dxi)``.

    Args:
      var_tt_cores: ``H_i (rL_i, n_i, rR_{i+1})``.
      right_tt_cores: ``R_i (rR_i, n_i, rR_{i+1})``.
      down_tt_cores: ``O_i (rL_i, m_i, rR_{i+1})``.
      xi_jets: jets of ``U_i (w + s p)``.
      dxi_jets: jets of ``V_i (w + s p)``.
      mu_jets: from `compute_mu_jets` with the left cores.
      trs: ``(order+1,) * 3``.

    Returns:
      One array ``(order+1,) + W + (rR_i,)`` per mode.
    """
    order, right = _order(trs), as_tuple(right_tt_cores)

    def step(sigma: Jet, xi: Jet, dxi: Jet, mu: Jet, matrices: tuple[Array, Array, Array]) -> Jet:
        return steps.push_sigma(*matrices, sigma, mu, xi, dxi, order + 1, trs)

    trains = right, as_tuple(var_tt_cores), as_tuple(down_tt_cores)
    matrices = [tuple(map(steps.to_right, cores)) for cores in zip(*trains, strict=True)]
    columns = split_jets(xi_jets), split_jets(dxi_jets), split_jets(mu_jets), matrices
    jets = _sweep_jets(step, _constant_jet(0, order, right[0].shape[0]), columns)
    return _join_jets(jets, order, mu_jets)


def compute_tau_jets(
    var_tt_cores: Cores,
    left_tt_cores: Cores,
    down_tt_cores: Cores,
    xi_jets: Cores,
    dxi_jets: Cores,
    nu_jets: Cores,
    trs: Any,
) -> Cores:
    """Right tangent edge variables, ``tau' = L(xi * tau) + H(xi * nu) + O(dxi * nu)``.

    Args:
      var_tt_cores: ``H_i (rL_i, n_i, rR_{i+1})``.
      left_tt_cores: ``L_i (rL_i, n_i, rL_{i+1})``.
      down_tt_cores: ``O_i (rL_i, m_i, rR_{i+1})``.
      xi_jets: jets of ``U_i (w + s p)``.
      dxi_jets: jets of ``V_i (w + s p)``.
      nu_jets: from `compute_nu_jets` with the right cores.
      trs: ``(order+1,) * 3``.

    Returns:
      One array ``(order+1,) + W + (rL_{i+1},)`` per mode.
    """
    order, left = _order(trs), as_tuple(left_tt_cores)

    def step(tau: Jet, xi: Jet, dxi: Jet, nu: Jet, matrices: tuple[Array, Array, Array]) -> Jet:
        return steps.push_tau(*matrices, tau, nu, xi, dxi, order + 1, trs)

    trains = left, as_tuple(var_tt_cores), as_tuple(down_tt_cores)
    matrices = [tuple(map(steps.to_left, cores)) for cores in zip(*trains, strict=True)]
    columns = split_jets(xi_jets), split_jets(dxi_jets), split_jets(nu_jets), matrices
    jets = _sweep_jets(step, _constant_jet(0, order, left[-1].shape[2]), columns, reverse=True)
    return _join_jets(jets, order, nu_jets)


def compute_deta_jets(
    var_tt_cores: Cores,
    left_tt_cores: Cores,
    right_tt_cores: Cores,
    mu_jets: Cores,
    nu_jets: Cores,
    sigma_jets: Cores,
    tau_jets: Cores,
    trs: Any,
) -> Cores:
    """Tangent up edge variables, ``deta = R(sigma * nu) + H(mu * nu) + L(mu * tau)``.

    Arguments as in `compute_sigma_jets` and `compute_tau_jets`, and what those return.

    Returns:
      One array ``(order+1,) + W + (n_i,)`` per mode.
    """
    order = _order(trs)
    trains = as_tuple(left_tt_cores), as_tuple(right_tt_cores), as_tuple(var_tt_cores)
    matrices = [tuple(map(steps.to_mode, cores)) for cores in zip(*trains, strict=True)]
    jets = zip(*map(split_jets, (mu_jets, nu_jets, sigma_jets, tau_jets)), strict=True)
    detas = tuple(steps.deta_jet(*cores, *edges, order + 1, trs) for cores, edges in zip(matrices, jets, strict=True))
    return _join_jets(detas, order, mu_jets)


def assemble_tangent_z_jets(tucker_cores: Cores, var_tucker_cores: Cores, eta_jets: Cores, deta_jets: Cores) -> Cores:
    """Probe derivatives of a tangent, ``z = U^T deta + V^T eta``: one array ``(order+1,) + W + (N_i,)`` per mode."""
    lifts = zip(
        as_tuple(assemble_z_jets(tucker_cores, deta_jets)),
        as_tuple(assemble_z_jets(var_tucker_cores, eta_jets)),
        strict=True,
    )
    return like_train(tuple(a + b for a, b in lifts), eta_jets)


def compute_deta_tilde_jets(up_tucker_cores: Cores, ztildes: Cores) -> Cores:
    """Residual jets pulled to the cores, ``deta~ = U z~``: from ``(order+1,) + W + (N_i,)`` to ``... + (n_i,)``."""
    pairs = zip(as_tuple(ztildes), as_tuple(up_tucker_cores), strict=True)
    return like_train(tuple(z @ up.T for z, up in pairs), ztildes)


def compute_tau_tilde_jets(left_tt_cores: Cores, xi_jets: Cores, deta_tildes: Cores, mu_jets: Cores, trs: Any) -> Cores:
    """Adjoints of tau, ``tau~' = L(tau~ . xi + deta~ . mu)``: one array ``(order+1,) + W + (rL_i,)`` per mode.

    Args:
      left_tt_cores: ``L_i (rL_i, n_i, rL_{i+1})``.
      xi_jets: jets of ``U_i (w + s p)``.
      deta_tildes: from `compute_deta_tilde_jets`.
      mu_jets: from `compute_mu_jets` with the left cores.
      trs: ``(order+1,) * 3``.
    """
    order, left = _order(trs), as_tuple(left_tt_cores)

    def step(tau_tilde: Jet, xi: Jet, pulled: Jet, mu: Jet, matrix: Array) -> Jet:
        return transform(matrix, steps.lifted_tau_tilde(tau_tilde, pulled, xi, mu, order + 1, trs))

    columns = *map(split_jets, (xi_jets, deta_tildes, mu_jets)), [steps.to_right(core) for core in left]
    jets = _sweep_jets(step, _constant_jet(0, order, left[0].shape[0]), columns)
    return _join_jets(jets, order, mu_jets)


def compute_sigma_tilde_jets(
    right_tt_cores: Cores, xi_jets: Cores, deta_tildes: Cores, nu_jets: Cores, trs: Any
) -> Cores:
    """Adjoints of sigma, ``sigma~' = R(sigma~ . xi + deta~ . nu)``: ``(order+1,) + W + (rR_{i+1},)`` per mode.

    Arguments as in `compute_tau_tilde_jets`, with the right cores and the right edge variables.
    """
    order, right = _order(trs), as_tuple(right_tt_cores)

    def step(sigma_tilde: Jet, xi: Jet, pulled: Jet, nu: Jet, matrix: Array) -> Jet:
        return transform(matrix, steps.lifted_sigma_tilde(sigma_tilde, pulled, xi, nu, order + 1, trs))

    columns = *map(split_jets, (xi_jets, deta_tildes, nu_jets)), [steps.to_left(core) for core in right]
    jets = _sweep_jets(step, _constant_jet(0, order, right[-1].shape[2]), columns, reverse=True)
    return _join_jets(jets, order, nu_jets)


def compute_dxi_tilde_jets(
    down_tt_cores: Cores, mu_jets: Cores, nu_jets: Cores, sigma_tildes: Cores, tau_tildes: Cores, trs: Any
) -> Cores:
    """Adjoints of dxi, ``dxi~ = O(tau~ . nu + sigma~ . mu)``: one array ``(order+1,) + W + (m_i,)`` per mode.

    Only orders 0 and 1 are ever used, since ``w + s p`` has no others.
    """
    order = _order(trs)
    jets = zip(*map(split_jets, (tau_tildes, sigma_tildes, mu_jets, nu_jets)), strict=True)
    tildes = tuple(
        steps.dxi_tilde_jet(steps.to_mode(core), *edges, order + 1, trs)
        for core, edges in zip(as_tuple(down_tt_cores), jets, strict=True)
    )
    return _join_jets(tildes, order, mu_jets)
