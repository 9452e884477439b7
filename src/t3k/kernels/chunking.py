"""All loops over chunks of rows, with all that is delicate about them.

`chunk_reduce` runs a function of a block of rows over one block after another and reduces its outputs, so that the
scratch memory is that of one block. The last block overlaps the one before it instead of being shorter: there is one
trace, one compilation and no padded copy of the inputs. It goes first, and the rows that another block is yet to count
are marked in `valid`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from t3k.kernels.reducers import flatten_outputs
from t3k.kernels.row_axes import leaf_axes
from t3k.kernels.sharded import n_shards, over_shards
from t3k.kernels.stored_arrays import StoredArray, block_rows, flatten_stored
from t3k.kernels.types import Array

__all__ = ["LANE", "balanced_chunk", "check_chunk_size", "chunk_reduce"]

#: Blocks are rounded up to multiples of this many rows where the bound allows it: vector loops then have no tail.
LANE = 32


def check_chunk_size(chunk_size: Any, *, auto: bool = False) -> int | str | None:
    """Returns `chunk_size` if it is an int >= 1, None, or (where `auto`) the word ``"auto"``; the same everywhere.

    Raises:
      TypeError: for anything that is no integer, bool included.
      ValueError: for an integer below 1, or another word.
    """
    allowed = "an int >= 1, None" + (' or "auto"' if auto else "")
    if chunk_size is None or (auto and isinstance(chunk_size, str) and chunk_size == "auto"):
        return chunk_size
    if isinstance(chunk_size, str):
        raise ValueError(f"chunk_size must be {allowed}; got {chunk_size!r}")
    if isinstance(chunk_size, bool | np.bool_) or not isinstance(chunk_size, int | np.integer):
        raise TypeError(f"chunk_size must be {allowed}; got {chunk_size!r} of type {type(chunk_size).__name__}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be {allowed}; got {chunk_size}")
    return int(chunk_size)


def balanced_chunk(n_rows: int, chunk_size: int | None) -> int:
    """The rows of a block: at most `chunk_size`, and no last block with only a few new rows.

    Example:
      >>> balanced_chunk(1000, 300), balanced_chunk(1000, 128), balanced_chunk(1000, None), balanced_chunk(10, 4)
      (256, 128, 1000, 4)
    """
    if chunk_size is None or chunk_size >= n_rows:
        return n_rows
    even = math.ceil(n_rows / math.ceil(n_rows / chunk_size))
    return min(chunk_size, math.ceil(even / LANE) * LANE)


def _take_rows(x: Any, axis: int | None, start: Any, size: int) -> Array:
    if axis is None:
        return x
    if isinstance(x, StoredArray):
        return x.rows(axis, start, size)
    return jax.lax.dynamic_slice_in_dim(x, start, size, axis)


def chunk_reduce(
    fun: Callable[..., Any],
    xs: Any,
    reducers: Any,
    *,
    chunk_size: int | None,
    n_rows: int,
    axes: Any = 0,
    sharding: NamedSharding | None = None,
) -> Any:
    """Reduces ``fun(block, valid)`` over blocks of at most `chunk_size` rows.

    Args:
      fun: function of a pytree like `xs`, with `chunk_size` rows, and of `valid`: None when every row counts, else a
        boolean array ``(rows,)`` that is False where another block counts the row. Outputs that are summed
        must leave such rows out; outputs that are concatenated need not.
      xs: pytree of arrays, some of which may be in files (`t3k.kernels.StoredArray`); those are read in larger blocks.
      reducers: tree prefix of the outputs of `fun`, with a `t3k.kernels.reducers` reducer for each.
      chunk_size: bound on the rows of a block; None takes all at once.
      n_rows: the number of rows in `xs`.
      axes: tree prefix of `xs`, the axis of the rows, or None for what every block sees whole.
      sharding: of the rows alone, where they are spread over devices; every device then takes its own by `chunk_size`,
        and their results meet at the end (`t3k.kernels.sharded`).

    Returns:
      The reduced outputs. Reverse-mode differentiation recomputes one block at a time.

    Example:
      >>> import jax.numpy as jnp
      >>> from t3k.kernels.reducers import add
      >>> def total(x, valid):
      ...     return jnp.sum(x if valid is None else jnp.where(valid, x, 0))
      >>> int(chunk_reduce(total, jnp.arange(10), add, chunk_size=4, n_rows=10))
      45
    """
    if sharding is not None:

        def local(shard: Any) -> Any:
            rows = n_rows // n_shards(sharding)
            return chunk_reduce(fun, shard, reducers, chunk_size=chunk_size, n_rows=rows, axes=axes)

        return over_shards(local, xs, reducers, sharding=sharding, axes=axes)
    read = block_rows(flatten_stored(xs)[0], leaf_axes(axes, xs))
    if read is None or chunk_size is None:
        return _loop(fun, xs, reducers, chunk_size, n_rows, axes)
    return _by_blocks(fun, xs, reducers, chunk_size, balanced_chunk(n_rows, max(read, chunk_size)), n_rows, axes)


def _by_blocks(
    fun: Callable[..., Any], xs: Any, reducers: Any, chunk_size: int, read: int, n_rows: int, axes: Any
) -> Any:
    """Two loops: one reads `read` rows at a time from files, and the one within takes those by `chunk_size`."""

    def block(rows: Any, counted: Array | None) -> Any:
        def chunk(xs: Any, valid: Array | None) -> Any:
            rows, counted = xs
            return fun(rows, _both(counted, valid))

        return _loop(chunk, (rows, counted), reducers, chunk_size, read, (axes, 0))

    of_blocks = jax.tree.map(lambda reducer: getattr(reducer, "of_results", reducer), reducers)
    return _loop(block, xs, of_blocks, read, n_rows, axes)


def _both(mask: Array | None, other: Array | None) -> Array | None:
    return mask if other is None else other if mask is None else mask & other


def _loop(fun: Callable[..., Any], xs: Any, reducers: Any, chunk_size: int | None, n_rows: int, axes: Any) -> Any:
    leaves, structure = flatten_stored(xs)
    row_axes = leaf_axes(axes, xs)
    size = balanced_chunk(n_rows, chunk_size)
    if size == n_rows:
        loaded = [
            _take_rows(x, axis, 0, size) if isinstance(x, StoredArray) else x
            for x, axis in zip(leaves, row_axes, strict=True)
        ]
        return _one_block(fun, jax.tree.unflatten(structure, loaded), reducers, n_rows)
    n_steps, partial_last = math.ceil(n_rows / size), n_rows % size != 0

    # Reverse mode keeps what enters a checkpoint, so the rows are taken inside it: copies of all blocks would be kept.
    # The jit is for its cache: the block is traced once, for its shapes and for the loop.
    @jax.jit
    @partial(jax.checkpoint, prevent_cse=False)
    def block(step: Array) -> tuple[Array, Any]:
        if partial_last:
            # The block that overlaps goes first, so that a row it does not count is written again by the one that does.
            start = jnp.where(step == 0, n_rows - size, (step - 1) * size)
            valid = (step > 0) | (start + jnp.arange(size, dtype=start.dtype) >= (n_steps - 1) * size)
        else:
            start, valid = step * size, None
        rows = [_take_rows(x, axis, start, size) for x, axis in zip(leaves, row_axes, strict=True)]
        return start, fun(jax.tree.unflatten(structure, rows), valid)

    shapes = jax.eval_shape(block, jnp.int32(0))[1]
    blocks, each, out_structure = flatten_outputs(shapes, reducers)

    def body(carry: tuple[Array, list[Any]], _: None) -> tuple[tuple[Array, list[Any]], None]:
        step, states = carry
        start, outputs = block(step)
        columns = zip(each, states, out_structure.flatten_up_to(outputs), strict=True)
        states = [reducer.combine(state, output, start) for reducer, state, output in columns]
        return (step + 1, states), None

    states = [reducer.init(shape, n_rows) for reducer, shape in zip(each, blocks, strict=True)]
    # The step is carried: as an input of the scan it would be an array as long as there are chunks.
    (_, states), _ = jax.lax.scan(body, (jnp.int32(0), states), length=n_steps)
    results = [reducer.finish(state) for reducer, state in zip(each, states, strict=True)]
    return jax.tree.unflatten(out_structure, results)


def _one_block(fun: Callable[..., Any], xs: Any, reducers: Any, n_rows: int) -> Any:
    """The dense case: one block, through the same reducers so that a reducer may transform its result."""
    outputs, each, structure = flatten_outputs(fun(xs, None), reducers)
    results = []
    for reducer, output in zip(each, outputs, strict=True):
        start = reducer.init(jax.tree.map(jax.typeof, output), n_rows)
        results.append(reducer.finish(reducer.combine(start, output, 0)))
    return jax.tree.unflatten(structure, results)
