"""Many steps of an optimizer in one program.

`update` is that of `newton`, `gradient_descent`, `mc_sgd` or `adam`: with ``(objective, options, state, sample, data)``
it gives the next state and an info.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.objective import Objective
from t3k.kernels.status import Reason
from t3k.kernels.types import Array

__all__ = ["rounding_of_many", "run_many", "run_steps"]


def run_steps(
    update: Callable[..., Any], objective: Objective, options: Any, state: Any, sample: Any, data: Any, steps: Array
) -> tuple[Any, Any]:
    """The state after a number of steps, which is no static value, and the info of the last one."""

    def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return update(objective, options, carry[0], sample, data)

    kind = jax.eval_shape(lambda state: step(0, (state, None))[1], state)
    info = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kind)
    return jax.lax.fori_loop(0, steps, step, (state, info))


class _Lanes(NamedTuple):
    """Fits in parallel lanes: all states and losses, the fit in each lane, and how many fits have been given a lane."""

    states: Any
    losses: Array
    fits: Array
    given: Array


def _rows(tree: Any, fits: Array, axis: int | None) -> Any:
    return tree if axis is None else jax.tree.map(lambda leaf: leaf.at[fits].get(mode="clip"), tree)


def run_many(
    method: Any,
    objective: Objective,
    options: Any,
    max_steps: int,
    n_lanes: int,
    axes: tuple[int | None, int | None, int | None],
    sample: Any,
    data: Any,
    x: Any,
) -> tuple[Any, Array]:
    """Many fits, each from its start to its end, by an optimizer that reports its new loss.

    So many fits are taken step by step together, in lanes. A fit that has ended leaves its lane to the next that waits,
    so that the few that take long do not hold up the others, and no more than `n_lanes` take memory for a step.

    Args:
      method: the optimizer's module, static as all arguments up to `axes`.
      objective: what each fit minimizes.
      options: the optimizer's.
      max_steps: of one fit, at the most.
      n_lanes: fits that are taken together.
      axes: for sample, data and start: 0 where each fit has its own, None where all share one.
      sample: as `method` takes it.
      data: likewise.
      x: the starts.

    Returns:
      The last states, and the losses ``(fit, max_steps + 1)`` from the start's on; those after the end repeat the last.
    """
    count = next(len(jax.tree.leaves(tree)[0]) for tree, axis in zip((sample, data, x), axes, strict=True) if axis == 0)
    states = jax.vmap(lambda x: method.init(objective, x), in_axes=axes[2], axis_size=count)(x)
    update = jax.vmap(lambda *step: method.update(objective, options, *step), in_axes=(0, *axes[:2]))

    def going_on(lanes: _Lanes) -> Array:
        return jnp.any(lanes.fits < count)

    def advance(lanes: _Lanes) -> _Lanes:
        # A lane without a fit repeats the last one, and nothing of it is kept.
        state, fits = _rows(lanes.states, lanes.fits, 0), lanes.fits
        following, info = update(state, _rows(sample, fits, axes[0]), _rows(data, fits, axes[1]))
        later = jnp.arange(max_steps + 1, dtype=jnp.int32)[None] > state.iteration[:, None]
        losses = jnp.where(later, info.new_loss[:, None], _rows(lanes.losses, fits, 0))
        states, losses = jax.tree.map(
            lambda kept, new: kept.at[fits].set(new, mode="drop"), (lanes.states, lanes.losses), (following, losses)
        )
        ended = (following.status != Reason.RUNNING) | (following.iteration >= max_steps)
        given = lanes.given + jnp.cumsum(ended, dtype=jnp.int32)
        return _Lanes(states, losses, jnp.where(ended, given - 1, fits), given[-1])

    n_lanes = min(n_lanes, count)
    losses = jnp.full((count, max_steps + 1), jnp.inf, jax.tree.leaves(x)[0].dtype)
    start = _Lanes(states, losses, jnp.arange(n_lanes, dtype=jnp.int32), jnp.int32(n_lanes))
    end = jax.lax.while_loop(going_on, advance, start)
    return end.states, end.losses


def rounding_of_many(
    objective: Objective, axes: tuple[int | None, int | None], x: Any, sample: Any, data: Any
) -> Array:
    """`Objective.rounding` of each of many fits, one after the other, with the axes of sample and data."""

    def rounding(fit: Array) -> Array:
        return objective.rounding(_rows(x, fit, 0), _rows(sample, fit, axes[0]), _rows(data, fit, axes[1]))

    return jax.lax.map(rounding, jnp.arange(len(jax.tree.leaves(x)[0]), dtype=jnp.int32))
