"""The Gauss-Newton method with CG and a line search, as a pure step on a state.

At x, with frame and gradient g (projected in the geometry), `update`

1. solves ``P J^T W J p = -g`` by CG, to the relative tolerance ``min(1/2, (|g| / |g_0|)^power)``;
2. backtracks along ``retract(step * p)`` until Armijo's condition holds, and judges what it found (see `descent`).

Every optimizer of the library has the same four names: a state, an info, `init` and `update`. All are functions of
pytrees and static values, so that a fit may be jitted, scanned, and mapped over starts, samples or data.

The method is that of Section 6 in N. Alger et al., "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.descent import DescentState, descend, init
from t3k.kernels.krylov import conjugate_gradients, tree_dot
from t3k.kernels.objective import Objective
from t3k.kernels.status import Reason, Tolerances
from t3k.kernels.types import Array

__all__ = ["DescentState", "NewtonInfo", "NewtonOptions", "init", "update"]


@dataclass(frozen=True)
class NewtonOptions:
    """Static settings: CG iterations at the most, forcing power, halvings of the line search, and when to end."""

    max_cg: int = 200
    forcing_power: float = 0.5
    max_halvings: int = 30
    tolerances: Tolerances = Tolerances()


class NewtonInfo(NamedTuple):
    """What a step found, as `t3k.kernels.descent.DescentInfo`, and the CG iterations that it took."""

    loss: Array
    gradient_norm: Array
    new_loss: Array
    new_gradient_norm: Array
    predicted_decrease: Array
    step_size: Array
    accepted: Array
    cg_iterations: Array


def update(
    objective: Objective, options: NewtonOptions, state: DescentState, sample: Any, data: Any
) -> tuple[DescentState, NewtonInfo]:
    """One step, of which the first measures the start; a state that has ended keeps its point.

    Args:
      objective: static.
      options: static.
      state: from `init` or `update`.
      sample: where the tensor is measured, as the objective's kind takes it.
      data: what was measured.

    Returns:
      The next state, whose point is the same if no step was accepted, and what the step found.
    """
    frame, _, gradient = state.model
    norm = jnp.sqrt(tree_dot(gradient, gradient))
    forcing = jnp.minimum(0.5, jnp.maximum(norm / state.reference_norm, 0) ** options.forcing_power)
    # Where the fit has ended, the system is zero and CG takes no step, so that it does not hold up others.
    descent = jax.tree.map(lambda g: jnp.where(state.status == Reason.RUNNING, -g, 0), gradient)
    solution = conjugate_gradients(
        lambda p: objective.hessian(frame, sample, p), descent, tolerance=forcing * norm, max_iterations=options.max_cg
    )
    following, info = descend(objective, options.tolerances, options.max_halvings, state, solution.x, sample, data)
    return following, NewtonInfo(*info, solution.iterations)
