"""Operations on the modes of a T3: contract, select, join, reverse, and change the ranks.

A mode is contracted, or an index of it taken, in its Tucker core alone. Where that leaves nothing of the mode, the
Tucker core has become a vector (k,), its TT core a matrix (a, b), and the matrix goes into a neighbour.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from t3k.kernels.checks import check_t3
from t3k.kernels.linalg import contract, normal_like
from t3k.kernels.orthogonalize import flip
from t3k.kernels.t3 import add, sum_end_bonds
from t3k.kernels.types import Array, Cores, T3Cores, as_tuple

__all__ = ["concatenate", "contract_modes", "pad_ranks", "reverse", "scale_edges", "select_modes"]


def contract_modes(x: T3Cores, operands: Sequence[Array | None]) -> T3Cores | Array:
    """The T3 contracted with a vector, which removes the mode, or multiplied by a matrix in some of its modes.

    Args:
      x: U (k, o) and G (a, k, b) each.
      operands: one per mode: a vector (o,), a matrix (p, o), or None for a mode that stays as it is.

    Returns:
      A T3 of the modes that are left, with end bonds of 1; a scalar if there are none.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> contract_modes(constant_cores((2, 3), 1.0), (jnp.ones(2), jnp.ones(3))).item()
      6.0
    """
    check_t3(*x)
    pairs = zip(x.tucker, operands, strict=True)
    tucker = [U if w is None else contract("ko,po->kp" if w.ndim == 2 else "ko,o->k", U, w) for U, w in pairs]
    return _absorb(tucker, x.tt)


def select_modes(x: T3Cores, indices: Sequence[Array | None]) -> T3Cores | Array:
    """The T3 at some of the indices of its modes.

    Args:
      x: U (k, o) and G (a, k, b) each.
      indices: one per mode: an integer, which removes the mode, integers (p,), or None for the whole mode; in range.

    Returns:
      A T3 of the modes that are left, with end bonds of 1; a scalar if there are none.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> [U.shape for U in select_modes(constant_cores((2, 3), 1.0), (jnp.array(0), None)).tucker]
      [(1, 3)]
    """
    check_t3(*x)
    return _absorb([U if j is None else U[:, j] for U, j in zip(x.tucker, indices, strict=True)], x.tt)


def _absorb(tucker: Sequence[Array], tt_cores: Cores) -> T3Cores | Array:
    """The T3 whose Tucker cores are matrices (k, o), or vectors (k,) where no mode is left."""
    left = jnp.ones((1, tt_cores[0].shape[0]), tt_cores[0].dtype)
    kept: list[tuple[Array, Array]] = []
    for U, G in zip(tucker, tt_cores, strict=True):
        if U.ndim == 1:
            left = contract("ca,akb,k->cb", left, G, U)
        else:
            kept.append((U, contract("ca,akb->ckb", left, G)))
            left = jnp.eye(G.shape[2], dtype=G.dtype)
    if not kept:
        return jnp.sum(left)
    U, last = kept[-1]
    kept[-1] = U, contract("akb,bc->ak", last, left)[..., None]
    return T3Cores(*zip(*kept, strict=True))


def concatenate(terms: Sequence[T3Cores], mode: int) -> T3Cores:
    """T3s joined along one mode; ranks are the sums of the ranks.

    Args:
      terms: U (k, o) and G (a, k, b) each, of the same sizes but for that of `mode`.
      mode: static.

    Returns:
      The sum of all, each with zeros in the place of the others.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, ranks_of
      >>> x = constant_cores((2, 3), 1.0)
      >>> ranks_of(concatenate([x, x], 1))
      ((2, 6), (2, 2), (1, 2, 1))
    """
    sizes = [x.tucker[mode].shape[1] for x in terms]
    total, before = None, 0
    for x, size in zip(terms, sizes, strict=True):
        tucker = list(as_tuple(x.tucker))
        tucker[mode] = jnp.pad(tucker[mode], [(0, 0), (before, sum(sizes) - before - size)])
        placed = T3Cores(tuple(tucker), as_tuple(x.tt))
        total, before = placed if total is None else add(total, placed), before + size
    assert total is not None
    return sum_end_bonds(total)


def reverse(x: T3Cores) -> T3Cores:
    """The transposed tensor: modes in reverse order.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      The same cores from the other end.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, ranks_of
      >>> ranks_of(reverse(constant_cores((2, 3), 1.0)))[0]
      (3, 2)
    """
    check_t3(*x)
    return T3Cores(as_tuple(x.tucker)[::-1], flip(x.tt))


def scale_edges(
    x: T3Cores,
    modes: Sequence[Array | None],
    tucker: Sequence[Array | None],
    bonds: Sequence[Array | None],
) -> T3Cores:
    """The T3 with a diagonal matrix on some of its edges.

    Args:
      x: U (k, o) and G (a, k, b) each.
      modes: weights (o,) of the ambient indices, one per mode, or None.
      tucker: weights (k,) between U and G, likewise.
      bonds: weights (a,) between cores, for r_0 .. r_d, likewise.

    Returns:
      A T3 of the same ranks, in whose cores the weights are.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, to_dense
      >>> x = constant_cores((2,), 1.0)
      >>> to_dense(scale_edges(x, [jnp.array([1.0, 2.0])], [None], [jnp.array([3.0]), None])).tolist()
      [3.0, 6.0]
    """
    check_t3(*x)
    first, *after = bonds
    U = [_weigh(core, "ko", {"o": w, "k": s}) for core, w, s in zip(x.tucker, modes, tucker, strict=True)]
    lefts = [first, *(None for _ in after[1:])]
    G = [_weigh(core, "akb", {"a": w, "b": s}) for core, w, s in zip(x.tt, lefts, after, strict=True)]
    return T3Cores(tuple(U), tuple(G))


def _weigh(core: Array, letters: str, weights: dict[str, Array | None]) -> Array:
    for letter, weight in weights.items():
        core = core if weight is None else contract(f"{letters},{letter}->{letters}", core, weight)
    return core


def pad_ranks(
    x: T3Cores,
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    noise: float = 0.0,
    key: Array | None = None,
) -> T3Cores:
    """The same tensor with cores of larger ranks: padded with zeros, or with small random numbers.

    Args:
      x: U (k, o) and G (a, k, b) each.
      tucker_ranks: no smaller than those of x; static.
      tt_ranks: r_0 .. r_d, likewise.
      noise: standard deviation of the new entries, relative to the root mean square of their core; static. Above 0
        the tensor changes.
      key: from `jax.random.key`; needed with noise.

    Returns:
      Cores of exactly these ranks.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, ranks_of
      >>> ranks_of(pad_ranks(constant_cores((2, 3), 1.0), (2, 3), (1, 2, 1)))
      ((2, 3), (2, 3), (1, 2, 1))
    """
    check_t3(*x)
    tucker = [(int(n), U.shape[1]) for n, U in zip(tucker_ranks, x.tucker, strict=True)]
    tt = [(int(a), int(n), int(b)) for a, n, b in zip(tt_ranks[:-1], tucker_ranks, tt_ranks[1:], strict=True)]
    padded = T3Cores(tuple(map(_pad, x.tucker, tucker)), tuple(map(_pad, x.tt, tt)))
    if not noise:
        return padded
    assert key is not None, "noise needs a key"
    ones = T3Cores(*(jax.tree.map(jnp.ones_like, as_tuple(train)) for train in x))
    new = T3Cores(tuple(map(_pad, ones.tucker, tucker)), tuple(map(_pad, ones.tt, tt)))
    sizes = T3Cores(*(jax.tree.map(lambda core: noise * jnp.sqrt(jnp.mean(core**2)), as_tuple(t)) for t in x))
    return jax.tree.map(lambda p, o, s, e: p + (1 - o) * s * e, padded, new, sizes, normal_like(key, padded))


def _pad(core: Array, shape: tuple[int, ...]) -> Array:
    return jnp.pad(core, [(0, new - old) for old, new in zip(core.shape, shape, strict=True)])
