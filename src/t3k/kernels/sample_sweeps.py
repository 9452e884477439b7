"""The sweeps over a block of samples with no mode left free; see `edge_steps` for the recursions.

An apply contracts the tensor with a vector in every mode, and an entry is an apply to unit vectors. Nothing leaves to
a mode, so the sweep from the left carries mu and sigma through to the end, where they are summed over the last bond;
from there one adjoint sweep brings sigma~ back and makes the gradient as it goes ::

    y = sum_b sigma_d[b]          sigma~_{d-1}[b] = y~          sigma~_{i-1} = R_i (sigma~_i . xi_i)
    dG_i = sum_w (mu_i * xi_i) sigma~_i^T                       dxi~_i = O_i (sigma~_i . mu_i)

Items and results are grouped by runs of equal cores (see `sweeps`); jets hold Taylor coefficients.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp

from t3k.kernels.constants import filled_like
from t3k.kernels.edge_steps import (
    core_gradient,
    core_gradients_kept,
    lifted_dxi_tilde,
    lifted_sigma_tilde,
    push_sigma,
)
from t3k.kernels.jets import multiply, pad_jet, transform, transform_pair
from t3k.kernels.probe_cores import FrameCore, TangentCore
from t3k.kernels.sweeps import Runs, sweep
from t3k.kernels.types import Array, Jet

__all__ = ["SampleParts", "adjoint_sweep", "forward_sweep"]

Carry = tuple[Jet, Jet | None]


class SampleParts(NamedTuple):
    """The gradient at one core: dG ``(a k, b)``, and the jet that makes dU together with the samples."""

    core: Array
    dxi_tilde: Jet


class _Item(NamedTuple):
    """What a step sees of a core; what this sweep does without is None or the empty jet."""

    core: FrameCore
    xi: Jet
    tangent: TangentCore | None = None
    dxi: Jet = ()
    mu: Jet = ()


def _settle(order: int, carry: Carry, item: _Item) -> Carry:
    """Pads the jets to the length that they keep along a scanned run, where L and R are square in bonds."""

    def pad(jet: Jet, matrix: Array) -> Jet:
        return pad_jet(jet, order + 1, (matrix.shape[-2], item.xi[0].shape[-1]), item.xi[0])

    mu, sigma = carry
    return pad(mu, item.core.left), None if sigma is None else pad(sigma, item.core.right)


def _push(order: int, carry: Carry, item: _Item) -> tuple[Carry, Jet]:
    mu, sigma = carry
    lifted, tangent = multiply(mu, item.xi, order + 1), item.tangent
    if tangent is None or sigma is None:
        return (transform(item.core.left, lifted), None), mu
    following, varied = transform_pair(tangent.left_and_variation, item.core.left.shape[-2], lifted)
    matrices = tangent.right_to_right, tangent.down_to_right
    return (following, push_sigma(*matrices, varied, sigma, mu, item.xi, item.dxi, order + 1)), mu


def forward_sweep(
    runs: Runs,
    cores: Sequence[FrameCore],
    xi: Sequence[Jet],
    order: int,
    tangents: Sequence[TangentCore] | None = None,
    dxi: Sequence[Jet] | None = None,
) -> tuple[Jet, tuple[Jet, ...]]:
    """The sampled jet, arrays ``(w,)``, and the mu that enters each core.

    The sample is that of the tangent where `tangents` and `dxi` are given, else that of the base point.
    """
    first, like = cores[0], xi[0][0]
    one = (filled_like(like, 1, (first.left.shape[-1] // first.up.shape[-2], like.shape[-1])),)
    if tangents is None or dxi is None:
        items = [_Item(*item) for item in zip(cores, xi, strict=True)]
        carry: Carry = one, None
    else:
        items = [_Item(*item) for item in zip(cores, xi, tangents, dxi, strict=True)]
        carry = one, ()
    (mu, sigma), mus = sweep(partial(_push, order), carry, runs, items, settle=partial(_settle, order))
    return tuple(x.sum(axis=0) for x in (mu if sigma is None else sigma)), mus


def _pull(kept: bool, sigma_tilde: Jet, item: _Item) -> tuple[Jet, SampleParts]:
    lifted = multiply(item.mu, item.xi, len(sigma_tilde))
    core = (core_gradients_kept if kept else core_gradient)(lifted, sigma_tilde, (), ())
    dxi_tilde = transform(item.core.down, lifted_dxi_tilde((), sigma_tilde, item.mu, (), len(item.xi)))
    following = lifted_sigma_tilde(sigma_tilde, (), item.xi, (), item.core.mu_length.value)
    return transform(item.core.right, following), SampleParts(core, dxi_tilde)


def adjoint_sweep(
    runs: Runs, cores: Sequence[FrameCore], xi: Sequence[Jet], mus: Sequence[Jet], residual: Jet, *, kept: bool
) -> tuple[SampleParts, ...]:
    """The gradient's parts from the adjoint jet of the samples, arrays ``(w,)``; `kept` leaves the samples apart."""
    last = cores[-1]
    bond = last.right.shape[-1] // last.up.shape[-2]
    sigma_tilde = tuple(jnp.broadcast_to(z, (bond, *z.shape)) for z in residual)
    items = [_Item(core, x, mu=mu) for core, x, mu in zip(cores, xi, mus, strict=True)]
    return sweep(partial(_pull, kept), sigma_tilde, runs, items, reverse=True)[1]
