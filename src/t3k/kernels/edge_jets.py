"""Edge-variable jets of a T3 and of a tangent as arrays, for use in code of your own: one function per sweep.

Everything here is derivative-scaled (entry t is the t-th derivative along X + s P), with the order first, then the
probe axes W, then the rank: ``(order+1,) + W + (rank,)``. Trains are tuples, or stacked arrays if the TT cores or
jets come in stacked. `trs` is `t3k.kernels.binomial_combine_tensor(order)`. The recursions are those of
`t3k.kernels.edge_steps`; a jet of mode i is the one that *enters* core i. The adjoint jets are in
`t3k.kernels.edge_adjoints`.

Example:
  >>> import jax.numpy as jnp
  >>> from t3k.kernels.jets import binomial_combine_tensor
  >>> cores = (jnp.ones((1, 2, 3)), jnp.ones((3, 2, 1)))
  >>> xi_jets = build_input_jets([jnp.ones((7, 2))] * 2, [jnp.ones((7, 2))] * 2)
  >>> mu_jets = compute_mu_jets(cores, xi_jets, binomial_combine_tensor(1))
  >>> [jet.shape for jet in mu_jets], float(mu_jets[1][1, 0, 0])
  ([(2, 7, 1), (2, 7, 3)], 2.0)
"""

from typing import Any

import jax.numpy as jnp

from t3k.kernels import edge_steps as steps
from t3k.kernels.checks import bind, check_bonds, check_trains
from t3k.kernels.jet_arrays import constant_jet, join_jets, order_of, split_jets, sweep_jets
from t3k.kernels.jets import multiply, transform
from t3k.kernels.types import Array, Cores, Jet, as_tuple, like_train

__all__ = [
    "assemble_tangent_z_jets",
    "assemble_z_jets",
    "build_input_jets",
    "compute_deta_jets",
    "compute_eta_jets",
    "compute_mu_jets",
    "compute_nu_jets",
    "compute_sigma_jets",
    "compute_tau_jets",
]


def build_input_jets(xis: Cores, dxis: Cores) -> Cores:
    """The jets of the projected probes ``U_i (w + s p)``: value at order 0, direction at order 1, nothing above.

    Args:
      xis: ``U_i w``, one array ``W + (n_i,)`` per mode.
      dxis: ``U_i p``, of the same shapes.

    Returns:
      One array ``(2,) + W + (n_i,)`` per mode.
    """
    check_trains({}, xis=(xis, "Wk"), dxis=(dxis, "Wk"))
    pairs = zip(as_tuple(xis), as_tuple(dxis), strict=True)
    return like_train(tuple(jnp.stack(pair) for pair in pairs), xis)


def compute_mu_jets(tt_cores: Cores, xi_jets: Cores, trs: Any) -> Cores:
    """Left edge variables, ``mu' = G(mu * xi)``: one array ``(order+1,) + W + (r_i,)`` per mode.

    Args:
      tt_cores: ``G_i (r_i, n_i, r_{i+1})``; the left cores of a frame, for a tangent.
      xi_jets: from `build_input_jets`.
      trs: ``(order+1,) * 3``.
    """
    check_trains(bind({}, "trs", trs, "ttt"), tt_cores=(tt_cores, "akb"), xi_jets=(xi_jets, "sWk"))
    check_bonds(tt_cores=tt_cores)
    order, cores = order_of(trs), as_tuple(tt_cores)

    def step(mu: Jet, xi: Jet, matrix: Array) -> Jet:
        return transform(matrix, multiply(mu, xi, order + 1, trs))

    columns = split_jets(xi_jets), [steps.to_right(core) for core in cores]
    jets = sweep_jets(step, constant_jet(1, order, cores[0].shape[0]), columns)
    return join_jets(jets, order, xi_jets)


def compute_nu_jets(tt_cores: Cores, xi_jets: Cores, trs: Any) -> Cores:
    """Right edge variables, ``nu' = G(xi * nu)``: one array ``(order+1,) + W + (r_{i+1},)`` per mode.

    Arguments as in `compute_mu_jets`, with the right cores of a frame.
    """
    check_trains(bind({}, "trs", trs, "ttt"), tt_cores=(tt_cores, "akb"), xi_jets=(xi_jets, "sWk"))
    check_bonds(tt_cores=tt_cores)
    order, cores = order_of(trs), as_tuple(tt_cores)

    def step(nu: Jet, xi: Jet, matrix: Array) -> Jet:
        return transform(matrix, multiply(xi, nu, order + 1, trs))

    columns = split_jets(xi_jets), [steps.to_left(core) for core in cores]
    jets = sweep_jets(step, constant_jet(1, order, cores[-1].shape[2]), columns, reverse=True)
    return join_jets(jets, order, xi_jets)


def compute_eta_jets(tt_cores: Cores, mu_jets: Cores, nu_jets: Cores, trs: Any) -> Cores:
    """Up edge variables, ``eta = O(mu * nu)``: one array ``(order+1,) + W + (m_i,)`` per mode.

    Args:
      tt_cores: the down cores ``O_i (r_i, m_i, r_{i+1})`` of a frame, or the TT cores of a T3.
      mu_jets: from `compute_mu_jets`.
      nu_jets: from `compute_nu_jets`.
      trs: ``(order+1,) * 3``.
    """
    jet_shapes = {"mu_jets": (mu_jets, "tWa"), "nu_jets": (nu_jets, "tWb")}
    check_trains(bind({}, "trs", trs, "ttt"), tt_cores=(tt_cores, "amb"), **jet_shapes)
    order = order_of(trs)
    columns = as_tuple(tt_cores), split_jets(mu_jets), split_jets(nu_jets)
    etas = tuple(
        transform(steps.to_mode(core), multiply(mu, nu, order + 1, trs)) for core, mu, nu in zip(*columns, strict=True)
    )
    return join_jets(etas, order, mu_jets)


