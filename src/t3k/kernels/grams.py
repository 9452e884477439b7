"""Gram matrices of the parts of a train: ``P_{i+1}[b,d] = sum P_i[a,c] G[a,k,b] M[k,l] G[c,l,d]`` with M = U U^T.

They are polynomials of the cores, so they can be differentiated anywhere; but they square the condition of the train,
so here they only ever carry derivatives (`t3k.kernels.truncation`), never values.
"""

from collections.abc import Sequence

import jax.numpy as jnp

from t3k.kernels.linalg import contract
from t3k.kernels.orthogonalize import flip
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, Cores

__all__ = ["left_grams", "right_grams"]


def left_grams(tt_cores: Cores, metrics: Sequence[Array] | None = None) -> tuple[Array, ...]:
    """The Gram matrix (a, a) of all that lies left of each core.

    Args:
      tt_cores: G (a, k, b) each, with left end bond 1.
      metrics: (k, k) each, the Gram matrices of the Tucker cores; None if their rows are orthonormal.

    Returns:
      One matrix per core, the first of them 1.

    Example:
      >>> [P.item() for P in left_grams((jnp.ones((1, 2, 1)),) * 3)]
      [1.0, 2.0, 4.0]
    """
    start = jnp.ones((1, 1), tt_cores[0].dtype)
    items = list(zip(tt_cores, metrics or tt_cores, strict=True))
    return sweep_cores(_gram_step if metrics else _orthonormal_gram_step, start, items)[1]


def right_grams(tt_cores: Cores, metrics: Sequence[Array] | None = None) -> tuple[Array, ...]:
    """The Gram matrix (b, b) of all that lies right of each core; see `left_grams`.

    Args:
      tt_cores: G (a, k, b) each, with right end bond 1.
      metrics: (k, k) each, or None.

    Returns:
      One matrix per core, the last of them 1.

    Example:
      >>> [P.item() for P in right_grams((jnp.ones((1, 2, 1)),) * 3)]
      [4.0, 2.0, 1.0]
    """
    return left_grams(flip(tt_cores), metrics and metrics[::-1])[::-1]


def _gram_step(P: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
    G, metric = item
    return contract("ac,akb,kl,cld->bd", P, G, metric, G), P


def _orthonormal_gram_step(P: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
    return contract("ac,akb,ckd->bd", P, item[0], item[0]), P
