"""What is made of the blocks of a Jacobian: J itself in its final layout, or a product that never stores J.

D[p][q] below is the derivative of leaf p of what comes out by leaf q of what goes in (see `jacobian_sweep`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.jacobian_blocks import offsets, place, sizes
from t3k.kernels.jacobian_sweep import Linear, Sweep
from t3k.kernels.reducers import add, concat
from t3k.kernels.types import Array

__all__ = ["column_norms", "diagonal", "gram", "jacobian_blocks", "row_norms", "seeded", "transposed_times"]


def jacobian_blocks(sweep: Sweep, mode: str, chunk: int | None) -> list[list[Array]]:
    """D as J's blocks J[y leaf][x leaf], each of shape(y leaf) + shape(x leaf)."""
    forward = mode == "fwd"
    axis = -1 if forward else 0

    def flatten(blocks: list[Array], numbers: Array) -> list[Array]:
        c = numbers.shape[0]
        shapes = [(n, c) if forward else (c, n) for n in sizes(sweep.outs)]
        return [jnp.reshape(block, shape) for block, shape in zip(blocks, shapes, strict=True)]

    placed = sweep.reduce(flatten, place(axis, sizes(sweep.ins)), chunk, out_axis=axis)
    if forward:
        return [
            [jnp.reshape(d, y.shape + x.shape) for d, x in zip(row, sweep.ins, strict=True)]
            for row, y in zip(placed, sweep.outs, strict=True)
        ]
    return [
        [jnp.reshape(column[j], y.shape + x.shape) for column, x in zip(placed, sweep.outs, strict=True)]
        for j, y in enumerate(sweep.ins)
    ]


def seeded(sweep: Sweep, mode: str, chunk: int | None) -> list[Array]:
    """The derivatives along the seed's directions, on a last axis (forward) or a leading one (reverse)."""
    axis = -1 if mode == "fwd" else 0
    return sweep.reduce(lambda blocks, numbers: blocks, concat(axis), chunk, out_axis=axis)


def _size(kind: Any) -> int:
    return math.prod(kind.shape)


def _common(kinds: Sequence[Any]) -> Any:
    """The real dtype in which contributions of several leaves are summed."""
    return jnp.finfo(jnp.result_type(*(kind.dtype for kind in kinds))).dtype


def _squares(block: Array, dtype: Any) -> Array:
    """Per direction and element |block|^2, with the elements flattened."""
    flat = jnp.reshape(block, (block.shape[0], _size(block) // max(1, block.shape[0])))
    squares = jnp.real(flat * jnp.conj(flat)) if jnp.iscomplexobj(flat) else flat * flat
    return squares.astype(dtype)


def _root(total: Array) -> Array:
    """The square root, with derivative 0 at 0 where a norm has none."""
    positive = total > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, total, jnp.ones_like(total))), jnp.zeros_like(total))


def _norms_of_ins(sweep: Sweep, chunk: int | None) -> list[Array]:
    """Per direction, the norm of its derivative over all leaves."""
    dtype = _common(sweep.outs)

    def norms(blocks: list[Array], numbers: Array) -> Array:
        return sum((jnp.sum(_squares(b, dtype), axis=1) for b in blocks), jnp.zeros(numbers.shape, dtype))

    placed = sweep.reduce(norms, place(0, sizes(sweep.ins)), chunk)
    return [jnp.reshape(_root(total), q.shape) for total, q in zip(placed, sweep.ins, strict=True)]


def _norms_of_outs(sweep: Sweep, chunk: int | None) -> list[Array]:
    """Per element that comes out, the norm of its derivatives by all directions."""

    def sums(blocks: list[Array], numbers: Array) -> list[Array]:
        del numbers
        return [jnp.sum(_squares(b, jnp.finfo(b.dtype).dtype), axis=0) for b in blocks]

    totals = sweep.reduce(sums, add, chunk, sums=True)
    return [jnp.reshape(_root(total), p.shape) for total, p in zip(totals, sweep.outs, strict=True)]


