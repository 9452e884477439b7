"""The T3 beside its relatives: tensor trains, Tucker and CP decompositions, to and from.

* tensor train: cores ``(a, o, b)``, the ambient index where a T3 has a Tucker index;
* Tucker: a core ``(k_0, .., k_{d-1})`` and factors ``U_i (k, o)``;
* CP: factors ``A_i (k, o)`` of one rank, ``T = sum_k weights[k] A_0[k,o_0] .. A_{d-1}[k,o_{d-1}]``.
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from t3k.kernels.checks import check_t3
from t3k.kernels.frames import minimal_cores
from t3k.kernels.from_dense import from_dense_cores
from t3k.kernels.linalg import contract
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import sum_end_bonds, to_dense
from t3k.kernels.types import Array, T3Cores, as_tuple

__all__ = ["cp_terms", "from_cp", "from_tt", "from_tucker", "to_cp", "to_tt", "to_tucker"]


def from_tt(tt_cores: Sequence[Array]) -> T3Cores:
    """A tensor train as a T3 of minimal ranks; exact.

    Args:
      tt_cores: (a, o, b) each; end bonds of any size are summed over.

    Returns:
      A T3.

    Example:
      >>> [U.shape for U in from_tt((jnp.ones((1, 9, 2)), jnp.ones((2, 4, 1)))).tucker]
      [(2, 9), (2, 4)]
    """
    identities = tuple(jnp.eye(G.shape[1], dtype=G.dtype) for G in tt_cores)
    return minimal_cores(T3Cores(identities, tuple(tt_cores)))


def to_tt(x: T3Cores) -> tuple[Array, ...]:
    """The T3 as a tensor train with end bonds of 1.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      Cores (a, o, b).

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> [G.shape for G in to_tt(zeros_cores((4, 5), (2, 3), (1, 2, 1)))]
      [(1, 4, 2), (2, 5, 1)]
    """
    x = sum_end_bonds(x)
    return sweep_cores(_ambient_step, (), list(zip(x.tucker, x.tt, strict=True)))[1]


def _ambient_step(carry: tuple[()], item: tuple[Array, Array]) -> tuple[tuple[()], Array]:
    U, G = item
    return carry, contract("akb,ko->aob", G, U)


def from_tucker(core: Array, factors: Sequence[Array]) -> T3Cores:
    """A Tucker decomposition as a T3 of minimal ranks; exact. Its core is cut into a train by SVDs.

    Args:
      core: (k_0, .., k_{d-1}).
      factors: U (k, o) each.

    Returns:
      A T3.

    Example:
      >>> [G.shape for G in from_tucker(jnp.ones((2, 2)), (jnp.ones((2, 4)), jnp.ones((2, 5)))).tt]
      [(1, 2, 2), (2, 2, 1)]
    """
    x = from_dense_cores(core, core.shape, (core.size,) * (core.ndim + 1))
    turned = tuple(contract("nk,ko->no", U, factor) for U, factor in zip(x.tucker, factors, strict=True))
    return minimal_cores(x._replace(tucker=turned))


def to_tucker(x: T3Cores) -> tuple[Array, tuple[Array, ...]]:
    """The T3 as a Tucker decomposition, whose core is dense.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      The core (k_0, .., k_{d-1}), and the Tucker cores U.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> to_tucker(zeros_cores((4, 5), (2, 3), (1, 2, 1)))[0].shape
      (2, 3)
    """
    check_t3(*x)
    identities = tuple(jnp.eye(U.shape[0], dtype=U.dtype) for U in x.tucker)
    return to_dense(T3Cores(identities, as_tuple(x.tt))), as_tuple(x.tucker)


def from_cp(factors: Sequence[Array], weights: Array | None = None) -> T3Cores:
    """A CP decomposition as a T3 of minimal ranks; exact. Its TT cores are diagonal.

    Args:
      factors: A (k, o) each, with the same k.
      weights: (k,); ones if None.

    Returns:
      A T3.

    Example:
      >>> [G.shape for G in from_cp((jnp.ones((2, 4)), jnp.ones((2, 5)), jnp.ones((2, 4)))).tt]
      [(1, 2, 2), (2, 2, 2), (2, 2, 1)]
    """
    rank, dtype = factors[0].shape[0], factors[0].dtype
    diagonal = jnp.eye(rank, dtype=dtype)[:, :, None] * jnp.eye(rank, dtype=dtype)[None]
    first = diagonal if weights is None else diagonal * weights[:, None, None]
    cores = tuple(first if i == 0 else diagonal for i in range(len(factors)))
    return minimal_cores(T3Cores(tuple(factors), cores))


def cp_terms(tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> int:
    """The number of terms of `to_cp`: one for every state of the bonds, or of the Tucker indices but the largest.

    Example:
      >>> cp_terms((2, 3, 2), (1, 2, 2, 1)), cp_terms((2, 2, 2), (1, 2, 4, 1))
      (4, 4)
    """
    return min(math.prod(tt_ranks[1:-1]), math.prod(tucker_ranks) // max(tucker_ranks))


def to_cp(x: T3Cores) -> tuple[Array, ...]:
    """The T3 as a sum of rank-one tensors: exact, and as few as its ranks alone allow, not as few as there can be.

    With every bond in one state, a tensor train is a product of vectors. With every Tucker index but one in one state,
    so is a Tucker decomposition, the other mode having a fibre of the core. The shorter of the two sums is taken.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      Factors (R, o), where R is `cp_terms`.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> [A.shape for A in to_cp(zeros_cores((4, 5), (2, 3), (1, 2, 1)))]
      [(2, 4), (2, 5)]
    """
    tucker_ranks = [U.shape[0] for U in x.tucker]
    bonds = [G.shape[0] for G in x.tt[1:]]
    if math.prod(bonds) == cp_terms(tucker_ranks, (1, *bonds, 1)):
        states = [np.zeros(1, int), *_states(bonds), np.zeros(1, int)]
        return tuple(G[states[i], :, states[i + 1]] for i, G in enumerate(to_tt(x)))
    core, factors = to_tucker(x)
    long = int(np.argmax(tucker_ranks))
    states = list(_states([n for i, n in enumerate(tucker_ranks) if i != long]))
    fibres = contract("Rk,ko->Ro", jnp.moveaxis(core, long, -1)[tuple(states)], factors[long])
    others = iter(states)
    return tuple(fibres if i == long else U[next(others)] for i, U in enumerate(factors))


def _states(sizes: Sequence[int]) -> Sequence[np.ndarray]:
    """All combinations of indices, one flat array for each."""
    return [index.reshape(-1) for index in np.indices(sizes)] if sizes else []
