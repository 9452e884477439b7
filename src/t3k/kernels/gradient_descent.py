"""Steepest descent with Armijo's line search, as a pure step on a state (see `newton` for the four names).

A step begins at the length that minimizes the Gauss-Newton model along the negative gradient, the Cauchy step
``|g|^2 / <g, H g>``, and is halved until the loss has fallen enough. It costs one Gauss-Newton product and needs no
learning rate.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.krylov import tree_dot
from t3k.kernels.line_search import backtrack
from t3k.kernels.objective import Objective, settle
from t3k.kernels.status import Progress, Reason, Tolerances, judge
from t3k.kernels.types import Array, T3Cores

__all__ = ["GradientDescentInfo", "GradientDescentOptions", "GradientDescentState", "init", "update"]


@dataclass(frozen=True)
class GradientDescentOptions:
    """Static settings: halvings of the line search at the most, and when to end."""

    max_halvings: int = 30
    tolerances: Tolerances = Tolerances()


class GradientDescentState(NamedTuple):
    """The point, the norm of the first gradient, the steps taken and a `Reason`."""

    x: T3Cores
    reference_norm: Array
    iteration: Array
    status: Array


class GradientDescentInfo(NamedTuple):
    """What a step found; `loss` and `gradient_norm` are those of the point before it."""

    loss: Array
    gradient_norm: Array
    new_loss: Array
    predicted_decrease: Array
    step_size: Array
    accepted: Array


def init(objective: Objective, x: T3Cores) -> GradientDescentState:
    """The state at x, in the shapes that a step keeps.

    Args:
      objective: static.
      x: the start.
    """
    norm = jnp.full((), jnp.inf, x.tt[0].dtype)
    return GradientDescentState(settle(objective.geometry, x), norm, jnp.int32(0), jnp.int32(Reason.RUNNING))


def update(
    objective: Objective, options: GradientDescentOptions, state: GradientDescentState, sample: Any, data: Any
) -> tuple[GradientDescentState, GradientDescentInfo]:
    """One step; a state that has ended keeps its point. Arguments and result as in `newton.update`."""
    running = state.status == Reason.RUNNING
    model = objective.local(state.x, sample, data)
    square = tree_dot(model.gradient, model.gradient)
    norm = jnp.sqrt(square)
    reference = jnp.where(state.iteration > 0, state.reference_norm, norm)
    cauchy = objective.cauchy_step(model, sample)

    def trial(fraction: Array) -> tuple[T3Cores, Array]:
        step = jax.tree.map(lambda g: -fraction * cauchy * g, model.gradient)
        candidate = objective.geometry.retract(model.frame, step)
        return candidate, objective.value(candidate, sample, data)

    search = backtrack(trial, state.x, model.loss, -cauchy * square, max_halvings=options.max_halvings)
    accepted = search.accepted & running
    x = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), search.point, state.x)
    new_loss = jnp.where(accepted, search.value, model.loss)
    found = Progress(model.loss, norm, new_loss, cauchy * square / 2, accepted)
    floor = objective.rounding(state.x, sample, data, running & ~accepted)
    judged = judge(found, reference, state.iteration, options.tolerances, floor)
    status = jnp.where(running, judged, state.status)
    info = GradientDescentInfo(*found[:4], search.step_size * cauchy, accepted)
    return GradientDescentState(x, reference, state.iteration + 1, status), info
