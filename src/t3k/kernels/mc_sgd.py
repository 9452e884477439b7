"""Stochastic gradient descent with the Cauchy step, as a pure step on a state (see `newton` for the four names).

Every step draws a minibatch by its own key and moves along the batch's negative gradient by the length
``|g|^2 / <g, H g>`` that minimizes the batch's Gauss-Newton model; there is no learning rate. On the manifold the
retraction keeps that length safe; corewise, where the model is less so, `adam` is the better choice.

Source: N. Alger et al., "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026), Section 5.3.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.krylov import tree_dot
from t3k.kernels.minibatches import draw_rows, judge_batch
from t3k.kernels.objective import Objective, settle
from t3k.kernels.status import Reason
from t3k.kernels.types import Array, T3Cores

__all__ = ["McSgdInfo", "McSgdOptions", "McSgdState", "init", "update"]


@dataclass(frozen=True)
class McSgdOptions:
    """Static settings: rows of a minibatch (None takes all), and a factor on the Cauchy step."""

    batch_size: int | None = None
    damping: float = 1.0


class McSgdState(NamedTuple):
    """The point, the key of the next draw, the steps taken and a `Reason`."""

    x: T3Cores
    key: Array
    iteration: Array
    status: Array


class McSgdInfo(NamedTuple):
    """What a step found; `loss` and `gradient_norm` are those of its minibatch at the point before it."""

    loss: Array
    gradient_norm: Array
    step_size: Array
    accepted: Array


def init(objective: Objective, x: T3Cores, key: Array) -> McSgdState:
    """The state at x, in the shapes that a step keeps.

    Args:
      objective: static.
      x: the start.
      key: of all draws, from `jax.random.key`.
    """
    return McSgdState(settle(objective.geometry, x), key, jnp.int32(0), jnp.int32(Reason.RUNNING))


def update(
    objective: Objective, options: McSgdOptions, state: McSgdState, sample: Any, data: Any
) -> tuple[McSgdState, McSgdInfo]:
    """One step; a state that has ended keeps its point. Arguments and result as in `newton.update`."""
    key, draw = jax.random.split(state.key)
    sample, data = draw_rows(objective.kind, draw, options.batch_size, sample, data)
    model = objective.local(state.x, sample, data)
    norm = jnp.sqrt(tree_dot(model.gradient, model.gradient))
    step_size = options.damping * objective.cauchy_step(model, sample)
    found = judge_batch(model.loss, norm, state.iteration)
    accepted = (found == Reason.RUNNING) & (state.status == Reason.RUNNING)
    moved = objective.geometry.retract(model.frame, jax.tree.map(lambda g: -step_size * g, model.gradient))
    x = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, state.x)
    status = jnp.where(state.status == Reason.RUNNING, found, state.status)
    return McSgdState(x, key, state.iteration + 1, status), McSgdInfo(model.loss, norm, step_size, accepted)
