"""Extreme eigenvalues of a symmetric operator on pytrees, by the Lanczos process.

Source: C. Lanczos, "An Iteration Method for the Solution of the Eigenvalue Problem of Linear Differential and Integral
Operators", J. Res. NBS 45 (1950); every new vector is orthogonalized against all before it, twice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from t3k.kernels.linalg import contract
from t3k.kernels.types import Array

__all__ = ["extreme_eigenvalues"]


class _State(NamedTuple):
    """The basis so far (rows), the vector to come, the entries of the tridiagonal matrix, and the longest product."""

    basis: Array
    vector: Array
    diagonal: Array
    off_diagonal: Array
    going_on: Array
    longest: Array


def extreme_eigenvalues(
    operator: Callable[[Any], Any], start: Any, *, steps: int, project: Callable[[Any], Any] = lambda x: x
) -> tuple[Array, Array]:
    """The smallest and the largest Ritz value of a symmetric operator, on the space that `start` generates.

    They lie within the spectrum there, and tend to its ends as the steps become more; once the space is exhausted they
    are its ends.

    Args:
      operator: symmetric linear map of pytrees.
      start: pytree, not zero.
      steps: products with the operator (static).
      project: onto the subspace that the operator acts in, where it is symmetric in no other. What rounding adds of
        other directions would grow from step to step.

    Example:
      >>> low, high = extreme_eigenvalues(lambda x: jnp.array([1.0, 2.0, 5.0]) * x, jnp.ones(3), steps=3)
      >>> round(float(low), 4), round(float(high), 4)
      (1.0, 5.0)
    """
    vector, unravel = ravel_pytree(start)
    first = vector / jnp.linalg.norm(vector)
    zeros, dtype = jnp.zeros(steps, vector.dtype), vector.dtype
    unit = float(jnp.finfo(dtype).eps)

    def extend(j: Array, state: _State) -> _State:
        basis = state.basis.at[j].set(state.vector)
        product, _ = ravel_pytree(operator(unravel(state.vector)))
        middle = contract("p,p->", state.vector, product)
        rest = product
        for _ in range(2):
            rest = rest - contract("kp,k->p", basis, contract("kp,p->k", basis, rest))
        rest, _ = ravel_pytree(project(unravel(rest)))
        length, longest = jnp.linalg.norm(rest), jnp.maximum(state.longest, jnp.linalg.norm(product))
        # What is left is rounding, of the operator as a whole: the space is exhausted, and its matrix is complete.
        more = state.going_on & (length > 100 * unit * longest)
        following = jnp.where(more, rest / jnp.where(more, length, 1), 0)
        # A step too many repeats the first diagonal entry, which lies within the spectrum.
        diagonal = state.diagonal.at[j].set(jnp.where(state.going_on, middle, state.diagonal[0]))
        return _State(
            basis, following, diagonal, state.off_diagonal.at[j].set(jnp.where(more, length, 0)), more, longest
        )

    begin = _State(jnp.zeros((steps, vector.size), dtype), first, zeros, zeros, jnp.bool(True), zeros[0])
    end = jax.lax.fori_loop(0, steps, extend, begin)
    matrix = jnp.diag(end.diagonal) + jnp.diag(end.off_diagonal[:-1], 1) + jnp.diag(end.off_diagonal[:-1], -1)
    values = jnp.linalg.eigvalsh(matrix)
    return values[0], values[-1]
