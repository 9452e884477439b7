"""What the probe sweeps see of each mode: the frame and a tangent as matrices, and the jets that enter from outside.

The matrices are built once, outside the loop over chunks of probes. Jets get their true lengths: probing is
multilinear, so after p cores a jet has degree p, and no derivative above order d - 1 is ever computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.edge_steps import to_left, to_mode, to_right
from t3k.kernels.sweeps import Runs, find_runs, map_cores, stack_runs
from t3k.kernels.types import Array, Frame, Jet, Variations, as_tuple

__all__ = [
    "FrameCore",
    "FrameCores",
    "Static",
    "TangentCore",
    "frame_cores",
    "jet_length",
    "tangent_cores",
    "weigh_jet",
]

#: Trains up to this long get jets of their true lengths; on longer ones, that would break up runs of equal cores.
EXACT_MODES = 8


@jax.tree_util.register_static
@dataclass(frozen=True)
class Static:
    """A static value that rides along with arrays."""

    value: Any


class FrameCore(NamedTuple):
    """The frame at one mode: ``up (k, o)``, O to the mode, L to the right, R to the left.

    `mu_length` is that of the jets that enter the core from the left.
    """

    up: Array
    down: Array
    left: Array
    right: Array
    mu_length: Static


class FrameCores(NamedTuple):
    """The frame mode by mode, grouped by its runs of equal cores (see `t3k.kernels.sweeps`)."""

    runs: Static
    cores: tuple[FrameCore, ...]

    def __len__(self) -> int:
        """The number of modes."""
        return self.runs.value[-1][1]


class TangentCore(NamedTuple):
    """A tangent at one mode: ``tucker (m, o)``, and the other matrices that the forward map pushes with.

    The variation H pushes the same lifted jets as a core of the frame does. The two are one matrix, the core above H:
    one product of twice the height is up to half again as fast as two. ``up_up (k, k)`` and ``up_tucker (k, m)`` are
    U U^T and U V^T.
    """

    tucker: Array
    left_and_variation: Array
    right_and_variation: Array
    down_and_variation: Array
    right_to_right: Array
    down_to_right: Array
    left_to_left: Array
    down_to_left: Array
    right_to_mode: Array
    left_to_mode: Array
    up_up: Array
    up_tucker: Array


def jet_length(d: int, order: int) -> int:
    """The length of a jet of the whole map: probing leaves d - 1 modes to be perturbed."""
    return min(d - 1, order) + 1


def frame_cores(frame: Frame, order: int) -> FrameCores:
    """The frame ``(up, down, left, right)`` mode by mode, for derivatives up to `order`."""
    up, down, left, right = map(as_tuple, frame)
    exact = len(up) <= EXACT_MODES
    lengths = [Static((min(i, order) if exact else order) + 1) for i in range(len(up))]
    modes = list(zip(up, down, left, right, lengths, strict=True))
    runs = find_runs(modes)

    def prepare(mode: Any) -> FrameCore:
        up, down, left, right, length = mode
        return FrameCore(up, to_mode(down), to_right(left), to_left(right), length)

    return FrameCores(Static(runs), map_cores(prepare, runs, stack_runs(runs, modes)))


def tangent_cores(frame: Frame, variations: Variations, runs: Runs) -> tuple[TangentCore, ...]:
    """The tangent with these variations in this frame, mode by mode and grouped."""
    trains = map(as_tuple, (*variations, *frame))

    def prepare(mode: Any) -> TangentCore:
        tucker, variation, up, down, left, right = mode

        def above_variation(push: Callable[[Array], Array], core: Array) -> Array:
            return jnp.concatenate([push(core), push(variation)])

        return TangentCore(
            tucker,
            above_variation(to_right, left),
            above_variation(to_left, right),
            above_variation(to_mode, down),
            to_right(right),
            to_right(down),
            to_left(left),
            to_left(down),
            to_mode(right),
            to_mode(left),
            up @ up.T,
            up @ tucker.T,
        )

    return map_cores(prepare, runs, stack_runs(runs, list(zip(*trains, strict=True))))


def weigh_jet(jet: Jet, orders: Array | None, rows: Array | None) -> Jet:
    """The jet times a weight for each order ``(t,)`` and one for each probe ``(w,)``; None leaves it as it is."""
    if orders is not None:
        jet = tuple(x * orders[t] for t, x in enumerate(jet))
    return jet if rows is None else tuple(x * rows[None, :] for x in jet)
