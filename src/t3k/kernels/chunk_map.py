"""`chunk_map`: `jax.vmap` whose memory is that of a chunk."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from t3k.kernels.auto_chunk import choose_chunk, tree_bytes
from t3k.kernels.chunking import check_chunk_size, chunk_reduce
from t3k.kernels.compiled import program_of
from t3k.kernels.jacobian_problem import intermediate_bytes
from t3k.kernels.reducers import concat
from t3k.kernels.scratch import check_memory, scratch_bytes
from t3k.kernels.types import Array

__all__ = ["chunk_map"]


class _Request(NamedTuple):
    """What is asked of `fun`, hashable: one entry per leaf where a pytree was given."""

    chunk_size: int | str | None
    budget: int | None
    in_axes: tuple[int | None, ...]
    reducers: Any
    reducers_structure: Any


def chunk_map(
    fun: Callable[..., Any],
    xs: Any,
    *,
    chunk_size: int | str | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    reduce: Any = None,
    memory: int | str | None = None,
) -> Any:
    """Maps `fun` over the rows of `xs`, `chunk_size` rows at a time, in the memory of one chunk.

    `fun` is traced once, and so is the chunk: the last one overlaps the one before it instead of being shorter. Every
    chunk is written into its place in the result, or folded into it at once by a reducer. Reverse-mode
    differentiation recomputes one chunk at a time. Eager calls with the same `fun` compile once; as with `jax.jit`,
    `fun` must be pure.

    Args:
      fun: function of one row of `xs`, a pytree like `xs`; returns a pytree of arrays.
      xs: array or pytree of arrays of the same length along their row axes.
      chunk_size: rows at a time, an int >= 1; None takes all at once, as `jax.vmap` does; ``"auto"`` measures.
      in_axes: tree prefix of `xs`: the axis of the rows, or None for what every row sees whole.
      out_axes: tree prefix of the output: the axis that rows have in the result.
      reduce: tree prefix of the output, with a reducer for each: `add`, `compensated_add`, `concat`. None
        concatenates along `out_axes`.
      memory: with ``chunk_size="auto"``, the scratch allowed, such as ``"1GB"``.

    Returns:
      The outputs of all rows stacked along `out_axes`, or reduced; dtypes are those of `jax.vmap`, sums those of
      `jax.numpy.sum`. Equal to the unchunked map to rounding.

    Raises:
      ValueError: for row axes of different lengths, or none; for a bad `chunk_size` or `memory`.
      TypeError: for a `chunk_size` that is no int, or a reducer that is none.

    Example:
      >>> import jax.numpy as jnp
      >>> from t3k.kernels.chunk_map import chunk_map
      >>> from t3k.kernels.reducers import add, concat
      >>> chunk_map(lambda x: x**2, jnp.arange(5.0), chunk_size=2).tolist()
      [0.0, 1.0, 4.0, 9.0, 16.0]
      >>> total, each = chunk_map(lambda x: (x, x + 1), jnp.arange(5), chunk_size=2, reduce=(add, concat()))
      >>> int(total), each.tolist()
      (10, [1, 2, 3, 4, 5])
    """
    chunk_size = check_chunk_size(chunk_size, auto=True)
    budget = check_memory(memory, chunk_size)
    leaves, structure = jax.tree.flatten(xs)
    axes = _row_axes(in_axes, xs, [jnp.shape(leaf) for leaf in leaves])
    reducers, reducers_structure = jax.tree.flatten(_reducers(reduce, out_axes))
    request = _Request(chunk_size, budget, axes, tuple(reducers), reducers_structure)
    return program_of(fun, _run, request).call(structure, leaves)


def _reducers(reduce: Any, out_axes: Any) -> Any:
    """A tree prefix of reducers, with None read as: concatenate along `out_axes`."""
    for axis in jax.tree.leaves(out_axes, is_leaf=lambda axis: axis is None):
        if axis is None or isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"out_axes must be ints; got {axis!r}")
    concatenated = jax.tree.map(concat, out_axes)
    if reduce is None:
        return concatenated
    for reducer in jax.tree.leaves(reduce):
        if not hasattr(reducer, "of_rows"):
            raise TypeError(f"reduce must have reducers such as add or concat(); got {reducer!r}")

    def fill(reducer: Any) -> Any:
        if reducer is not None:
            return reducer
        if not isinstance(out_axes, int):
            raise ValueError("reduce has a None (concatenate), so out_axes must be one int; got {out_axes!r}")
        return concat(out_axes)

    return jax.tree.map(fill, reduce, is_leaf=lambda reducer: reducer is None)


def _row_axes(in_axes: Any, xs: Any, shapes: list[tuple[int, ...]]) -> tuple[int | None, ...]:
    """The row axis of every leaf, non-negative, after checking that all have one length."""
    axes: list[int | None] = []
    try:
        jax.tree.map(
            lambda axis, sub: axes.extend([axis] * len(jax.tree.leaves(sub))), in_axes, xs, is_leaf=lambda a: a is None
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"in_axes must be a tree prefix of xs; got {in_axes!r}") from error
    for axis, shape in zip(axes, shapes, strict=True):
        if axis is not None and not -len(shape) <= axis < len(shape):
            raise ValueError(f"in_axes has {axis} for an array of shape {shape} in xs")
    lengths = [shape[axis] for axis, shape in zip(axes, shapes, strict=True) if axis is not None]
    if len(set(lengths)) != 1:
        raise ValueError(f"the arrays in xs must have rows, and equally many of them; got lengths {lengths}")
    return tuple(None if axis is None else axis % len(shape) for axis, shape in zip(axes, shapes, strict=True))


def _run(fun: Callable[..., Any], request: _Request, structure: Any, leaves: list[Array]) -> Any:
    rows = [_one_row(leaf, axis) for leaf, axis in zip(leaves, request.in_axes, strict=True)]
    traced, out = jax.make_jaxpr(fun, return_shape=True)(jax.tree.unflatten(structure, rows))
    out_structure = jax.tree.structure(out)
    prefix = jax.tree.unflatten(request.reducers_structure, request.reducers)
    reducers = jax.tree.leaves(jax.tree.broadcast(prefix, out))
    chunk: Any = request.chunk_size
    n_rows = next(leaf.shape[axis] for leaf, axis in zip(leaves, request.in_axes, strict=True) if axis is not None)

    def kernel(consts: list[Array], leaves: list[Array], *, chunk: int | None) -> list[Array]:
        row = jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, consts))
        return _map_rows(row, leaves, request.in_axes, reducers, chunk, n_rows)

    if chunk == "auto":
        name = (str(traced.jaxpr), request.in_axes, tuple(reducers), n_rows)

        def measure(chunk: int | None) -> int:
            return scratch_bytes(kernel, traced.consts, leaves, key=name, chunk=chunk)

        resident = tree_bytes(leaves) + tree_bytes(jax.eval_shape(lambda: kernel(traced.consts, leaves, chunk=None)))
        per_row = intermediate_bytes(traced.jaxpr)
        chunk = choose_chunk(measure, n_rows, resident=resident, per_row=per_row, budget=request.budget).chunk
    return jax.tree.unflatten(out_structure, kernel(traced.consts, leaves, chunk=chunk))


def _one_row(leaf: Array, axis: int | None) -> Array:
    """The first row, with all that makes its type: weak, varying over a mesh axis. Nothing is left of it in the end."""
    if axis is None:
        return leaf
    if leaf.shape[axis] == 0:
        return jnp.zeros(leaf.shape[:axis] + leaf.shape[axis + 1 :], leaf.dtype)
    return jax.lax.index_in_dim(leaf, 0, axis, keepdims=False)


def _map_rows(
    row: Callable[..., list[Array]],
    leaves: list[Array],
    axes: tuple[int | None, ...],
    reducers: list[Any],
    chunk: int | None,
    n_rows: int,
) -> list[Array]:
    def block(rows: list[Array], valid: Array | None) -> list[Array]:
        outputs = jax.vmap(row, in_axes=axes)(*rows)
        return [reducer.of_rows(output, valid) for reducer, output in zip(reducers, outputs, strict=True)]

    return chunk_reduce(block, leaves, reducers, chunk_size=chunk, n_rows=n_rows, axes=list(axes))
