"""What the streamed maps share: how many rows a block has, which of them count, and the layout of a gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax.sharding import NamedSharding

from t3k.kernels.chunking import LANE, chunk_reduce
from t3k.kernels.types import Array, Cores, Frame, Variations, as_tuple, like_train

__all__ = ["as_variations", "count_rows", "counted", "part_axes", "rows_at_once", "stream"]

#: What the lifted jets of one core may take before a chunk is cut shorter than asked for.
LIFTED_BYTES = 64 * 2**20


def rows_at_once(chunk_size: int | None, frame: Frame, order: int) -> int | None:
    """At most `chunk_size`, and no more than keep the lifted jets of a core within `LIFTED_BYTES`.

    Beyond that, more rows make nothing faster: the matrix products are large enough and the cache is left behind.
    """
    if chunk_size is None:
        return None
    sizes = [
        (L.shape[0], L.shape[1], R.shape[2]) for L, R in zip(as_tuple(frame.left), as_tuple(frame.right), strict=True)
    ]
    largest = max(max(a * k, k * b, a * b) for a, k, b in sizes)
    row_bytes = (5 * (order + 1) + 2) * largest * frame.up[0].dtype.itemsize
    return min(chunk_size, max(LANE, LIFTED_BYTES // row_bytes // LANE * LANE))


def count_rows(train: Cores) -> int:
    """The rows ``w`` of vectors ``(w, o)`` or indices ``(w,)``, in memory or in files."""
    return train[0].shape[0]


def counted(rows: Array | None, valid: Array | None, dtype: Any) -> Array | None:
    """The rows' own weights, zero where a chunk overlaps the one before it."""
    if valid is None:
        return rows
    return valid.astype(dtype) if rows is None else jnp.where(valid, rows, 0)


def part_axes(tt: Sequence[Array], frame: Frame) -> tuple[Array, ...]:
    """The gradients by TT cores with the left bond and the Tucker index apart, which a block has merged.

    A block does this itself: to reshape what is concatenated may cost a copy of all of it.
    """
    cores = zip(tt, as_tuple(frame.left), strict=True)
    return tuple(dG.reshape(*dG.shape[:-2], *core.shape[:2], dG.shape[-1]) for dG, core in cores)


def as_variations(frame: Frame, tucker: Sequence[Array], tt: Sequence[Array]) -> Variations:
    """A gradient in the layout of the frame."""
    return Variations(like_train(tuple(tucker), frame.up), like_train(tuple(tt), frame.left))


def stream(
    block: Callable[..., Any],
    xs: Any,
    fixed: Any,
    reducers: Any,
    *,
    rows: int | None,
    axes: Any,
    sharding: NamedSharding | None,
) -> Any:
    """Reduces ``block((xs, fixed), valid)`` over blocks of `rows`; `xs` begins with a train of probes or indices.

    What a block needs besides rows is passed to it, since `jax.shard_map` cannot close over arrays on explicit axes.
    """
    return chunk_reduce(
        block, (xs, fixed), reducers, chunk_size=rows, n_rows=count_rows(xs[0]), axes=(axes, None), sharding=sharding
    )
