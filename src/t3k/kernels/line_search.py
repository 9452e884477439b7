"""Backtracking line search with Armijo's condition.

Source: L. Armijo, "Minimization of functions having Lipschitz continuous first partial derivatives", Pacific J.
Math. 16 (1966); J. Nocedal, S. Wright, "Numerical Optimization" (2006), Algorithm 3.1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array

__all__ = ["LineSearchResult", "backtrack"]


class LineSearchResult(NamedTuple):
    """Where the search ended: step size, point, value, and whether the value fell enough."""

    step_size: Array
    point: Any
    value: Array
    accepted: Array


def backtrack(
    trial: Callable[[Array], tuple[Any, Array]],
    point: Any,
    value: Array,
    slope: Array,
    *,
    sufficient: float = 1e-4,
    shrink: float = 0.5,
    max_halvings: int | Array = 30,
) -> LineSearchResult:
    """The largest of the steps 1, `shrink`, `shrink`^2, .. at which ``f(step) <= f(0) + sufficient step slope``.

    A value that is not finite is a step that is too long.

    Args:
      trial: from a step size to ``(point, value)`` there.
      point: where the search starts, in the structure of what `trial` gives.
      value: f(0).
      slope: the derivative of f at 0 along the step, negative.
      sufficient: Armijo's constant.
      shrink: factor from one step to the next.
      max_halvings: how many steps are tried at the most.

    Returns:
      The step that was accepted, or the last one that was tried with ``accepted`` False.
    """

    def enough(step_size: Array, new_value: Array) -> Array:
        return jnp.isfinite(new_value) & (new_value <= value + sufficient * step_size * slope)

    def going_on(state: tuple[LineSearchResult, Array]) -> Array:
        result, tried = state
        return ~result.accepted & (tried < max_halvings)

    def halve(state: tuple[LineSearchResult, Array]) -> tuple[LineSearchResult, Array]:
        result, tried = state
        step_size = result.step_size * shrink
        new_point, new_value = trial(step_size)
        return LineSearchResult(step_size, new_point, new_value, enough(step_size, new_value)), tried + 1

    # The loop makes the first trial as well: its body, which holds a retraction, is then compiled once.
    unit = jnp.asarray(1 / shrink, value.dtype)
    start = LineSearchResult(unit, point, jnp.full_like(value, jnp.inf), jnp.bool(False))
    return jax.lax.while_loop(going_on, halve, (start, jnp.int32(0)))[0]
