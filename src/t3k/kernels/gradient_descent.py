"""Steepest descent with Armijo's line search, as a pure step on a state (see `newton` for the four names).

A step begins at the length that minimizes the Gauss-Newton model along the negative gradient, the Cauchy step
``|g|^2 / <g, H g>``, and is halved until the loss has fallen enough. It costs one Gauss-Newton product and needs no
learning rate.
"""

from dataclasses import dataclass
from typing import Any

import jax

from t3k.kernels.descent import DescentInfo, DescentState, descend, init
from t3k.kernels.objective import Objective
from t3k.kernels.status import Tolerances

__all__ = ["DescentInfo", "DescentState", "GradientDescentOptions", "init", "update"]


@dataclass(frozen=True)
class GradientDescentOptions:
    """Static settings: halvings of the line search at the most, and when to end."""

    max_halvings: int = 30
    tolerances: Tolerances = Tolerances()


def update(
    objective: Objective, options: GradientDescentOptions, state: DescentState, sample: Any, data: Any
) -> tuple[DescentState, DescentInfo]:
    """One step; a state that has ended keeps its point. Arguments and result as in `newton.update`."""
    cauchy = objective.cauchy_step(state.model, sample)
    step = jax.tree.map(lambda g: -cauchy * g, state.model.gradient)
    following, info = descend(objective, options.tolerances, options.max_halvings, state, step, sample, data)
    return following, info._replace(step_size=info.step_size * cauchy)
