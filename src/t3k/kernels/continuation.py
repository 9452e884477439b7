"""Rank continuation: which ranks to fit next, and the same tensor with room for them.

The ranks of a fit are grown where it is well conditioned. An edge (a mode or an inner bond) has the condition number
``kappa = s_1 / s_r`` of its unfolding. With kappa_max the largest of all, every edge with ``kappa < kappa_max / tau``
gets one more, and ranks that no tensor can use are cut back.

Source: N. Alger et al., "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026), Section 5.4.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels.ranks import cap_ranks, minimal_ranks
from t3k.kernels.types import Array, T3Cores

__all__ = ["next_ranks", "with_room"]

Ranks = tuple[tuple[int, ...], tuple[int, ...]]
#: Edges worse conditioned than this are not grown: what they hold already is rounding.
WORST = 1e12


def _condition(values: np.ndarray) -> float:
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")


def next_ranks(
    shape: Sequence[int],
    tucker_values: Sequence[np.ndarray],
    tt_values: Sequence[np.ndarray],
    caps: Ranks,
    *,
    tau: float = 10.0,
) -> Ranks:
    """The Tucker and TT ranks to fit next; the present ones where nothing may grow.

    Args:
      shape: mode sizes N_i.
      tucker_values: singular values of the d Tucker unfoldings, in descending order.
      tt_values: those of the d + 1 TT unfoldings.
      caps: the largest ranks wanted, of lengths d and d + 1.
      tau: at least 1; the larger, the fewer edges grow at a time.

    Example:
      >>> values = [np.ones(1), np.ones(1)], [np.ones(1), np.ones(1), np.ones(1)]
      >>> next_ranks((4, 5), *values, ((3, 3), (1, 3, 1)))
      ((2, 2), (1, 2, 1))
    """
    present = tuple(map(len, tucker_values)), (1, *map(len, tt_values[1:-1]), 1)
    kappa = list(map(_condition, tucker_values)), list(map(_condition, tt_values))
    finite = [k for edges in (kappa[0], kappa[1][1:-1]) for k in edges if np.isfinite(k)]
    for bound in (max(finite, default=0.0) / tau, WORST):
        grown = _grow(shape, present, kappa, bound, caps)
        if grown != present:
            return grown
    return present


def _grow(
    shape: Sequence[int], present: Ranks, kappa: tuple[list[float], list[float]], bound: float, caps: Ranks
) -> Ranks:
    tucker, tt = (
        cap_ranks([r + (k < min(bound, WORST)) for r, k in zip(ranks, edges, strict=True)], most)
        for ranks, edges, most in zip(present, kappa, caps, strict=True)
    )
    return minimal_ranks(shape, tucker, (1, *tt[1:-1], 1))


def with_room(key: Array, x: T3Cores, tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> T3Cores:
    """The same tensor in cores of larger ranks, whose new directions are random.

    New rows of U are random, and a new bond is fed at random but read nowhere, so that the tensor stays as it is while
    its frame spans new directions for a fit to use.

    Args:
      key: from `jax.random.key`.
      x: U (k, o) and G (a, k, b) each.
      tucker_ranks: n_i, no less than those of x.
      tt_ranks: r_0 .. r_d, likewise; r_0 and r_d as they are.

    Example:
      >>> from t3k.kernels.t3 import ranks_of, zeros_cores
      >>> ranks_of(with_room(jax.random.key(0), zeros_cores((4, 5), (1, 1), (1, 1, 1)), (2, 2), (1, 2, 1)))
      ((4, 5), (2, 2), (1, 2, 1))
    """
    keys = jax.random.split(key, 2 * len(x.tt))
    bonds = zip(x.tt, tucker_ranks, tt_ranks[:-1], tt_ranks[1:], strict=True)
    tucker = tuple(_room(k, U, (n, U.shape[1])) for k, U, n in zip(keys, x.tucker, tucker_ranks, strict=False))
    tt = tuple(_room(k, G, (a, n, b)) for k, (G, n, a, b) in zip(keys[len(x.tt) :], bonds, strict=True))
    return T3Cores(tucker, tuple(_unread(G, old.shape[2], old) for G, old in zip(tt, x.tt, strict=True)))


def _room(key: Array, core: Array, shape: tuple[int, ...]) -> Array:
    """The core in the corner of a random one of about its size."""
    size = jnp.sqrt(jnp.mean(core**2))
    size = jnp.where(size > 0, size, 1)
    corner = tuple(slice(n) for n in core.shape)
    return (size * jax.random.normal(key, shape, core.dtype)).at[corner].set(core)


def _unread(core: Array, b: int, old: Array) -> Array:
    """Zeros where new parts of a core would go into the old bond on its right."""
    kept = jnp.zeros_like(core[:, :, :b]).at[: old.shape[0], : old.shape[1]].set(old)
    return core.at[:, :, :b].set(kept)
