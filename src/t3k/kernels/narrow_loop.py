"""A loop over chunks of rows within a block, which sees the narrow arrays of the block alone.

Where modes are much longer than Tucker ranks (N >> n), nearly all the time goes into reading the rows ``(w, o)`` twice,
and to cut them into chunks costs a copy of them, half as much again. Then the products with the ambient axis are taken
for all rows at once, and only what they leave, jets ``(k, w)`` of both sides of the sweeps, is taken chunk by chunk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding

from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.reducers import Reducer, add, concat
from t3k.kernels.sharded import n_shards
from t3k.kernels.stored_arrays import has_stored
from t3k.kernels.streaming import count_rows, counted
from t3k.kernels.sweeps import Runs, stack_runs, unstack_runs
from t3k.kernels.types import Array, Frame, as_tuple

__all__ = ["AT_ONCE", "NarrowLoop", "two_loops"]


@dataclass(frozen=True)
class NarrowLoop:
    """How a block takes the middle part of its work: `chunk` rows at a time, or (None) all at once.

    The reducers are for what the middle part sums up.
    """

    chunk: int | None = None
    sums: Reducer = add

    def mode_runs(self, runs: Runs) -> Runs:
        """The runs by which rows are grouped: each mode for itself where all rows are there, to stack none of them."""
        return runs if self.chunk is None else tuple((i, i + 1) for i in range(runs[-1][1]))

    def by_modes(self, runs: Runs, grouped: Sequence[Any]) -> Sequence[Any]:
        """Items grouped by runs, as the rows are grouped."""
        return grouped if self.chunk is None else unstack_runs(runs, grouped)

    def by_runs(self, runs: Runs, items: Sequence[Any]) -> Sequence[Any]:
        """Items that are grouped as the rows are, grouped by runs again."""
        return items if self.chunk is None else stack_runs(runs, items)

    def run(
        self, fun: Callable[[Any, Any, Array | None], tuple[Any, Any]], jets: Any, fixed: Any, rows: Array | None = None
    ) -> tuple[Any, Any]:
        """``fun(jets, fixed, rows)``: its first result is summed up, its second consists of jets.

        Args:
          fun: function of jets ``(k, w)``, of what it sees whole, and of the rows' weights ``(w,)`` or None.
          jets: pytree of arrays with the rows last.
          fixed: pytree of arrays.
          rows: the weights, or None.
        """
        if self.chunk is None:
            return fun(jets, fixed, rows)

        def chunk(xs: Any, valid: Array | None) -> tuple[Any, Any]:
            (jets, rows), fixed = xs
            return fun(jets, fixed, counted(rows, valid, like.dtype))

        like = jax.tree.leaves(jets)[0]
        return chunk_reduce(
            chunk,
            ((jets, rows), fixed),
            (self.sums, concat(-1)),
            chunk_size=self.chunk,
            n_rows=like.shape[-1],
            axes=((-1, 0), None),
        )


def two_loops(
    chunk: int | None, xs: Sequence[Any], frame: Frame, sharding: NamedSharding | None, sums: Reducer = add
) -> tuple[int | None, NarrowLoop]:
    """The rows of a block, and its narrow loop: either blocks are `chunk` rows and have none, or one block has all.

    All rows are taken where the jets of all of them are no larger than the rows of a chunk, so that it never needs more
    memory than the other way.

    Args:
      chunk: rows at a time, or None.
      xs: trains of rows, the first of them probes ``(w, o)``.
      frame: (U, O, L, R).
      sharding: of the rows.
      sums: how the loop's sums are reduced.
    """
    n_rows = count_rows(xs[0]) // n_shards(sharding)
    narrow, wide = map(sum, zip(*(U.shape for U in as_tuple(frame.up)), strict=True))
    if chunk is None or chunk >= n_rows or 2 * narrow * n_rows > wide * chunk or has_stored(xs):
        return chunk, NarrowLoop(None, sums)
    return None, NarrowLoop(chunk, sums)


#: For blocks that are themselves a chunk.
AT_ONCE = NarrowLoop()
