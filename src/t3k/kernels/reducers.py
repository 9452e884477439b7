"""Reducers: how the outputs of one chunk after another become one result.

A reducer is a small stateless value with three functions::

    state  = init(block, n_rows)             block: shape and dtype of one chunk's output
    state  = combine(state, block, start)    start: the first row of this chunk
    result = finish(state)

`add` and `compensated_add` sum the chunks' partial sums; `concat` writes each chunk's rows into their place in the
result, which is never stacked and then concatenated. Reducers hash and compare by value, so that jit caches hit.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array

__all__ = ["Reducer", "add", "compensated_add", "concat", "zeros_like_block"]


class Reducer(Protocol):
    """What `chunk_reduce` needs of a reducer."""

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Any:
        """The state before the first chunk."""

    def combine(self, state: Any, block: Array, start: Array | int) -> Any:
        """The state after a chunk whose rows begin at `start`."""

    def finish(self, state: Any) -> Array:
        """The result."""


def zeros_like_block(block: jax.ShapeDtypeStruct, shape: tuple[int, ...] | None = None) -> Array:
    """Zeros to start a loop with, varying over the same mesh axes as `block` where `jax.shard_map` asks for it."""
    zeros = jnp.zeros(block.shape if shape is None else shape, block.dtype)
    varying = getattr(block, "vma", None) or frozenset()
    return jax.lax.pcast(zeros, tuple(varying), to="varying") if varying else zeros


@dataclass(frozen=True)
class _Add:
    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Array:
        del n_rows
        return zeros_like_block(block)

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        del start
        return state + block

    def finish(self, state: Array) -> Array:
        return state


@dataclass(frozen=True)
class _CompensatedAdd:
    """Neumaier's variant of Kahan summation: the error of a long sum does not grow with the number of chunks.

    Source: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54 (1974).
    """

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> tuple[Array, Array]:
        del n_rows
        return zeros_like_block(block), zeros_like_block(block)

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

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Array:
        axis = self.axis % len(block.shape)
        return zeros_like_block(block, (*block.shape[:axis], n_rows, *block.shape[axis + 1 :]))

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(state, block, start, self.axis % block.ndim)

    def finish(self, state: Array) -> Array:
        return state


#: Sums the chunks.
add = _Add()
#: Sums the chunks and carries the rounding error along.
compensated_add = _CompensatedAdd()
