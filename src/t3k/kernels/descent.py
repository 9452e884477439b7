"""What the optimizers that lower the loss of all data share: a line search along a tangent, and its judgement.

The state holds the objective's model at its point, measured by the line search that found the point: value and
gradient come from one pass over the data, which a trial that is turned down wastes, but most are not. So an iteration
measures one point, and a fit ends where it has converged instead of a step later.

The start is measured by the first update, which takes no step, so that a program holds that measurement once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.frames import corewise_frame
from t3k.kernels.krylov import tree_dot
from t3k.kernels.line_search import backtrack
from t3k.kernels.objective import LocalModel, Objective, settle
from t3k.kernels.status import Progress, Reason, Tolerances, judge
from t3k.kernels.types import Array, T3Cores, Variations
from t3k.kernels.variations import zero_variations

__all__ = ["DescentInfo", "DescentState", "descend", "init"]


class DescentState(NamedTuple):
    """The point and the model there, the norm of the first gradient, the steps taken and a `Reason`.

    Before the start has been measured the steps are -1, its loss is infinite, and its gradient zero.
    """

    x: T3Cores
    model: LocalModel
    reference_norm: Array
    iteration: Array
    status: Array


class DescentInfo(NamedTuple):
    """What a step found: loss and gradient before it and after it, the fall that its model promised, its length."""

    loss: Array
    gradient_norm: Array
    new_loss: Array
    new_gradient_norm: Array
    predicted_decrease: Array
    step_size: Array
    accepted: Array


def init(objective: Objective, x: T3Cores) -> DescentState:
    """The state at x, in the shapes that a step keeps; the first update measures it.

    Args:
      objective: static.
      x: the start.
    """
    x, infinite = settle(objective.geometry, x), jnp.full((), jnp.inf, x.tt[0].dtype)
    # Nothing is asked of this frame but the shapes of all others, which are those of settled cores.
    frame, _ = corewise_frame(x)
    model = LocalModel(frame, infinite, zero_variations(frame))
    return DescentState(x, model, infinite, jnp.int32(-1), jnp.int32(Reason.RUNNING))


def descend(
    objective: Objective,
    tolerances: Tolerances,
    max_halvings: int,
    state: DescentState,
    step: Variations,
    sample: Any,
    data: Any,
) -> tuple[DescentState, DescentInfo]:
    """Goes along a step as far as the loss falls enough; a state that has ended keeps its point.

    Args:
      objective: static.
      tolerances: static.
      max_halvings: of the step, at the most (static).
      state: from `init` or the step before.
      step: a tangent at the point along which the loss falls; zero where the start is yet to be measured.
      sample: where the tensor is measured, as the objective's kind takes it.
      data: what was measured.

    Returns:
      The next state, whose point is the same if no step was accepted, and what was found.
    """
    model, running, unmeasured = state.model, state.status == Reason.RUNNING, state.iteration < 0
    slope = tree_dot(model.gradient, step)

    def trial(step_size: Array) -> tuple[tuple[T3Cores, LocalModel], Array]:
        moved = objective.geometry.retract(model.frame, jax.tree.map(lambda leaf: step_size * leaf, step))
        x = jax.tree.map(lambda new, old: jnp.where(unmeasured, old, new), moved, state.x)
        found = objective.local(x, sample, data)
        return (x, found), found.loss

    trials = jnp.where(unmeasured, 1, max_halvings)
    search = backtrack(trial, (state.x, model), model.loss, slope, max_halvings=trials)
    accepted = search.accepted & running
    x, found = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), search.point, (state.x, model))
    norm, new_norm = (jnp.sqrt(tree_dot(g, g)) for g in (model.gradient, found.gradient))
    reference = jnp.where(unmeasured, new_norm, state.reference_norm)
    progress = Progress(model.loss, found.loss, new_norm, -slope / 2, accepted)
    judged = judge(progress, reference, unmeasured, tolerances)
    status = jnp.where(running, judged, state.status)
    info = DescentInfo(model.loss, norm, found.loss, new_norm, -slope / 2, search.step_size, accepted)
    return DescentState(x, found, reference, state.iteration + 1, status), info
