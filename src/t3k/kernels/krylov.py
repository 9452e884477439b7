"""Conjugate gradients on pytrees, for the inner solve of a Newton step.

Source: M. R. Hestenes, E. Stiefel, "Methods of Conjugate Gradients for Solving Linear Systems", J. Res. NBS 49
(1952); the truncation rules follow S. C. Eisenstat, H. F. Walker, "Choosing the Forcing Terms in an Inexact Newton
Method", SIAM J. Sci. Comput. 17 (1996).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array

__all__ = ["CGResult", "conjugate_gradients", "tree_axpy", "tree_dot"]


def tree_dot(x: Any, y: Any) -> Array:
    """The sum of the products of all entries."""
    first, *others = map(jnp.vdot, jax.tree.leaves(x), jax.tree.leaves(y))
    return sum(others, start=first)


def tree_axpy(a: Array | float, x: Any, y: Any) -> Any:
    """``a x + y``."""
    return jax.tree.map(lambda u, v: a * u + v, x, y)


class CGResult(NamedTuple):
    """The solution, the steps that were taken, and the norm of the residual."""

    x: Any
    iterations: Array
    residual_norm: Array


class _State(NamedTuple):
    x: Any
    residual: Any
    direction: Any
    rho: Array
    iterations: Array
    curved: Array


def conjugate_gradients(operator: Callable[[Any], Any], b: Any, *, tolerance: Array, max_iterations: int) -> CGResult:
    """Solves ``operator(x) = b`` from 0 for a symmetric positive semidefinite operator.

    Stops at ``|residual| <= tolerance``, at `max_iterations`, or where the curvature along a direction is not
    positive beyond rounding; then with the iterate before, which is the steepest-descent direction b in the first
    step, so that the result is a direction of descent in any case.

    Args:
      operator: linear map of pytrees.
      b: right-hand side.
      tolerance: absolute, a scalar.
      max_iterations: static.

    Example:
      >>> result = conjugate_gradients(lambda x: 2 * x, jnp.array([2.0, 4.0]), tolerance=1e-6, max_iterations=10)
      >>> result.x.tolist(), int(result.iterations)
      ([1.0, 2.0], 1)
    """
    rho = tree_dot(b, b)
    zero = jax.tree.map(jnp.zeros_like, b)
    start = _State(zero, b, b, rho, jnp.int32(0), jnp.bool(True))
    tiny = jnp.finfo(rho.dtype).tiny

    def going_on(state: _State) -> Array:
        return (jnp.sqrt(state.rho) > tolerance) & (state.iterations < max_iterations) & state.curved

    def advance(state: _State) -> _State:
        product = operator(state.direction)
        curvature = tree_dot(state.direction, product)
        curved = curvature > tiny * tree_dot(state.direction, state.direction)
        alpha = jnp.where(curved, state.rho / jnp.where(curved, curvature, 1), 0)
        x = tree_axpy(alpha, state.direction, state.x)
        residual = tree_axpy(-alpha, product, state.residual)
        rho = tree_dot(residual, residual)
        direction = tree_axpy(rho / state.rho, state.direction, residual)
        return _State(x, residual, direction, rho, state.iterations + 1, curved)

    end = jax.lax.while_loop(going_on, advance, start)
    lost = ~end.curved & (end.iterations == 1)
    x = jax.tree.map(lambda u, v: jnp.where(lost, v, u), end.x, b)
    return CGResult(x, end.iterations, jnp.sqrt(end.rho))
