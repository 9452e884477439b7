"""One step of the Gauss-Newton method with CG and a line search, as a single compiled function.

At x, with frame, misfit f and gradient g (projected in the geometry):

1. solve ``P J^T W J p = -g`` by CG, to the relative tolerance ``min(1/2, (|g| / |g_0|)^power)``;
2. backtrack along ``retract(step * p)`` until Armijo's condition holds;
3. report what was found as scalars, for a host loop to read.

The method is that of Section 6 in N. Alger et al., "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.frames import corewise_frame
from t3k.kernels.krylov import conjugate_gradients, tree_dot
from t3k.kernels.line_search import backtrack
from t3k.kernels.measurements import MeasurementKind
from t3k.kernels.types import Array, T3Cores, Variations

__all__ = ["NewtonOptions", "NewtonStep", "newton_step", "point_misfit"]


@dataclass(frozen=True)
class NewtonOptions:
    """Static settings of a step: CG iterations at the most, forcing power, and halvings of the line search."""

    max_cg: int = 200
    forcing_power: float = 0.5
    max_halvings: int = 30


class NewtonStep(NamedTuple):
    """The new point and what happened on the way; `loss` and `gradient_norm` are those of the point before."""

    x: T3Cores
    loss: Array
    gradient_norm: Array
    new_loss: Array
    predicted_decrease: Array
    step_size: Array
    cg_iterations: Array
    accepted: Array


def newton_step(
    geometry: Any,
    kind: MeasurementKind,
    options: NewtonOptions,
    x: T3Cores,
    sample: Any,
    data: Any,
    reference_norm: Array,
) -> NewtonStep:
    """One step from x; `reference_norm` is the first gradient's norm (infinity: this is the first).

    Args:
      geometry: `geometry.Manifold` or `geometry.Corewise` (static).
      kind: the kind of measurement (static).
      options: static.
      x: the point.
      sample: where the tensor is measured, as `kind` takes it.
      data: what was measured.
      reference_norm: scalar.

    Returns:
      The new point, which is x itself if no step was accepted, and scalars.
    """
    frame, point = geometry.frame(x)
    loss, gradient = kind.misfit(sample, data, point, frame, gradient=True)
    gradient = geometry.project(frame, gradient)
    norm = jnp.sqrt(tree_dot(gradient, gradient))

    def hessian(p: Variations) -> Variations:
        return geometry.project(frame, kind.gauss_newton(sample, p, frame))

    reference = jnp.where(jnp.isfinite(reference_norm), reference_norm, norm)
    forcing = jnp.minimum(0.5, jnp.maximum(norm / reference, 0) ** options.forcing_power)
    descent = jax.tree.map(jnp.negative, gradient)
    solution = conjugate_gradients(hessian, descent, tolerance=forcing * norm, max_iterations=options.max_cg)
    slope = tree_dot(gradient, solution.x)

    def trial(step_size: Array) -> tuple[T3Cores, Array]:
        candidate = geometry.retract(frame, jax.tree.map(lambda leaf: step_size * leaf, solution.x))
        return candidate, point_misfit(kind, sample, data, candidate)

    # (U, L) is x in the shapes that retraction gives, on both geometries.
    x = T3Cores(frame.up, frame.left)
    search = backtrack(trial, x, loss, slope, max_halvings=options.max_halvings)
    chosen = jax.tree.map(lambda new, old: jnp.where(search.accepted, new, old), search.point, x)
    new_loss = jnp.where(search.accepted, search.value, loss)
    return NewtonStep(chosen, loss, norm, new_loss, -slope / 2, search.step_size, solution.iterations, search.accepted)


def point_misfit(kind: MeasurementKind, sample: Any, data: Any, x: T3Cores) -> Array:
    """The misfit of a T3, without its gradient; no frame is needed for that but its own cores."""
    frame, point = corewise_frame(x)
    return kind.misfit(sample, data, point, frame, gradient=False)[0]
