"""Permutation of the modes of a T3, by exchanges of neighbours.

With everything left and right of two TT cores orthogonal, their product, with the two Tucker indices exchanged, is
split anew by an SVD ::

    M[(a, l), (k, b)]  =  sum_c  G_i[a,k,c] G_{i+1}[c,l,b]   =   G'_i[(a, l), c'] Q[c', (k, b)]

which is the best truncation at that bond. The weight stays on the left, where the next exchange is: a mode that has to
go left walks there one exchange after the other (insertion sort). Without truncation the new bond is min(a l, k b), so
exact ranks may grow with every exchange, as those of the permuted tensor may.
"""

from collections.abc import Callable, Iterator, Sequence

import jax.numpy as jnp

from t3k.kernels.linalg import contract, in_working_precision, svd
from t3k.kernels.orthogonalize import centre_at, left_orthogonalize
from t3k.kernels.spectra import rank_within, require_concrete
from t3k.kernels.types import Array, T3Cores

__all__ = ["exchanges", "permute", "permute_tolerance"]

#: Singular values to the rank that is kept.
_Choice = Callable[[Array], int]


def exchanges(axes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The walks that sort a permutation: the mode that is at the first place goes left to the second.

    Args:
      axes: a permutation of 0 .. d-1.

    Yields:
      Pairs (from, to), from > to.

    Example:
      >>> list(exchanges((2, 0, 1)))
      [(2, 0)]
    """
    places = list(range(len(axes)))
    for to, mode in enumerate(axes):
        start = places.index(mode)
        if start != to:
            places.insert(to, places.pop(start))
            yield start, to


@in_working_precision
def permute(x: T3Cores, axes: Sequence[int], max_rank: int | None = None) -> T3Cores:
    """The tensor with its modes in another order: mode i of the result is mode ``axes[i]`` of x.

    Args:
      x: U (k, o) and G (a, k, b) each.
      axes: a permutation of 0 .. d-1; static.
      max_rank: the largest bond, also on the way; static. Exact if None.

    Returns:
      A T3 with end bonds of 1.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, ranks_of
      >>> ranks_of(permute(constant_cores((2, 3, 4), 1.0), (2, 0, 1)))[0]
      (4, 2, 3)
    """
    return _permuted(x, axes, lambda values: len(values) if max_rank is None else min(max_rank, len(values)))


def permute_tolerance(x: T3Cores, axes: Sequence[int], rtol: float, max_rank: int | None = None) -> T3Cores:
    """`permute` with bonds that keep the result within ``rtol |x|``; for concrete arrays only. The cap wins.

    Args:
      x: U (k, o) and G (a, k, b) each.
      axes: a permutation of 0 .. d-1.
      rtol: error allowed relative to the norm of x, split evenly over the exchanges.
      max_rank: the largest bond, also on the way.

    Returns:
      A T3 with end bonds of 1.

    Raises:
      TypeError: x is being traced.

    Example:
      >>> from t3k.kernels.t3 import add, constant_cores, ranks_of
      >>> x = constant_cores((2, 3, 4), 1.0)
      >>> ranks_of(permute_tolerance(add(x, x), (2, 0, 1), 1e-5))[2]
      (1, 1, 1, 1)
    """
    require_concrete("permute_tolerance", x)
    count = max(1, sum(start - to for start, to in exchanges(axes)))
    share = rtol / count**0.5

    def choose(values: Array) -> int:
        # Any exchange leaves all of the norm in its singular values.
        rank = rank_within(values, share * float(jnp.linalg.norm(values)))
        return rank if max_rank is None else min(rank, max_rank)

    return in_working_precision(_permuted)(x, axes, choose)


def _permuted(x: T3Cores, axes: Sequence[int], choose: _Choice) -> T3Cores:
    x = centre_at(x, 0)
    tt, centre = list(x.tt), 0
    for start, to in exchanges(axes):
        tt[centre : start + 1] = left_orthogonalize(tuple(tt[centre : start + 1])).cores
        for i in range(start - 1, to - 1, -1):
            tt[i], tt[i + 1] = _exchanged(tt[i], tt[i + 1], choose)
        centre = to
    return T3Cores(tuple(x.tucker[i] for i in axes), tuple(tt))


def _exchanged(G: Array, H: Array, choose: _Choice) -> tuple[Array, Array]:
    (a, k, _), (_, l, b) = G.shape, H.shape
    M = contract("akc,clb->alkb", G, H).reshape(a * l, k * b)
    vectors, values = svd(M.T)
    vectors = vectors[:, : choose(values)]
    return contract("pq,qc->pc", M, vectors).reshape(a, l, -1), vectors.T.reshape(-1, k, b)
