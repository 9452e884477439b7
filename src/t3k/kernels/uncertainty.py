"""How well measurements determine a fit: the covariance of its tangent, from the Gauss-Newton operator.

With noise of variance s^2 in every weighted residual, a fit x + v of least squares has, to first order, ::

    cov(v) = s^2 H^+,     H = J^T weights J (+ the Hessian of a regularizer)

so a quantity q of the tensor, with the gradient a = dq along the tangents, has the variance ``s^2 a^T H^+ a``, one
solve by CG. The mean squared error of the whole tensor is ``s^2 trace(H^+)``, as the coordinates in an orthogonal frame
have the tensor's own inner product; random tangents z with unit covariance estimate it by the mean of ``z^T H^+ z``.

Sources: D. M. Bates, D. G. Watts, "Nonlinear Regression Analysis and Its Applications", Wiley (1988), Section 2.2;
M. F. Hutchinson, "A Stochastic Estimator of the Trace of the Influence Matrix", Commun. Stat. Simul. 18 (1989).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.krylov import conjugate_gradients, tree_dot
from t3k.kernels.lanczos import extreme_eigenvalues
from t3k.kernels.objective import Objective
from t3k.kernels.tangents import tangent_to_t3
from t3k.kernels.types import Array, Frame, T3Cores, Variations
from t3k.kernels.variations import random_variations, zero_variations

__all__ = ["CGOptions", "UnitVariances", "curvatures", "quantity_variances", "total_variances"]


@dataclass(frozen=True)
class CGOptions:
    """Static settings of the solves: the relative residual to reach, and iterations at the most."""

    tolerance: float = 1e-6
    max_iterations: int = 1000


class UnitVariances(NamedTuple):
    """Variances for noise of variance 1, and whether CG has converged; where it has not, the variance is larger."""

    variances: Array
    converged: Array


def _variance(objective: Objective, options: CGOptions, frame: Frame, sample: Any, a: Variations) -> UnitVariances:
    """``a^T H^+ a``: CG's iterates approach it from below."""
    goal = options.tolerance * jnp.sqrt(tree_dot(a, a))
    solution = conjugate_gradients(
        lambda p: objective.hessian(frame, sample, p), a, tolerance=goal, max_iterations=options.max_iterations
    )
    return UnitVariances(tree_dot(a, solution.x), solution.residual_norm <= goal)


def quantity_variances(
    objective: Objective, quantity: Callable[[T3Cores], Array], options: CGOptions, x: T3Cores, sample: Any
) -> tuple[Array, UnitVariances]:
    """The values of a quantity at a fit, an array of any shape, and their variances, one solve after the other.

    Args:
      objective: static.
      quantity: differentiable function of a T3 (static).
      options: static.
      x: the fit.
      sample: as the objective's kind takes it.
    """
    frame, _ = objective.geometry.frame(x)
    values, pull = jax.vjp(lambda v: quantity(tangent_to_t3(frame, v, include_point=True)), zero_variations(frame))

    def solve(i: Array) -> UnitVariances:
        unit = jnp.zeros(values.size, values.dtype).at[i].set(1).reshape(values.shape)
        return _variance(objective, options, frame, sample, objective.geometry.project(frame, pull(unit)[0]))

    found = jax.lax.map(solve, jnp.arange(values.size, dtype=jnp.int32))
    return values, UnitVariances(*(x.reshape(values.shape) for x in found))


def total_variances(
    objective: Objective, options: CGOptions, n_draws: int, x: T3Cores, sample: Any, key: Array
) -> UnitVariances:
    """Draws ``(n_draws,)`` of ``z^T H^+ z``, whose mean is the trace of H^+, for random tangents z.

    Arguments as in `quantity_variances`; `n_draws` is static.
    """
    frame, _ = objective.geometry.frame(x)

    def solve(key: Array) -> UnitVariances:
        z = objective.geometry.project(frame, random_variations(key, frame))
        return _variance(objective, options, frame, sample, z)

    return jax.lax.map(solve, jax.random.split(key, n_draws))


def curvatures(objective: Objective, steps: int, x: T3Cores, sample: Any, key: Array) -> tuple[Array, Array]:
    """The smallest and the largest Ritz value of H at a point, after so many products (static)."""
    frame, _ = objective.geometry.frame(x)
    start = objective.geometry.project(frame, random_variations(key, frame))
    return extreme_eigenvalues(
        lambda p: objective.hessian(frame, sample, p),
        start,
        steps=steps,
        project=lambda p: objective.geometry.project(frame, p),
    )