def row_norms(sweep: Sweep, mode: str, chunk: int | None) -> list[Array]:
    """Per element of y, the norm of its row of J."""
    return (_norms_of_outs if mode == "fwd" else _norms_of_ins)(sweep, chunk)


def column_norms(sweep: Sweep, mode: str, chunk: int | None) -> list[Array]:
    """Per element of x, the norm of its column of J."""
    return (_norms_of_ins if mode == "fwd" else _norms_of_outs)(sweep, chunk)


def diagonal(sweep: Sweep, mode: str, chunk: int | None) -> list[Array]:
    """J's diagonal, in the leaves of y; x and y have leaves of the same sizes."""
    lengths, ys = sizes(sweep.ins), sweep.outs if mode == "fwd" else sweep.ins
    dtype = jnp.result_type(*(p.dtype for p in sweep.outs))

    def diagonal_of(blocks: list[Array], numbers: Array) -> Array:
        total = jnp.zeros(numbers.shape, dtype)
        for block, length, first in zip(blocks, lengths, offsets(lengths), strict=True):
            if length == 0:
                continue
            own = jnp.reshape(block, (block.shape[0], length))
            index = jnp.clip(numbers - first, 0, length - 1)
            picked = jnp.take_along_axis(own, index[:, None], axis=1)[:, 0].astype(dtype)
            inside = (numbers >= first) & (numbers < first + length)
            total = total + jnp.where(inside, picked, jnp.zeros((), dtype))
        return total

    placed = sweep.reduce(diagonal_of, place(0, lengths), chunk)
    return [jnp.reshape(d, y.shape).astype(y.dtype) for d, y in zip(placed, ys, strict=True)]


def gram(sweep: Sweep, mode: str, chunk: int | None) -> list[list[Array]]:
    """J^T J in blocks G[x leaf][x leaf], each of shape(x leaf) + shape(x leaf), in the dtype of the first."""
    if mode == "fwd":
        return jacobian_blocks(_gram_sweep(sweep), "fwd", chunk)
    lengths = sizes(sweep.outs)

    def products(blocks: list[Array], numbers: Array) -> list[list[Array]]:
        rows = [jnp.reshape(b, (numbers.shape[0], length)) for b, length in zip(blocks, lengths, strict=True)]
        return [[_transposed_times(a, b) for b in rows[j:]] for j, a in enumerate(rows)]

    upper = sweep.reduce(products, add, chunk, sums=True)
    result = []
    for j, x in enumerate(sweep.outs):
        row = [upper[k][j - k].T.astype(x.dtype) if k < j else upper[j][k - j] for k in range(len(lengths))]
        result.append([jnp.reshape(g, x.shape + other.shape) for g, other in zip(row, sweep.outs, strict=True)])
    return result


def _transposed_times(a: Array, b: Array) -> Array:
    dtype = jnp.result_type(a.dtype, b.dtype)
    return (a.astype(dtype).T @ b.astype(dtype)).astype(a.dtype)


def _gram_sweep(sweep: Sweep) -> Sweep:
    """Directions of x in, J^T J of them out: each block of columns of J is pulled back at once."""

    def through(linear: Linear) -> Linear:
        transposed: Callable[..., Any] = jax.linear_transpose(linear, sweep.ins)
        return lambda tangents: list(transposed(linear(tangents))[0])

    at = sweep.at
    if at is None:
        return replace(sweep, outs=sweep.ins, linear=through(sweep.linear))
    return replace(sweep, outs=sweep.ins, at=lambda point: through(at(point)))


def transposed_times(sweep: Sweep, residual: list[Array]) -> list[Array]:
    """J^T r of a sweep in reverse mode: one pullback."""
    return (sweep.linear if sweep.at is None else sweep.at(sweep.point))(residual)
