"""Every array of the method in the order in which each needs the others; for this library and for its peer."""

from typing import Any

from t3k.kernels import edge_adjoints, edge_jets
from tests.trains import Problem


def project(cores: Any, vectors: Any) -> Any:
    return tuple(x @ core.T for core, x in zip(cores, vectors, strict=True))


def forward_jets(library: Any, problem: Problem, trs: Any) -> dict[str, Any]:
    """Jets of the frame and of the tangent; `library` has the functions by the names of this library."""
    ww, pp, _, (V, H), (U, O, L, R), *_ = problem
    xi = library.build_input_jets(project(U, ww), project(U, pp))
    dxi = library.build_input_jets(project(V, ww), project(V, pp))
    mu, nu = library.compute_mu_jets(L, xi, trs), library.compute_nu_jets(R, xi, trs)
    eta = library.compute_eta_jets(O, mu, nu, trs)
    sigma = library.compute_sigma_jets(H, R, O, xi, dxi, mu, trs)
    tau = library.compute_tau_jets(H, L, O, xi, dxi, nu, trs)
    deta = library.compute_deta_jets(H, L, R, mu, nu, sigma, tau, trs)
    z = library.assemble_tangent_z_jets(U, V, eta, deta)
    return {
        **{"xi": xi, "dxi": dxi, "mu": mu, "nu": nu, "eta": eta, "sigma": sigma, "tau": tau, "deta": deta, "z": z},
        "frame_z": library.assemble_z_jets(V, eta),
    }


def adjoint_jets(library: Any, problem: Problem, jets: dict[str, Any], trs: Any) -> dict[str, Any]:
    """Adjoint jets of the residual jets of the problem."""
    _, _, zz, _, (U, O, L, R), *_ = problem
    xi, mu, nu = (jets[name] for name in ("xi", "mu", "nu"))
    deta = library.compute_deta_tilde_jets(U, zz)
    tau = library.compute_tau_tilde_jets(L, xi, deta, mu, trs)
    sigma = library.compute_sigma_tilde_jets(R, xi, deta, nu, trs)
    dxi = library.compute_dxi_tilde_jets(O, mu, nu, sigma, tau, trs)
    return {"deta_tilde": deta, "tau_tilde": tau, "sigma_tilde": sigma, "dxi_tilde": dxi}


class T3k:
    """The functions of this library in one place, as the peer has them."""

    build_input_jets = staticmethod(edge_jets.build_input_jets)
    compute_mu_jets = staticmethod(edge_jets.compute_mu_jets)
    compute_nu_jets = staticmethod(edge_jets.compute_nu_jets)
    compute_eta_jets = staticmethod(edge_jets.compute_eta_jets)
    compute_sigma_jets = staticmethod(edge_jets.compute_sigma_jets)
    compute_tau_jets = staticmethod(edge_jets.compute_tau_jets)
    compute_deta_jets = staticmethod(edge_jets.compute_deta_jets)
    assemble_z_jets = staticmethod(edge_jets.assemble_z_jets)
    assemble_tangent_z_jets = staticmethod(edge_jets.assemble_tangent_z_jets)
    compute_deta_tilde_jets = staticmethod(edge_adjoints.compute_deta_tilde_jets)
    compute_tau_tilde_jets = staticmethod(edge_adjoints.compute_tau_tilde_jets)
    compute_sigma_tilde_jets = staticmethod(edge_adjoints.compute_sigma_tilde_jets)
    compute_dxi_tilde_jets = staticmethod(edge_adjoints.compute_dxi_tilde_jets)


def all_jets(library: Any, problem: Problem, trs: Any) -> dict[str, Any]:
    jets = forward_jets(library, problem, trs)
    return {**jets, **adjoint_jets(library, problem, jets, trs)}


def assemblies(library: Any, problem: Problem, jets: dict[str, Any], trs: Any, n_probe: int, kept: bool, **chunk: Any):
    """The TT and the Tucker part of the gradient."""
    names = ("sigma_tilde", "tau_tilde", "deta_tilde", "xi", "mu", "nu")
    tt = library.assemble_tt_variation_jets(*(jets[name] for name in names), trs, n_probe, not kept, **chunk)
    tucker = library.assemble_tucker_variation_jets(
        problem.zz, jets["dxi_tilde"], problem.ww, problem.pp, jets["eta"], n_probe, not kept, **chunk
    )
    return tucker, tt
