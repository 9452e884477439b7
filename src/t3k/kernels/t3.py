"""Arithmetic of Tucker tensor trains, always through the cores and never through the dense tensor.

A T3 is ``(tucker, tt)`` with U_i (k, o) and G_i (a, k, b); its end bonds, usually 1, are summed over. Sums stack the
cores in diagonal blocks, so that ranks add up (inner products and norms are in `t3k.kernels.products`).
"""

from collections.abc import Sequence
from typing import cast

import jax.numpy as jnp
from jax.typing import DTypeLike

from t3k.kernels.checks import check_t3
from t3k.kernels.linalg import contract, normal_like
from t3k.kernels.types import Array, T3Cores, as_tuple, like_train

__all__ = [
    "add",
    "add_scalar",
    "constant_cores",
    "random_cores",
    "ranks_of",
    "scale",
    "sum_end_bonds",
    "to_dense",
    "zeros_cores",
]


def ranks_of(x: T3Cores) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Mode sizes N_i, Tucker ranks n_i and bonds r_0 .. r_d of a T3.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      Three tuples of integers, of lengths d, d and d + 1.

    Example:
      >>> ranks_of(zeros_cores((4, 5), (2, 3), (1, 2, 1)))
      ((4, 5), (2, 3), (1, 2, 1))
    """
    check_t3(*x)
    shape, tucker_ranks = tuple(U.shape[1] for U in x.tucker), tuple(U.shape[0] for U in x.tucker)
    return shape, tucker_ranks, (x.tt[0].shape[0], *(G.shape[2] for G in x.tt))


def zeros_cores(
    shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: DTypeLike = jnp.float32
) -> T3Cores:
    """A T3 whose cores are all zero.

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d.
      dtype: of the cores.

    Returns:
      U (k, o) and G (a, k, b) each.

    Example:
      >>> [G.shape for G in zeros_cores((4, 5), (2, 3), (1, 2, 1)).tt]
      [(1, 2, 2), (2, 3, 1)]
    """
    tucker = tuple(jnp.zeros((n, N), dtype) for n, N in zip(tucker_ranks, shape, strict=True))
    bonds = zip(tt_ranks[:-1], tucker_ranks, tt_ranks[1:], strict=True)
    return T3Cores(tucker, tuple(jnp.zeros(akb, dtype) for akb in bonds))


def constant_cores(shape: Sequence[int], value: Array | float, dtype: DTypeLike = float) -> T3Cores:
    """The T3 of ranks 1 whose entries are all the same.

    Args:
      shape: mode sizes N_i.
      value: a scalar.
      dtype: of the cores.

    Returns:
      U (1, o) and G (1, 1, 1) each.

    Example:
      >>> to_dense(constant_cores((1, 2), 3.0)).tolist()
      [[3.0, 3.0]]
    """
    ones = T3Cores(tuple(jnp.ones((1, N), dtype) for N in shape), tuple(jnp.ones((1, 1, 1), dtype) for _ in shape))
    return scale(ones, value)


def random_cores(
    key: Array,
    shape: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    dtype: DTypeLike = jnp.float32,
) -> T3Cores:
    """A T3 whose cores have independent standard normal entries.

    Args:
      key: from `jax.random.key`.
      shape: mode sizes N_i.
      tucker_ranks: n_i, one per mode.
      tt_ranks: r_0 .. r_d.
      dtype: of the cores.

    Returns:
      U (k, o) and G (a, k, b) each.

    Example:
      >>> import jax
      >>> [U.shape for U in random_cores(jax.random.key(0), (4, 5), (2, 3), (1, 2, 1)).tucker]
      [(2, 4), (3, 5)]
    """
    return cast(T3Cores, normal_like(key, zeros_cores(shape, tucker_ranks, tt_ranks, dtype)))


def sum_end_bonds(x: T3Cores) -> T3Cores:
    """The same tensor with r_0 = r_d = 1: vectors of ones are contracted into the first and last TT cores.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      A T3 with tuples of cores.

    Example:
      >>> ranks_of(sum_end_bonds(zeros_cores((4, 5), (2, 3), (2, 2, 3))))[2]
      (1, 2, 1)
    """
    check_t3(*x)
    tt = list(x.tt)
    if tt[0].shape[0] != 1:
        tt[0] = jnp.sum(tt[0], axis=0, keepdims=True)
    if tt[-1].shape[2] != 1:
        tt[-1] = jnp.sum(tt[-1], axis=2, keepdims=True)
    return T3Cores(as_tuple(x.tucker), tuple(tt))


def to_dense(x: T3Cores) -> Array:
    """All entries of the tensor, mode by mode from the left.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      An array of shape (N_0, .., N_{d-1}).

    Example:
      >>> to_dense(zeros_cores((4, 5), (2, 3), (1, 2, 1))).shape
      (4, 5)
    """
    x = sum_end_bonds(x)
    dense = jnp.ones((1, 1), x.tt[0].dtype)
    for U, G in zip(x.tucker, x.tt, strict=True):
        dense = contract("pa,akb,ko->pob", dense, G, U).reshape(-1, G.shape[2])
    return dense.reshape([U.shape[1] for U in x.tucker])


def add(x: T3Cores, y: T3Cores) -> T3Cores:
    """The sum of two T3s of the same shape; its ranks are the sums of theirs, its end bonds are 1.

    Args:
      x: U (k, o) and G (a, k, b) each.
      y: the same modes, any ranks.

    Returns:
      Cores in two diagonal blocks.

    Example:
      >>> x = zeros_cores((4, 5), (2, 3), (1, 2, 1))
      >>> ranks_of(add(x, x))
      ((4, 5), (4, 6), (1, 4, 1))
    """
    check_t3(*x)
    check_t3(*y)
    tucker = tuple(jnp.concatenate(pair) for pair in zip(x.tucker, y.tucker, strict=True))
    tt = tuple(
        jnp.pad(G, [(0, extra) for extra in H.shape]) + jnp.pad(H, [(extra, 0) for extra in G.shape])
        for G, H in zip(x.tt, y.tt, strict=True)
    )
    return sum_end_bonds(T3Cores(tucker, tt))


def add_scalar(x: T3Cores, value: Array | float) -> T3Cores:
    """The T3 plus a number in every entry; all ranks grow by 1, end bonds are 1.

    Args:
      x: U (k, o) and G (a, k, b) each.
      value: a scalar.

    Returns:
      Cores in two diagonal blocks.

    Example:
      >>> to_dense(add_scalar(constant_cores((1, 2), 3.0), 1.0)).tolist()
      [[4.0, 4.0]]
    """
    return add(x, constant_cores([U.shape[1] for U in x.tucker], value, x.tucker[0].dtype))


def scale(x: T3Cores, factor: Array | float) -> T3Cores:
    """The T3 times a number, which goes into its first TT core.

    Args:
      x: U (k, o) and G (a, k, b) each.
      factor: a scalar.

    Returns:
      A T3 with the cores and dtype of x.

    Example:
      >>> import jax.numpy as jnp
      >>> scale(T3Cores((jnp.ones((1, 1)),), (jnp.ones((1, 1, 1)),)), 3.0).tt[0].item()
      3.0
    """
    first, *others = x.tt
    return x._replace(tt=like_train((first * jnp.asarray(factor, first.dtype), *others), x.tt))
