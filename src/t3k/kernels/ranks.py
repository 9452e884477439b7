"""Counting: ranks that a tensor with given ranks can really have, and numbers of degrees of freedom.

Plain Python integers throughout, so that everything here is static while JAX traces. With mode sizes N_i, Tucker
ranks n_i (d of them) and bonds r_i (d+1 of them, the end bonds count as 1 because they are summed over), ranks are
*minimal* when each is no larger than what lies on its other side allows::

    n_i <= N_i        r_i <= n_i r_{i+1}        r_{i+1} <= r_i n_i        n_i <= r_i r_{i+1}

Any T3 equals one whose ranks are the largest minimal ones below its own (see `t3k.kernels.frames.minimal_cores`).
"""

from collections.abc import Iterable, Sequence

__all__ = ["cap_ranks", "has_minimal_ranks", "manifold_dimension", "minimal_ranks", "n_parameters"]

Ranks = tuple[tuple[int, ...], tuple[int, ...]]


def cap_ranks(ranks: Iterable[int], caps: Iterable[int]) -> tuple[int, ...]:
    """The smaller of two ranks, one by one, as Python integers.

    Args:
      ranks: any integers, NumPy ones included.
      caps: as many integers.

    Returns:
      As many Python integers.

    Example:
      >>> cap_ranks((1, 5, 1), (1, 3, 2))
      (1, 3, 1)
    """
    return tuple(min(int(rank), int(cap)) for rank, cap in zip(ranks, caps, strict=True))


def _tightened(shape: tuple[int, ...], n: tuple[int, ...], r: tuple[int, ...]) -> Ranks:
    """One pass of the four inequalities, the bonds from the left and then from the right."""
    bonds, d = list(r), len(n)
    n = cap_ranks(n, shape)
    for i in range(d):
        bonds[i + 1] = min(bonds[i + 1], bonds[i] * n[i])
    for i in reversed(range(d)):
        bonds[i] = min(bonds[i], n[i] * bonds[i + 1])
    return cap_ranks(n, [bonds[i] * bonds[i + 1] for i in range(d)]), tuple(bonds)


def minimal_ranks(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> Ranks:
    """The largest minimal ranks that are no larger than those given.

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d; the ends are taken as 1.

    Returns:
      Tucker ranks and bonds, as tuples of Python integers.

    Example:
      >>> minimal_ranks((3, 4, 5), (9, 9, 9), (2, 9, 9, 2))
      ((3, 4, 5), (1, 3, 5, 1))
    """
    shape = tuple(int(size) for size in shape)
    ranks: Ranks = tuple(map(int, tucker_ranks)), (1, *map(int, tt_ranks[1:-1]), 1)
    while (tightened := _tightened(shape, *ranks)) != ranks:
        ranks = tightened
    return ranks


def has_minimal_ranks(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> bool:
    """Whether the ranks are minimal, with end bonds of 1.

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d.

    Returns:
      True if `minimal_ranks` would return the same ranks.

    Example:
      >>> has_minimal_ranks((3, 4, 5), (2, 2, 2), (1, 2, 2, 1))
      True
    """
    given = tuple(map(int, tucker_ranks)), tuple(map(int, tt_ranks))
    return minimal_ranks(shape, tucker_ranks, tt_ranks) == given


def n_parameters(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> int:
    """How many numbers the cores hold: ``sum_i n_i N_i + r_i n_i r_{i+1}``.

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d, taken as they are.

    Returns:
      The number of entries of all cores.

    Example:
      >>> n_parameters((3, 4), (2, 2), (1, 2, 1))
      22
    """
    modes = zip(shape, tucker_ranks, tt_ranks[:-1], tt_ranks[1:], strict=True)
    return sum(int(n) * int(N) + int(a) * int(n) * int(b) for N, n, a, b in modes)


def manifold_dimension(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> int:
    """The dimension of the manifold of T3s of the minimal ranks below those given.

    Parameters less gauge freedoms: an invertible n_i x n_i matrix for each mode and an r_i x r_i one for each inner
    bond. As for Tucker and tensor-train manifolds, see Uschmajew and Vandereycken, "The geometry of algorithms
    using hierarchical tensors", Linear Algebra Appl. 439 (2013).

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d.

    Returns:
      The dimension, also the number of independent coordinates of a tangent.

    Example:
      >>> manifold_dimension((3, 4), (2, 2), (1, 2, 1))  # 3 x 4 matrices of rank 2
      10
    """
    n, r = minimal_ranks(shape, tucker_ranks, tt_ranks)
    return n_parameters(shape, n, r) - sum(k * k for k in n) - sum(b * b for b in r[1:-1])
