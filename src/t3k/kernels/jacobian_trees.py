"""From blocks of active leaves to the tree that JAX would return: zeros for inactive leaves, structures put back."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.jacobian_problem import Problem, Request, is_active
from t3k.kernels.types import Array

__all__ = ["assemble"]


def _fill(kinds: Sequence[Any], actives: Sequence[Any], zero: Callable[[Any], Any]) -> list[Any]:
    """`actives` in the places of the active leaves, ``zero(kind)`` in the others."""
    given = iter(actives)
    return [next(given) if is_active(kind) else zero(kind) for kind in kinds]


def assemble(problem: Problem, request: Request, mode: str, result: Any, n_directions: int, seeded: bool) -> Any:
    """The result of `jacobian_plan.result_of` as a pytree over x, over y or over both."""
    assert problem.ys is not None
    xs, ys, x_tree, y_tree = problem.xs, problem.ys, problem.x_tree, problem.trees["y"]
    if seeded and request.product == "jacobian":
        n = n_directions
        if mode == "fwd":
            return _one(ys, y_tree, result, lambda y: jnp.zeros((*y.shape, n), y.dtype))
        return _one(xs, x_tree, result, lambda x: jnp.zeros((n, *x.shape), x.dtype))
    if request.product == "jacobian":
        # As in JAX, a zero block has the dtype of what comes out of the sweep.
        dtype_of = (lambda y, x: y.dtype) if mode == "fwd" else (lambda y, x: x.dtype)
        return _two(ys, y_tree, xs, x_tree, result, dtype_of)
    if request.product == "jtj":
        return _two(xs, x_tree, xs, x_tree, result, lambda row, column: row.dtype)
    if request.product in ("jtr", "column_norms"):
        return _one(xs, x_tree, result, lambda x: jnp.zeros(x.shape, x.dtype))
    return _one(ys, y_tree, result, lambda y: jnp.zeros(y.shape, y.dtype))


def _one(kinds: Sequence[Any], tree: Any, actives: Sequence[Array], zero: Callable[[Any], Array]) -> Any:
    return jax.tree.unflatten(tree, _fill(kinds, actives, zero))


def _two(
    rows: Sequence[Any],
    row_tree: Any,
    columns: Sequence[Any],
    column_tree: Any,
    blocks: Sequence[Sequence[Array]],
    dtype_of: Callable[[Any, Any], Any],
) -> Any:
    given = iter(blocks)
    trees = []
    for row in rows:
        row_blocks = next(given) if is_active(row) else None

        def zero(column: Any, row: Any = row) -> Array:
            return jnp.zeros(row.shape + column.shape, dtype_of(row, column))

        leaves = [zero(c) for c in columns] if row_blocks is None else _fill(columns, row_blocks, zero)
        trees.append(jax.tree.unflatten(column_tree, leaves))
    return jax.tree.unflatten(row_tree, trees)
