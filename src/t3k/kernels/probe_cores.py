"""What the probe sweeps see of each mode: the frame and a tangent as matrices, and the jets that enter from outside.

The matrices are built once, outside the loop over chunks of probes. Jets get their true lengths: probing is
multilinear, so after p cores a jet has degree p, and no derivative above order d - 1 is ever computed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax

from t3k.kernels.edge_steps import to_left, to_mode, to_right
from t3k.kernels.jets import scale_orders, taylor_scales
from t3k.kernels.types import Array, Cores, Frame, Jet, Variations, as_tuple

__all__ = [
    "FrameCore",
    "Length",
    "TangentCore",
    "frame_cores",
    "input_jets",
    "jet_length",
    "pull_residual",
    "tangent_cores",
    "weigh_jet",
]

#: Trains up to this long get jets of their true lengths; on longer ones, that would break up runs of equal cores.
EXACT_MODES = 8


@jax.tree_util.register_static
@dataclass(frozen=True)
class Length:
    """A static length that rides along with a core's arrays."""

    value: int


class FrameCore(NamedTuple):
    """The frame at one mode: ``up (k, o)``, O to the mode, L to the right, R to the left.

    `mu_length` is that of the jets that enter the core from the left.
    """

    up: Array
    down: Array
    left: Array
    right: Array
    mu_length: Length


class TangentCore(NamedTuple):
    """A tangent at one mode: ``tucker (m, o)``, and the other matrices that the forward map pushes with."""

    tucker: Array
    right_to_right: Array
    variation_to_right: Array
    down_to_right: Array
    left_to_left: Array
    variation_to_left: Array
    down_to_left: Array
    right_to_mode: Array
    variation_to_mode: Array
    left_to_mode: Array


def jet_length(d: int, order: int) -> int:
    """The length of a jet of the whole map: probing leaves d - 1 modes to be perturbed."""
    return min(d - 1, order) + 1


def frame_cores(frame: Frame, order: int) -> tuple[FrameCore, ...]:
    """The frame ``(up, down, left, right)`` mode by mode, for derivatives up to `order`."""
    up, down, left, right = map(as_tuple, frame)
    exact = len(up) <= EXACT_MODES
    lengths = [Length((min(i, order) if exact else order) + 1) for i in range(len(up))]
    return tuple(
        FrameCore(up[i], to_mode(down[i]), to_right(left[i]), to_left(right[i]), lengths[i]) for i in range(len(up))
    )


def tangent_cores(frame: Frame, variations: Variations) -> tuple[TangentCore, ...]:
    """The tangent with these variations in this frame, mode by mode."""
    _, down, left, right = map(as_tuple, frame)
    tucker, tt = map(as_tuple, variations)
    return tuple(
        TangentCore(
            tucker[i],
            *(to_right(core) for core in (right[i], tt[i], down[i])),
            *(to_left(core) for core in (left[i], tt[i], down[i])),
            *(to_mode(core) for core in (right[i], tt[i], left[i])),
        )
        for i in range(len(tucker))
    )


def input_jets(tucker: tuple[Array, ...], ww: Cores, pp: Cores | None) -> tuple[Jet, ...]:
    """The jets of ``U_i (w_i + s p_i)``: one or (with directions) two arrays ``(k, w)`` a mode."""
    inputs = zip(*(as_tuple(x) for x in (ww, pp) if x is not None), strict=True)
    return tuple(tuple(up @ x.T for x in xs) for up, xs in zip(tucker, inputs, strict=True))


def weigh_jet(jet: Jet, orders: Array | None, rows: Array | None) -> Jet:
    """The jet times a weight for each order ``(t,)`` and one for each probe ``(w,)``; None leaves it as it is."""
    if orders is not None:
        jet = tuple(x * orders[t] for t, x in enumerate(jet))
    return jet if rows is None else tuple(x * rows[None, :] for x in jet)


def pull_residual(up: Array, z: Array, length: int) -> Jet:
    """``D_t = t! U z_t``: the adjoint of the lift to ``z_t = t! U^T deta_t``, from ``z (t, w, o)``."""
    return scale_orders(tuple(up @ z[t].T for t in range(length)), taylor_scales(length))