def assemble_z_jets(tucker_cores: Cores, eta_jets: Cores) -> Cores:
    """Lifts jets to the ambient modes, ``z = U^T eta``: one array ``(order+1,) + W + (N_i,)`` per mode."""
    check_trains({}, tucker_cores=(tucker_cores, "ko"), eta_jets=(eta_jets, "tWk"))
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
    core_shapes = {"right_tt_cores": (right_tt_cores, "Akb"), "var_tt_cores": (var_tt_cores, "akb")}
    jet_shapes = {"xi_jets": (xi_jets, "sWk"), "dxi_jets": (dxi_jets, "sWm"), "mu_jets": (mu_jets, "tWa")}
    check_trains(bind({}, "trs", trs, "ttt"), **core_shapes, down_tt_cores=(down_tt_cores, "amb"), **jet_shapes)
    check_bonds(right_tt_cores=right_tt_cores)
    order, right = order_of(trs), as_tuple(right_tt_cores)

    def step(sigma: Jet, xi: Jet, dxi: Jet, mu: Jet, matrices: tuple[Array, Array, Array]) -> Jet:
        right, variation, down = matrices
        varied = transform(variation, multiply(mu, xi, order + 1, trs))
        return steps.push_sigma(right, down, varied, sigma, mu, xi, dxi, order + 1, trs)

    trains = right, as_tuple(var_tt_cores), as_tuple(down_tt_cores)
    matrices = [tuple(map(steps.to_right, cores)) for cores in zip(*trains, strict=True)]
    columns = split_jets(xi_jets), split_jets(dxi_jets), split_jets(mu_jets), matrices
    jets = sweep_jets(step, constant_jet(0, order, right[0].shape[0]), columns)
    return join_jets(jets, order, mu_jets)


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
    core_shapes = {"left_tt_cores": (left_tt_cores, "akB"), "var_tt_cores": (var_tt_cores, "akb")}
    jet_shapes = {"xi_jets": (xi_jets, "sWk"), "dxi_jets": (dxi_jets, "sWm"), "nu_jets": (nu_jets, "tWb")}
    check_trains(bind({}, "trs", trs, "ttt"), **core_shapes, down_tt_cores=(down_tt_cores, "amb"), **jet_shapes)
    check_bonds(left_tt_cores=left_tt_cores)
    order, left = order_of(trs), as_tuple(left_tt_cores)

    def step(tau: Jet, xi: Jet, dxi: Jet, nu: Jet, matrices: tuple[Array, Array, Array]) -> Jet:
        left, variation, down = matrices
        varied = transform(variation, multiply(xi, nu, order + 1, trs))
        return steps.push_tau(left, down, varied, tau, nu, xi, dxi, order + 1, trs)

    trains = left, as_tuple(var_tt_cores), as_tuple(down_tt_cores)
    matrices = [tuple(map(steps.to_left, cores)) for cores in zip(*trains, strict=True)]
    columns = split_jets(xi_jets), split_jets(dxi_jets), split_jets(nu_jets), matrices
    jets = sweep_jets(step, constant_jet(0, order, left[-1].shape[2]), columns, reverse=True)
    return join_jets(jets, order, nu_jets)


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
    core_shapes = {"left_tt_cores": (left_tt_cores, "akB"), "right_tt_cores": (right_tt_cores, "Akb")}
    jet_shapes = {"mu_jets": (mu_jets, "tWa"), "nu_jets": (nu_jets, "tWb")}
    tangent_shapes = {"sigma_jets": (sigma_jets, "tWA"), "tau_jets": (tau_jets, "tWB")}
    check_trains(
        bind({}, "trs", trs, "ttt"), **core_shapes, var_tt_cores=(var_tt_cores, "akb"), **jet_shapes, **tangent_shapes
    )
    order = order_of(trs)
    trains = as_tuple(left_tt_cores), as_tuple(right_tt_cores), as_tuple(var_tt_cores)
    matrices = [tuple(map(steps.to_mode, cores)) for cores in zip(*trains, strict=True)]
    jets = zip(*map(split_jets, (mu_jets, nu_jets, sigma_jets, tau_jets)), strict=True)
    detas = []
    for (left, right, variation), (mu, nu, sigma, tau) in zip(matrices, jets, strict=True):
        varied = transform(variation, multiply(mu, nu, order + 1, trs))
        detas.append(steps.deta_jet(left, right, varied, mu, nu, sigma, tau, order + 1, trs))
    return join_jets(detas, order, mu_jets)


def assemble_tangent_z_jets(tucker_cores: Cores, var_tucker_cores: Cores, eta_jets: Cores, deta_jets: Cores) -> Cores:
    """Probe derivatives of a tangent, ``z = U^T deta + V^T eta``: one array ``(order+1,) + W + (N_i,)`` per mode."""
    core_shapes = {"tucker_cores": (tucker_cores, "ko"), "var_tucker_cores": (var_tucker_cores, "mo")}
    check_trains({}, **core_shapes, eta_jets=(eta_jets, "tWm"), deta_jets=(deta_jets, "tWk"))
    lifts = zip(
        as_tuple(assemble_z_jets(tucker_cores, deta_jets)),
        as_tuple(assemble_z_jets(var_tucker_cores, eta_jets)),
        strict=True,
    )
    return like_train(tuple(a + b for a, b in lifts), eta_jets)
