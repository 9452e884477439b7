"""The two assemblies of the gradient from edge-variable jets, chunked over the probes.

They are what the literature's method ends with, for code that has the jets at hand; the whole transpose, which never
holds the jets of all probes, is `t3k.kernels.probe_maps.probe_transpose`. Jets are derivative-scaled arrays
``(order+1,) + W + (rank,)`` as in `t3k.kernels.edge_jets`, and W is `n_probe` axes.

With `trs` in exact integers, small-integer jets are assembled without rounding at every order, so there the result
does not depend on the chunk to the last bit.
"""

import math
from typing import Any

from t3k.kernels.checks import bind, check_trains
from t3k.kernels.chunking import check_chunk_size, chunk_reduce
from t3k.kernels.edge_steps import core_gradient, core_gradients_kept, lifted_tau_tilde
from t3k.kernels.jets import from_derivatives, multiply, total
from t3k.kernels.mode_products import matmul_rows
from t3k.kernels.reducers import add, concat
from t3k.kernels.types import Array, Cores, as_tuple, like_train

__all__ = ["assemble_tt_variation_jets", "assemble_tucker_variation_jets"]


def _flat_probes(x: Array, n_probe: int, lead: int = 1) -> Array:
    """Merges the `n_probe` probe axes behind `lead` leading ones into one."""
    return x.reshape(*x.shape[:lead], -1, *x.shape[lead + n_probe :])


def _masked(x: Array, valid: Array | None) -> Array:
    """The array ``(t, w, rank)``, zero in the probes that are not `valid`."""
    return x if valid is None else x * valid[None, :, None].astype(x.dtype)


def _unflatten(gradients: tuple[Array, ...], probes: tuple[int, ...], kept: bool) -> tuple[Array, ...]:
    return tuple(g.reshape(*probes, *g.shape[1:]) if kept else g for g in gradients)


def assemble_tt_variation_jets(
    sigma_tildes: Cores,
    tau_tildes: Cores,
    deta_tildes: Cores,
    xi_jets: Cores,
    mu_jets: Cores,
    nu_jets: Cores,
    trs: Any,
    n_probe: int,
    sum_over_probes: bool,
    chunk_size: int | None = 100,
) -> Cores:
    """The TT part of the gradient, ``dG = sum_w (mu * xi) sigma~^T + (tau~ . xi + deta~ . mu) nu^T``.

    Args:
      sigma_tildes: ``(order+1,) + W + (rR_{i+1},)`` per mode, from `compute_sigma_tilde_jets`.
      tau_tildes: ``(order+1,) + W + (rL_i,)``, from `compute_tau_tilde_jets`.
      deta_tildes: ``(order+1,) + W + (n_i,)``, from `compute_deta_tilde_jets`.
      xi_jets: ``(2,) + W + (n_i,)``, from `build_input_jets`.
      mu_jets: ``(order+1,) + W + (rL_i,)``, from `compute_mu_jets`.
      nu_jets: ``(order+1,) + W + (rR_{i+1},)``, from `compute_nu_jets`.
      trs: ``binomial_combine_tensor(order)``.
      n_probe: the number of probe axes W (static).
      sum_over_probes: sum over W, or keep it as leading axes of the result (static).
      chunk_size: probes at a time (static); None takes all.

    Returns:
      One array ``(rL_i, n_i, rR_{i+1})`` per mode, or ``W + (rL_i, n_i, rR_{i+1})``; in the layout of `mu_jets`.

    Raises:
      ValueError, TypeError: for a bad `chunk_size`.
    """
    check_chunk_size(chunk_size)
    tildes = {"sigma_tildes": (sigma_tildes, "tWb"), "tau_tildes": (tau_tildes, "tWa")}
    jets = {"deta_tildes": (deta_tildes, "tWk"), "xi_jets": (xi_jets, "sWk")}
    dims = bind({"W": n_probe}, "trs", trs, "ttt")
    check_trains(dims, **tildes, **jets, mu_jets=(mu_jets, "tWa"), nu_jets=(nu_jets, "tWb"))

    trains = tuple(map(as_tuple, (sigma_tildes, tau_tildes, deta_tildes, xi_jets, mu_jets, nu_jets)))
    probes, kept = trains[4][0].shape[1 : 1 + n_probe], not sum_over_probes

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        return tuple(_tt(kept, valid, trs, *arrays) for arrays in zip(*xs, strict=True))

    flat = tuple(tuple(_flat_probes(x, n_probe) for x in train) for train in trains)
    reducer = concat(0) if kept else add
    gradients = chunk_reduce(block, flat, reducer, chunk_size=chunk_size, n_rows=math.prod(probes), axes=1)
    return like_train(_unflatten(gradients, probes, kept), mu_jets)


