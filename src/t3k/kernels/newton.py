"""The Gauss-Newton method with CG and a line search, as a pure step on a state.

At x, with frame, loss f and gradient g (projected in the geometry), `update`

1. solves ``P J^T W J p = -g`` by CG, to the relative tolerance ``min(1/2, (|g| / |g_0|)^power)``;
2. backtracks along ``retract(step * p)`` until Armijo's condition holds;
3. judges what it found (see `status`) and reports it as scalars.

Every optimizer of the library has the same four names: a state, an info, `init` and `update`. All are functions of
pytrees and static values, so that a fit may be jitted, scanned, and mapped over starts, samples or data.

The method is that of Section 6 in N. Alger et al., "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.krylov import conjugate_gradients, tree_dot
from t3k.kernels.line_search import backtrack
from t3k.kernels.objective import Objective, settle
from t3k.kernels.status import Progress, Reason, Tolerances, judge
from t3k.kernels.types import Array, T3Cores, Variations

__all__ = ["NewtonInfo", "NewtonOptions", "NewtonState", "init", "update"]


@dataclass(frozen=True)
class NewtonOptions:
    """Static settings: CG iterations at the most, forcing power, halvings of the line search, and when to end."""

    max_cg: int = 200
    forcing_power: float = 0.5
    max_halvings: int = 30
    tolerances: Tolerances = Tolerances()


class NewtonState(NamedTuple):
    """The point, the norm of the first gradient, the steps taken and a `Reason`."""

    x: T3Cores
    reference_norm: Array
    iteration: Array
    status: Array


class NewtonInfo(NamedTuple):
    """What a step found; `loss` and `gradient_norm` are those of the point before it."""

    loss: Array
    gradient_norm: Array
    new_loss: Array
    predicted_decrease: Array
    step_size: Array
    accepted: Array
    cg_iterations: Array


def init(objective: Objective, x: T3Cores) -> NewtonState:
    """The state at x, in the shapes that a step keeps.

    Args:
      objective: static.
      x: the start.
    """
    norm = jnp.full((), jnp.inf, x.tt[0].dtype)
    return NewtonState(settle(objective.geometry, x), norm, jnp.int32(0), jnp.int32(Reason.RUNNING))


def update(
    objective: Objective, options: NewtonOptions, state: NewtonState, sample: Any, data: Any
) -> tuple[NewtonState, NewtonInfo]:
    """One step; a state that has ended keeps its point.

    Args:
      objective: static.
      options: static.
      state: from `init` or `update`.
      sample: where the tensor is measured, as the objective's kind takes it.
      data: what was measured.

    Returns:
      The next state, whose point is the same if no step was accepted, and what the step found.
    """
    geometry, running = objective.geometry, state.status == Reason.RUNNING
    frame, loss, gradient = objective.local(state.x, sample, data)
    norm = jnp.sqrt(tree_dot(gradient, gradient))
    reference = jnp.where(state.iteration > 0, state.reference_norm, norm)
    forcing = jnp.minimum(0.5, jnp.maximum(norm / reference, 0) ** options.forcing_power)
    # Where the fit has ended, the system is zero and CG takes no step, so that it does not hold up others.
    descent = jax.tree.map(lambda g: jnp.where(running, -g, 0), gradient)
    solution = conjugate_gradients(
        lambda p: objective.hessian(frame, sample, p), descent, tolerance=forcing * norm, max_iterations=options.max_cg
    )
    slope = tree_dot(gradient, solution.x)

    def trial(step_size: Array) -> tuple[T3Cores, Array]:
        step: Variations = jax.tree.map(lambda leaf: step_size * leaf, solution.x)
        candidate = geometry.retract(frame, step)
        return candidate, objective.value(candidate, sample, data)

    search = backtrack(trial, state.x, loss, slope, max_halvings=options.max_halvings)
    accepted = search.accepted & running
    x = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), search.point, state.x)
    new_loss = jnp.where(accepted, search.value, loss)
    found = Progress(loss, norm, new_loss, -slope / 2, accepted)
    floor = objective.rounding(state.x, sample, data, running & ~accepted)
    judged = judge(found, reference, state.iteration, options.tolerances, floor)
    status = jnp.where(running, judged, state.status)
    info = NewtonInfo(loss, norm, new_loss, -slope / 2, search.step_size, accepted, solution.iterations)
    return NewtonState(x, reference, state.iteration + 1, status), info
