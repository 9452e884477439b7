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

from t3k.kernels.constants import filled_like
from t3k.kernels.types import Array

__all__ = ["Reducer", "add", "compensated_add", "concat"]


class Reducer(Protocol):
    """What `chunk_reduce` needs of a reducer."""

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Any:
        """The state before the first chunk."""

    def combine(self, state: Any, block: Array, start: Array | int) -> Any:
        """The state after a chunk whose rows begin at `start`."""

    def finish(self, state: Any) -> Array:
        """The result."""


@dataclass(frozen=True)
class _Add:
    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> Array:
        del n_rows
        return filled_like(block, 0, block.shape)

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
        return filled_like(block, 0, block.shape), filled_like(block, 0, block.shape)

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
        return filled_like(block, 0, (*block.shape[:axis], n_rows, *block.shape[axis + 1 :]))

    def combine(self, state: Array, block: Array, start: Array | int) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(state, block, start, self.axis % block.ndim)

    def finish(self, state: Array) -> Array:
        return state


#: Sums the chunks.
add = _Add()
#: Sums the chunks and carries the rounding error along.
compensated_add = _CompensatedAdd()
