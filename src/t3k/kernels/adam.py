"""Adam, or any gradient transformation in the form of Optax, as a pure step on a state (see `newton` for the names).

A transformation is a value with ``init(params)`` and ``update(gradient, state, params)``; what it returns is the
tangent to move along. Its state holds tangents of its own, such as Adam's first moments. On the manifold each step
moves to another tangent space, so these are carried along by orthogonal projection. Running means of *squares*
(Adam's second moments) are no tangents. They are recognized by having no negative entry and stay with their
coordinates, which keep their meaning: the truncation in the retraction sorts them by singular value, and the signs that
it leaves open do not matter to squares. Corewise nothing has to be carried, and a step is the transformation's own.

Source of Adam: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", ICLR (2015); of the carried moments:
G. Becigneul, O. Ganea, "Riemannian Adaptive Optimization Methods", ICLR (2019).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.krylov import tree_dot
from t3k.kernels.minibatches import draw_rows, judge_batch
from t3k.kernels.objective import Objective, settle
from t3k.kernels.status import Reason
from t3k.kernels.types import Array, Frame, T3Cores, Variations

__all__ = ["AdamInfo", "AdamOptions", "AdamState", "init", "update"]


@dataclass(frozen=True)
class AdamOptions:
    """Static settings: the transformation, and rows of a minibatch (None takes all)."""

    transformation: Any
    batch_size: int | None = None


class AdamState(NamedTuple):
    """The point, the transformation's state and the frame it is in, the key, the steps taken and a `Reason`."""

    x: T3Cores
    moments: Any
    frame: Frame
    key: Array
    iteration: Array
    status: Array


class AdamInfo(NamedTuple):
    """What a step found; `loss` and `gradient_norm` are those of its minibatch at the point before it."""

    loss: Array
    gradient_norm: Array
    step_size: Array
    accepted: Array


def init(objective: Objective, options: AdamOptions, x: T3Cores, key: Array) -> AdamState:
    """The state at x, in the shapes that a step keeps.

    Args:
      objective: static.
      options: static.
      x: the start.
      key: of all draws, from `jax.random.key`.
    """
    x = settle(objective.geometry, x)
    frame = objective.geometry.frame(x)[0]
    with jax.numpy_dtype_promotion("standard"):
        moments = options.transformation.init(objective.geometry.coordinates(frame))
    return AdamState(x, moments, frame, key, jnp.int32(0), jnp.int32(Reason.RUNNING))


def _carry(geometry: Any, old: Frame, new: Frame, moments: Any) -> Any:
    """The transformation's state in another frame."""

    def carry(tree: Any) -> Any:
        if not isinstance(tree, Variations):
            return tree
        squares = jnp.stack([jnp.all(leaf >= 0) for leaf in jax.tree.leaves(tree)]).all()
        return jax.tree.map(lambda x, y: jnp.where(squares, x, y), tree, geometry.transport(old, tree, new))

    return jax.tree.map(carry, moments, is_leaf=lambda tree: isinstance(tree, Variations))


def update(
    objective: Objective, options: AdamOptions, state: AdamState, sample: Any, data: Any
) -> tuple[AdamState, AdamInfo]:
    """One step; a state that has ended keeps its point. Arguments and result as in `newton.update`."""
    geometry, running = objective.geometry, state.status == Reason.RUNNING
    key, draw = jax.random.split(state.key)
    sample, data = draw_rows(objective.kind, draw, options.batch_size, sample, data)
    frame, loss, gradient = objective.local(state.x, sample, data)
    moments = _carry(geometry, state.frame, frame, state.moments)
    with jax.numpy_dtype_promotion("standard"):  # transformations rely on it
        step, moments = options.transformation.update(gradient, moments, geometry.coordinates(frame))
    norm = jnp.sqrt(tree_dot(gradient, gradient))
    found = judge_batch(loss, norm, state.iteration)
    accepted = (found == Reason.RUNNING) & running
    new = geometry.retract(frame, geometry.project(frame, step)), moments, frame
    old = state.x, state.moments, state.frame
    x, moments, frame = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
    status = jnp.where(running, found, state.status)
    info = AdamInfo(loss, norm, jnp.sqrt(tree_dot(step, step)), accepted)
    return AdamState(x, moments, frame, key, state.iteration + 1, status), info
