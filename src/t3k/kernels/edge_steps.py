"""One core's part of every sweep: the recursions of the edge variables, each written once.

Forward (a tangent in the frame (U, O, L, R) with variations (V, H), all products truncated; left variables enter
core i from the left, right variables from the right; ``L(x)`` is core L contracted with the lifted jet x)::

    mu'    = L(mu * xi)                                     nu'    = R(xi * nu)
    sigma' = R(sigma * xi) + H(mu * xi) + O(mu * dxi)       tau'   = L(xi * tau) + H(xi * nu) + O(dxi * nu)
    eta    = O(mu * nu)                                     deta   = R(sigma * nu) + H(mu * nu) + L(mu * tau)

Adjoint (D is the residual jet pulled through U, ``x . u`` is `jets.correlate`, the transpose of the product)::

    tau~'  = L(E),  E = tau~ . xi + D . mu                  sigma~' = R(F),  F = sigma~ . xi + D . nu
    dxi~   = O(tau~ . nu + sigma~ . mu)                     dG      = sum_w (mu * xi) sigma~^T + E nu^T

Source of the plain recursions: N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series",
arXiv:2603.21141 (2026), Section 6 and Appendix A.3; the jets are their derivatives along X + s P.

A core enters as the matrices that its pushes need, named for where they push to: ``to_right (b, a k)``,
``to_left (a, k b)`` and ``to_mode (k, a b)``.
"""

from typing import Any

from t3k.kernels.jets import add_and_store, add_jets, correlate, lift, multiply, total, transform
from t3k.kernels.types import Array, Jet

__all__ = [
    "core_gradient",
    "core_gradients_kept",
    "lifted_dxi_tilde",
    "lifted_sigma_tilde",
    "lifted_tau_tilde",
    "push_sigma",
    "push_tau",
    "deta_jet",
    "to_left",
    "to_mode",
    "to_right",
]


def to_right(core: Array) -> Array:
    """The matrix ``(b, a k)`` of a core ``(a, k, b)``, which pushes a jet lifted to ``(a k, w)`` to the right."""
    return core.reshape(-1, core.shape[2]).T


def to_left(core: Array) -> Array:
    """The matrix ``(a, k b)`` of a core ``(a, k, b)``, which pushes a jet lifted to ``(k b, w)`` to the left."""
    return core.reshape(core.shape[0], -1)


def to_mode(core: Array) -> Array:
    """The matrix ``(k, a b)`` of a core ``(a, k, b)``, which pushes a jet lifted to ``(a b, w)`` to the mode."""
    return core.transpose(1, 0, 2).reshape(core.shape[1], -1)


def push_sigma(
    right: Array, down: Array, varied: Jet, sigma: Jet, mu: Jet, xi: Jet, dxi: Jet, length: int, trs: Any = None
) -> Jet:
    """``sigma' = R(sigma * xi) + H(mu * xi) + O(mu * dxi)``: `to_right` matrices, and `varied` is the middle term."""
    return add_and_store(
        transform(right, multiply(sigma, xi, length, trs)), varied, transform(down, multiply(mu, dxi, length, trs))
    )


def push_tau(
    left: Array, down: Array, varied: Jet, tau: Jet, nu: Jet, xi: Jet, dxi: Jet, length: int, trs: Any = None
) -> Jet:
    """``tau' = L(xi * tau) + H(xi * nu) + O(dxi * nu)``: `to_left` matrices, and `varied` is the middle term."""
    return add_and_store(
        transform(left, multiply(xi, tau, length, trs)), varied, transform(down, multiply(dxi, nu, length, trs))
    )


def deta_jet(
    left: Array, right: Array, varied: Jet, mu: Jet, nu: Jet, sigma: Jet, tau: Jet, length: int, trs: Any = None
) -> Jet:
    """``deta = R(sigma * nu) + H(mu * nu) + L(mu * tau)``: `to_mode` matrices, and `varied` is the middle term."""
    return add_jets(
        transform(right, multiply(sigma, nu, length, trs)), varied, transform(left, multiply(mu, tau, length, trs))
    )


def lifted_tau_tilde(tau_tilde: Jet, pulled: Jet, xi: Jet, mu: Jet, length: int, trs: Any = None) -> Jet:
    """``E = tau~ . xi + D . mu``, lifted to ``(a k, w)``: pushed through L it is the next tau~."""
    return add_jets(correlate(tau_tilde, xi, length, trs), correlate(pulled, mu, length, trs, swap=True))


def lifted_sigma_tilde(sigma_tilde: Jet, pulled: Jet, xi: Jet, nu: Jet, length: int, trs: Any = None) -> Jet:
    """``F = sigma~ . xi + D . nu``, lifted to ``(k b, w)``: pushed through R it is the next sigma~."""
    return add_jets(correlate(sigma_tilde, xi, length, trs, swap=True), correlate(pulled, nu, length, trs))


def lifted_dxi_tilde(tau_tilde: Jet, sigma_tilde: Jet, mu: Jet, nu: Jet, length: int, trs: Any = None) -> Jet:
    """``tau~ . nu + sigma~ . mu``, lifted to ``(a b, w)``: O makes dxi~ of it. w + s p needs orders 0 and 1 only."""
    return add_jets(correlate(tau_tilde, nu, length, trs), correlate(sigma_tilde, mu, length, trs, swap=True))


def _pairs(lifted_mu: Jet, sigma_tilde: Jet, lifted_tau: Jet, nu: Jet) -> list[tuple[Array, Array]]:
    return [*zip(lifted_mu, sigma_tilde, strict=False), *zip(lifted_tau, nu, strict=False)]


def core_gradient(lifted_mu: Jet, sigma_tilde: Jet, lifted_tau: Jet, nu: Jet) -> Array:
    """``dG (a k, b) = sum_w (mu * xi) sigma~^T + E nu^T``, summed over the probes and the orders."""
    return total(x @ y.T for x, y in _pairs(lifted_mu, sigma_tilde, lifted_tau, nu))


def core_gradients_kept(lifted_mu: Jet, sigma_tilde: Jet, lifted_tau: Jet, nu: Jet) -> Array:
    """The same for each probe apart: ``(w, a k, b)``."""
    pairs = _pairs(lifted_mu, sigma_tilde, lifted_tau, nu)
    (ak, w), b = pairs[0][0].shape, pairs[0][1].shape[0]
    return total(lift(x, y) for x, y in pairs).reshape(ak, b, w).transpose(2, 0, 1)
