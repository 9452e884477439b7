"""Many steps of an optimizer in one program.

`update` is that of `newton`, `gradient_descent`, `mc_sgd` or `adam`: with ``(objective, options, state, sample, data)``
it gives the next state and an info.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.objective import Objective
from t3k.kernels.status import Reason
from t3k.kernels.types import Array

__all__ = ["run_many", "run_steps", "run_to_end"]


def run_steps(
    update: Callable[..., Any], objective: Objective, options: Any, state: Any, sample: Any, data: Any, steps: Array
) -> tuple[Any, Any]:
    """The state after a number of steps, which is no static value, and the info of the last one."""

    def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return update(objective, options, carry[0], sample, data)

    kind = jax.eval_shape(lambda state: step(0, (state, None))[1], state)
    info = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), kind)
    return jax.lax.fori_loop(0, steps, step, (state, info))


def run_to_end(
    update: Callable[..., Any], objective: Objective, options: Any, max_steps: int, state: Any, sample: Any, data: Any
) -> tuple[Any, Array]:
    """Steps until the fit ends, or `max_steps` (static) of an optimizer that reports its new loss.

    Mapped over many fits it goes on until all have ended; each keeps the state that it ended with.

    Returns:
      The last state, and the losses ``(max_steps + 1,)`` from the start's on; those after the end repeat the last.
    """
    dtype = state.x.tt[0].dtype
    losses = jnp.full(max_steps + 1, jnp.inf, dtype)

    def going_on(carry: tuple[Any, Array]) -> Array:
        return (carry[0].status == Reason.RUNNING) & (carry[0].iteration < max_steps)

    def advance(carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, losses = carry
        following, info = update(objective, options, state, sample, data)
        losses = losses.at[0].set(jnp.where(state.iteration == 0, info.loss, losses[0]))
        later = jnp.arange(max_steps + 1, dtype=jnp.int32) > state.iteration
        return following, jnp.where(later, info.new_loss, losses)

    return jax.lax.while_loop(going_on, advance, (state, losses))


def run_many(
    method: Any, objective: Objective, options: Any, max_steps: int, axes: Any, sample: Any, data: Any, x: Any
) -> tuple[Any, Array]:
    """`run_to_end` from `init` on, mapped over the axes (static) of sample, data and start; `method` is a module."""

    def fit(sample: Any, data: Any, x: Any) -> tuple[Any, Array]:
        state = method.init(objective, x)
        return run_to_end(method.update, objective, options, max_steps, state, sample, data)

    return jax.vmap(fit, in_axes=axes)(sample, data, x)
