"""Reducers: how the outputs of one chunk after another become one result.

A reducer is a small stateless value with six functions::

    block  = of_rows(rows, valid)            rows: one chunk's rows, on a leading axis; only `chunk_map` needs it
    state  = init(block, n_rows)             block: shape and dtype of one chunk's output
    state  = combine(state, block, start)    start: the first row of this chunk
    result = finish(state)
    result = across(result, names)           inside `jax.shard_map`: of all devices along these mesh axes
    spec   = spec(names)                     how that result lies on the devices

`add` and `compensated_add` sum the chunks' partial sums; `concat` writes each chunk's rows into their place in the
result, which is never stacked and then concatenated; `add_at` adds rows where their indices say. Reducers hash and
compare by value, so that jit caches hit.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from t3k.kernels.types import Array
from t3k.kernels.varying import vary_like

__all__ = ["IndexedRows", "MeshAxes", "Reducer", "add", "add_at", "compensated_add", "concat", "flatten_outputs"]

#: Mesh axes, as if they were one.
MeshAxes = tuple[str, ...]


class Reducer(Protocol):
    """What `chunk_reduce` needs of a reducer; `of_rows` is for `chunk_map`, the last two for `over_shards`."""

    def of_rows(self, rows: Array, valid: Array | None) -> Array:
        """A chunk's contribution, from its rows ``(rows, ...)``; `valid` is False where a row has been counted."""

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Any:
        """The state before the first chunk."""

    def combine(self, state: Any, block: Array, start: Array | int) -> Any:
        """The state after a chunk whose rows begin at `start`."""

    def finish(self, state: Any) -> Array:
        """The result."""

    def across(self, result: Array, names: MeshAxes) -> Array:
        """The result of all devices, from each one's."""

    def spec(self, names: MeshAxes) -> PartitionSpec:
        """The partition of what `across` returns."""


def _zeros(block: jax.ShapeDtypeStruct, shape: tuple[int, ...]) -> Array:
    return vary_like(jnp.zeros(shape, block.dtype), block)


class _Sum:
    """What sums have in common: rows are added up, in a chunk and over the devices."""

    def of_rows(self, rows: Array, valid: Array | None) -> Array:
        if valid is not None:
            kept = jnp.reshape(valid, valid.shape + (1,) * (rows.ndim - 1))
            rows = jnp.where(kept, rows, jnp.zeros((), rows.dtype))
        return jnp.sum(rows, axis=0)

    def across(self, result: Array, names: MeshAxes) -> Array:
        return jax.lax.psum(result, names)

    def spec(self, names: MeshAxes) -> PartitionSpec:
        del names
        return PartitionSpec()


@dataclass(frozen=True)
class _Add(_Sum):
    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Array:
        del n_rows
        return _zeros(block, block.shape)

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        del start
        return state + block

    def finish(self, state: Array) -> Array:
        return state


@dataclass(frozen=True)
class _CompensatedAdd(_Sum):
    """Neumaier's variant of Kahan summation: the error of a long sum does not grow with the number of chunks.

    Source: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54 (1974).
    """

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> tuple[Array, Array]:
        del n_rows
        return _zeros(block, block.shape), _zeros(block, block.shape)

    def combine(self, state: tuple[Array, Array], block: Array, start: Array | int) -> tuple[Array, Array]:
        del start
        total, lost = state
        new = total + block
        # What the addition dropped came from the smaller of the two summands.
        dropped = jnp.where(jnp.abs(total) >= jnp.abs(block), (total - new) + block, (block - new) + total)
        return new, lost + dropped

    def finish(self, state: tuple[Array, Array]) -> Array:
        total, lost = state
        return total + lost


@dataclass(frozen=True)
class concat:  # noqa: N801 - a value like `add`, which happens to have a parameter
    """Puts the rows of every chunk into their place along `axis` of the result."""

    axis: int = 0

    def of_rows(self, rows: Array, valid: Array | None) -> Array:
        """The rows, along `axis`."""
        del valid  # a row that comes twice is written twice into the same place
        return jnp.moveaxis(rows, 0, self.axis)

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Array:
        """The whole result, empty."""
        axis = self.axis % len(block.shape)
        return _zeros(block, (*block.shape[:axis], n_rows, *block.shape[axis + 1 :]))

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        """The result with a chunk in its place."""
        return jax.lax.dynamic_update_slice_in_dim(state, block, start, self.axis % block.ndim)

    def finish(self, state: Array) -> Array:
        """The result."""
        return state

    def across(self, result: Array, names: MeshAxes) -> Array:
        """The rows stay where they are."""
        del names
        return result

    def spec(self, names: MeshAxes) -> PartitionSpec:
        """Rows lie on the devices as they did in the input."""
        if self.axis < 0:
            raise ValueError(f"rows on devices must be concatenated along an axis >= 0; got {self.axis}")
        return PartitionSpec(*(None,) * self.axis, names)


class IndexedRows(NamedTuple):
    """One output of a chunk: ``rows (w, m)``, and for each the integer ``at (w,)`` of its column in the result."""

    at: Array
    rows: Array


def flatten_outputs(outputs: Any, reducers: Any) -> tuple[list[Any], list[Any], Any]:
    """The outputs of a chunk, a reducer for each from a tree prefix, and the structure of the outputs.

    Example:
      >>> jax.tree.leaves(flatten_outputs((1, [2, 3]), (concat(1), concat()))[1])
      [concat(axis=1), concat(axis=0), concat(axis=0)]
    """
    leaves, structure = jax.tree.flatten(outputs, is_leaf=lambda x: isinstance(x, IndexedRows))
    return (
        leaves,
        jax.tree.leaves(jax.tree.broadcast(reducers, jax.tree.unflatten(structure, [0] * len(leaves)))),
        structure,
    )


@dataclass(frozen=True)
class add_at(_Sum):  # noqa: N801 - see `concat`
    """Adds `IndexedRows` to the columns of the result ``(m, size)`` that their indices name.

    The sum lives in the loop's carry, where the additions are done in place, so that a chunk costs its own rows even
    where `size` is very large.
    """

    size: int

    @property
    def of_results(self) -> Reducer:
        """How results of parts of the rows become one, where they are not of the form of an output."""
        return add

    def init(self, block: IndexedRows, n_rows: int) -> Array:
        """The result, transposed and zero."""
        del n_rows
        return vary_like(jnp.zeros((self.size, block.rows.shape[1]), block.rows.dtype), block.rows)

    def combine(self, state: Array, block: IndexedRows, start: Array | int) -> Array:
        """The result with a chunk's rows added."""
        del start
        return state.at[block.at].add(block.rows)

    def finish(self, state: Array) -> Array:
        """The result."""
        return state.T


#: Sums the chunks.
add = _Add()
#: Sums the chunks and carries the rounding error along.
compensated_add = _CompensatedAdd()
