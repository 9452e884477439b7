"""Blocks of directions, and the places of their derivatives in a result.

The directions of a sweep are numbered through all leaves, in the order of the leaves. A block of one-hot directions is
made in the loop from its numbers; the identity never exists. What a block yields is written into one array per leaf,
in the final layout.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array
from t3k.kernels.varying import vary_like

__all__ = ["offsets", "one_hot", "place", "sizes"]


def sizes(kinds: Sequence[Any]) -> tuple[int, ...]:
    """The number of elements of each leaf."""
    return tuple(math.prod(kind.shape) for kind in kinds)


def offsets(lengths: Sequence[int]) -> list[int]:
    """The number of the first direction of each leaf.

    Example:
      >>> offsets((3, 1, 2))
      [0, 3, 4]
    """
    return [0, *itertools.accumulate(lengths)][: len(lengths)]


def one_hot(numbers: Array, valid: Array | None, likes: Sequence[Array]) -> list[Array]:
    """One block of directions: per leaf an array ``(c, *shape)``, one where the element's number is the direction's.

    Args:
      numbers: ``(c,)``, int32.
      valid: ``(c,)``, bool; the directions that are False here are zero.
      likes: arrays of the shapes, dtypes and varying mesh axes wanted.
    """
    lengths = sizes(likes)
    if valid is not None:
        numbers = jnp.where(valid, numbers, -1)

    def leaf(like: Array, length: int, offset: int) -> Array:
        own = jnp.arange(length, dtype=numbers.dtype) + offset
        hot = numbers[:, None] == own[None, :]
        return vary_like(jnp.reshape(hot.astype(like.dtype), (numbers.shape[0], *like.shape)), like)

    return [leaf(*each) for each in zip(likes, lengths, offsets(lengths), strict=True)]


@dataclass(frozen=True)
class place:  # noqa: N801 - a reducer, like `t3k.kernels.reducers.concat`
    """Writes every block into arrays for several leaves, `lengths` long along `axis`, which follow one another.

    A block may lie in one leaf or reach over several. With one leaf the block is written as it is.
    """

    axis: int
    lengths: tuple[int, ...]

    def init(self, block: jax.ShapeDtypeStruct, n_rows: int) -> tuple[Array, ...]:
        """The arrays, empty."""
        del n_rows
        axis = self.axis % len(block.shape)
        before, after = block.shape[:axis], block.shape[axis + 1 :]
        return tuple(vary_like(jnp.zeros((*before, length, *after), block.dtype), block) for length in self.lengths)

    def combine(self, state: tuple[Array, ...], block: Array, start: Array | int) -> tuple[Array, ...]:
        """The arrays with a block in its place."""
        axis = self.axis % block.ndim
        if isinstance(start, int):  # all at once: `start` is 0 and the block is the whole
            cuts = zip(offsets(self.lengths), self.lengths, strict=True)
            return tuple(jax.lax.slice_in_dim(block, first, first + length, axis=axis) for first, length in cuts)
        if len(self.lengths) == 1:
            return (jax.lax.dynamic_update_slice_in_dim(state[0], block, start, axis),)
        firsts = offsets(self.lengths)
        return tuple(_write(leaf, block, start - first, axis) for leaf, first in zip(state, firsts, strict=True))

    def finish(self, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """The arrays."""
        return state


def _write(leaf: Array, block: Array, start: Array, axis: int) -> Array:
    """`leaf` with the part of `block` that falls into it, when the block begins at `start` (which may be outside).

    A window of the leaf is read, changed where the block reaches and written back. Deciding in a `lax.cond` whether
    there is anything to write would be less work, but XLA copies the whole leaf in every step then.
    """
    length, width = leaf.shape[axis], block.shape[axis]
    window = min(length, width)
    if window == 0:
        return leaf
    first = jnp.clip(start, 0, length - window)
    wanted = first - start + jnp.arange(window, dtype=start.dtype)
    rows = jnp.take(block, jnp.clip(wanted, 0, width - 1), axis=axis)
    shape = [window if a == axis else 1 for a in range(block.ndim)]
    fits = jnp.broadcast_to(jnp.reshape((wanted >= 0) & (wanted < width), shape), rows.shape)
    old = jax.lax.dynamic_slice_in_dim(leaf, first, window, axis)
    return jax.lax.dynamic_update_slice_in_dim(leaf, jnp.where(fits, rows, old), first, axis)
