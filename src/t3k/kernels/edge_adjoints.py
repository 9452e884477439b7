"""Adjoint edge-variable jets as arrays, for use in code of your own: one function per sweep.

Derivative-scaled arrays ``(order+1,) + W + (rank,)`` as in `t3k.kernels.edge_jets`, which computes what enters here;
``x . u`` is `t3k.kernels.jets.correlate`, the transpose of the product of jets. An adjoint jet has the index of the
variable that it belongs to: that of tau at core i is on the left bond of core i, that of sigma on its right bond. The
gradient is assembled from these by `t3k.kernels.assembly`.

Example:
  >>> import jax.numpy as jnp
  >>> residuals = (jnp.ones((2, 7, 5)), jnp.ones((2, 7, 4)))
  >>> deta_tildes = compute_deta_tilde_jets((jnp.ones((3, 5)), jnp.ones((2, 4))), residuals)
  >>> [jet.shape for jet in deta_tildes]
  [(2, 7, 3), (2, 7, 2)]
"""

from typing import Any

from t3k.kernels import edge_steps as steps
from t3k.kernels.checks import bind, check_bonds, check_trains
from t3k.kernels.jet_arrays import constant_jet, join_jets, order_of, split_jets, sweep_jets
from t3k.kernels.jets import transform
from t3k.kernels.types import Array, Cores, Jet, as_tuple, like_train

__all__ = [
    "compute_deta_tilde_jets",
    "compute_dxi_tilde_jets",
    "compute_sigma_tilde_jets",
    "compute_tau_tilde_jets",
]


def compute_deta_tilde_jets(up_tucker_cores: Cores, ztildes: Cores) -> Cores:
    """Residual jets pulled to the cores, ``deta~ = U z~``: from ``(order+1,) + W + (N_i,)`` to ``... + (n_i,)``."""
    check_trains({}, up_tucker_cores=(up_tucker_cores, "ko"), ztildes=(ztildes, "tWo"))
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
    jet_shapes = {"xi_jets": (xi_jets, "sWk"), "deta_tildes": (deta_tildes, "tWk"), "mu_jets": (mu_jets, "tWa")}
    check_trains(bind({}, "trs", trs, "ttt"), left_tt_cores=(left_tt_cores, "akB"), **jet_shapes)
    check_bonds(left_tt_cores=left_tt_cores)
    order, left = order_of(trs), as_tuple(left_tt_cores)

    def step(tau_tilde: Jet, xi: Jet, pulled: Jet, mu: Jet, matrix: Array) -> Jet:
        return transform(matrix, steps.lifted_tau_tilde(tau_tilde, pulled, xi, mu, order + 1, trs))

    columns = *map(split_jets, (xi_jets, deta_tildes, mu_jets)), [steps.to_right(core) for core in left]
    jets = sweep_jets(step, constant_jet(0, order, left[0].shape[0]), columns)
    return join_jets(jets, order, mu_jets)


def compute_sigma_tilde_jets(
    right_tt_cores: Cores, xi_jets: Cores, deta_tildes: Cores, nu_jets: Cores, trs: Any
) -> Cores:
    """Adjoints of sigma, ``sigma~' = R(sigma~ . xi + deta~ . nu)``: ``(order+1,) + W + (rR_{i+1},)`` per mode.

    Arguments as in `compute_tau_tilde_jets`, with the right cores and the right edge variables.
    """
    jet_shapes = {"xi_jets": (xi_jets, "sWk"), "deta_tildes": (deta_tildes, "tWk"), "nu_jets": (nu_jets, "tWb")}
    check_trains(bind({}, "trs", trs, "ttt"), right_tt_cores=(right_tt_cores, "Akb"), **jet_shapes)
    check_bonds(right_tt_cores=right_tt_cores)
    order, right = order_of(trs), as_tuple(right_tt_cores)

    def step(sigma_tilde: Jet, xi: Jet, pulled: Jet, nu: Jet, matrix: Array) -> Jet:
        return transform(matrix, steps.lifted_sigma_tilde(sigma_tilde, pulled, xi, nu, order + 1, trs))

    columns = *map(split_jets, (xi_jets, deta_tildes, nu_jets)), [steps.to_left(core) for core in right]
    jets = sweep_jets(step, constant_jet(0, order, right[-1].shape[2]), columns, reverse=True)
    return join_jets(jets, order, nu_jets)


def compute_dxi_tilde_jets(
    down_tt_cores: Cores, mu_jets: Cores, nu_jets: Cores, sigma_tildes: Cores, tau_tildes: Cores, trs: Any
) -> Cores:
    """Adjoints of dxi, ``dxi~ = O(tau~ . nu + sigma~ . mu)``: one array ``(order+1,) + W + (m_i,)`` per mode.

    Only orders 0 and 1 are ever used, since ``w + s p`` has no others.
    """
    jet_shapes = {"mu_jets": (mu_jets, "tWa"), "nu_jets": (nu_jets, "tWb")}
    tilde_shapes = {"sigma_tildes": (sigma_tildes, "tWb"), "tau_tildes": (tau_tildes, "tWa")}
    check_trains(bind({}, "trs", trs, "ttt"), down_tt_cores=(down_tt_cores, "amb"), **jet_shapes, **tilde_shapes)
    order = order_of(trs)
    jets = zip(*map(split_jets, (tau_tildes, sigma_tildes, mu_jets, nu_jets)), strict=True)
    tildes = tuple(
        transform(steps.to_mode(core), steps.lifted_dxi_tilde(tau_tilde, sigma_tilde, mu, nu, order + 1, trs))
        for core, (tau_tilde, sigma_tilde, mu, nu) in zip(as_tuple(down_tt_cores), jets, strict=True)
    )
    return join_jets(tildes, order, mu_jets)
