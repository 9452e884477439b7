"""One sweep over all directions of a Jacobian, a block at a time.

Forward mode pushes one-hot directions of x and gets columns of J; reverse mode pulls one-hot directions of y back and
gets rows. With a seed matrix the directions are its columns (forward) or rows (reverse). Everything else is the same,
so a sweep speaks of directions that go *in* and derivatives that come *out*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.jacobian_blocks import one_hot, sizes
from t3k.kernels.jacobian_problem import Problem, is_active
from t3k.kernels.types import Array

__all__ = ["Linear", "Sweep", "differentiate"]

Linear = Callable[..., list[Array]]


@dataclass(frozen=True)
class Sweep:
    """The derivative of a problem at a point, ready to be swept over.

    Attributes:
      ins: active leaves whose directions go in (x in forward mode, y in reverse mode), for shape and dtype.
      outs: those whose derivatives come out.
      linear: one direction in, one derivative out; lists of leaves.
      at: makes `linear` anew from the point, or None where it is at hand.
      point: the primals.
      y: all leaves of y, and `aux` those of the auxiliary output.
      seed: directions to take instead of all, on a leading axis; or None.
    """

    ins: list[Array]
    outs: list[Array]
    linear: Linear
    at: Callable[..., Linear] | None
    point: list[Array]
    y: list[Array]
    aux: list[Array]
    seed: list[Array] | None = None

    @property
    def n_directions(self) -> int:
        """How many directions there are."""
        return sum(sizes(self.ins)) if self.seed is None else self.seed[0].shape[0]

    def reduce(
        self,
        finish: Callable[[list[Array], Array], Any],
        reducers: Any,
        chunk: int | None,
        *,
        out_axis: int = 0,
        sums: bool = False,
    ) -> Any:
        """Reduces ``finish(block, numbers)`` over blocks of directions.

        Args:
          finish: function of the derivatives of a block, per leaf ``(c, *shape)`` or, with `out_axis` -1,
            ``(*shape, c)``, and of the directions' numbers.
          reducers: tree prefix of what `finish` returns.
          chunk: directions in a block; None for all.
          out_axis: where the directions' axis is.
          sums: whether blocks are summed. Then a direction that an earlier block has counted comes as zero, and so
            does its derivative; else it comes again, to be written into the same place.
        """
        n = self.n_directions
        numbers = jnp.arange(n, dtype=jnp.int32)

        def block(rows: tuple[Array, list[Array]], valid: Array | None) -> Any:
            numbers, seeds = rows
            valid = valid if sums else None
            linear = self.linear
            if self.at is not None:
                # Tied to the step, so that XLA does not take it out of the loop and keep its residuals after all.
                point, numbers = jax.lax.optimization_barrier((self.point, numbers))
                linear = self.at(point)
            directions = one_hot(numbers, valid, self.ins) if self.seed is None else _masked(seeds, valid)
            return finish(jax.vmap(linear, out_axes=out_axis)(directions), numbers)

        return chunk_reduce(block, (numbers, self.seed or []), reducers, chunk_size=chunk, n_rows=n)


def _masked(seeds: list[Array], valid: Array | None) -> list[Array]:
    if valid is None:
        return seeds
    return [jnp.where(jnp.reshape(valid, (-1,) + (1,) * (s.ndim - 1)), s, jnp.zeros((), s.dtype)) for s in seeds]


def differentiate(
    problem: Problem, consts: Sequence[Array], primals: Sequence[Array], mode: str, linearize: bool
) -> Sweep:
    """The sweep of a problem in forward (``"fwd"``) or reverse (``"rev"``) mode.

    Args:
      problem: the function.
      consts: the values it closes over.
      primals: the active leaves of x.
      mode: the direction of differentiation.
      linearize: True keeps the residuals of one linearization for all blocks; False computes them in every block.
    """

    def active(*primals: Array) -> tuple[list[Array], Any]:
        y, aux = problem.call(list(consts), *primals)
        return [leaf for leaf in y if is_active(leaf)], (y, aux)

    def push_at(point: Sequence[Array]) -> Linear:
        return lambda tangents: jax.jvp(lambda *x: active(*x)[0], tuple(point), tuple(tangents))[1]

    def pull_at(point: Sequence[Array]) -> Linear:
        pullback = jax.vjp(lambda *x: active(*x)[0], *point)[1]
        return lambda cotangents: list(pullback(list(cotangents)))

    x = list(primals)
    if not linearize:
        y, aux = problem.call(list(consts), *x)
        actives = [leaf for leaf in y if is_active(leaf)]
        at = push_at if mode == "fwd" else pull_at
        ins, outs = (x, actives) if mode == "fwd" else (actives, x)
        return Sweep(ins, outs, _unused, at, x, y, aux)
    if mode == "fwd":
        actives, push, (y, aux) = jax.linearize(active, *x, has_aux=True)
        return Sweep(x, actives, lambda tangents: push(*tangents), None, x, y, aux)
    actives, pullback, (y, aux) = jax.vjp(active, *x, has_aux=True)
    return Sweep(actives, x, lambda cotangents: list(pullback(list(cotangents))), None, x, y, aux)


def _unused(*directions: Any) -> list[Array]:
    raise AssertionError("a sweep with `at` makes its linear function itself")