def _tt(
    kept: bool,
    valid: Array | None,
    trs: Any,
    sigma_tilde: Array,
    tau_tilde: Array,
    deta_tilde: Array,
    xi: Array,
    mu: Array,
    nu: Array,
) -> Array:
    """The TT part of a block at one mode, ``(a, k, b)`` or ``(w, a, k, b)``, from arrays ``(t, w, rank)``."""
    shape, length = (mu.shape[-1], xi.shape[-1], nu.shape[-1]), mu.shape[0]
    if not kept:
        sigma_tilde, tau_tilde, deta_tilde = (_masked(x, valid) for x in (sigma_tilde, tau_tilde, deta_tilde))
    arrays = sigma_tilde, tau_tilde, deta_tilde, xi, mu, nu
    sigma_jet, tau_jet, deta_jet, xi_jet, mu_jet, nu_jet = map(from_derivatives, arrays)
    lifted_mu = multiply(mu_jet, xi_jet, length, trs)
    lifted_tau = lifted_tau_tilde(tau_jet, deta_jet, xi_jet, mu_jet, length, trs)
    gradient = (core_gradients_kept if kept else core_gradient)(lifted_mu, sigma_jet, lifted_tau, nu_jet)
    return gradient.reshape(*gradient.shape[:-2], *shape)


def assemble_tucker_variation_jets(
    ztildes: Cores,
    dxi_tildes: Cores,
    ww: Cores,
    pp: Cores,
    eta_jets: Cores,
    n_probe: int,
    sum_over_probes: bool,
    chunk_size: int | None = 100,
) -> Cores:
    """The Tucker part of the gradient, ``dU = sum_w dxi~_0 w + dxi~_1 p + sum_t eta_t z~_t``.

    Args:
      ztildes: residual jets, ``(order+1,) + W + (N_i,)`` per mode.
      dxi_tildes: ``(order+1,) + W + (m_i,)``, from `compute_dxi_tilde_jets`.
      ww: probe vectors, ``W + (N_i,)``.
      pp: perturbation directions, ``W + (N_i,)``.
      eta_jets: ``(order+1,) + W + (m_i,)``, from `compute_eta_jets` with the down cores.
      n_probe: the number of probe axes W (static).
      sum_over_probes: sum over W, or keep it as leading axes of the result (static).
      chunk_size: probes at a time (static); None takes all.

    Returns:
      One array ``(m_i, N_i)`` per mode, or ``W + (m_i, N_i)``; in the layout of `eta_jets`.

    Raises:
      ValueError, TypeError: for a bad `chunk_size`.
    """
    check_chunk_size(chunk_size)
    jets = {"ztildes": (ztildes, "tWo"), "dxi_tildes": (dxi_tildes, "tWm"), "eta_jets": (eta_jets, "tWm")}
    check_trains({"W": n_probe}, **jets, ww=(ww, "Wo"), pp=(pp, "Wo"))
    probes, kept = as_tuple(eta_jets)[0].shape[1 : 1 + n_probe], not sum_over_probes

    def block(xs: Any, valid: Array | None) -> tuple[Array, ...]:
        return tuple(_tucker(kept, valid, *arrays) for arrays in zip(*xs, strict=True))

    trains = [tuple(_flat_probes(x, n_probe) for x in as_tuple(train)) for train in (ztildes, dxi_tildes, eta_jets)]
    trains += [tuple(_flat_probes(x, n_probe, lead=0) for x in as_tuple(train)) for train in (ww, pp)]
    reducer = concat(0) if kept else add
    gradients = chunk_reduce(block, tuple(trains), reducer, chunk_size=chunk_size, n_rows=math.prod(probes), axes=-2)
    return like_train(_unflatten(gradients, probes, kept), eta_jets)


def _tucker(kept: bool, valid: Array | None, z: Array, dxi_tilde: Array, eta: Array, w: Array, p: Array) -> Array:
    """The Tucker part of a block at one mode, ``(m, o)`` or ``(w, m, o)``."""
    if not kept:
        dxi_tilde, eta = _masked(dxi_tilde, valid), _masked(eta, valid)
    pairs = [*zip(dxi_tilde[:2], (w, p), strict=False), *zip(eta, z, strict=True)]
    return total(matmul_rows(kept, x.T, rows) for x, rows in pairs)
