"""The T3 beside its relatives: tensor trains, Tucker and CP decompositions, to and from.

* tensor train: cores ``(a, o, b)``, the ambient index where a T3 has a Tucker index;
* Tucker: a core ``(k_0, .., k_{d-1})`` and factors ``U_i (k, o)``;
* CP: factors ``A_i (k, o)`` of one rank, ``T = sum_k weights[k] A_0[k,o_0] .. A_{d-1}[k,o_{d-1}]``.
"""

from collections.abc import Sequence

import jax.numpy as jnp

from t3k.kernels.checks import check_t3
from t3k.kernels.frames import minimal_cores
from t3k.kernels.from_dense import from_dense_cores
from t3k.kernels.linalg import contract
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import sum_end_bonds, to_dense
from t3k.kernels.types import Array, T3Cores, as_tuple

__all__ = ["from_cp", "from_tt", "from_tucker", "to_tt", "to_tucker"]


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
