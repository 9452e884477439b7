"""Orthogonalization of a train by QR, core by core.

A TT core G (a, k, b) is *left orthogonal* when its matrix (a k, b) has orthonormal columns, *right orthogonal* when
its matrix (a, k b) has orthonormal rows. A sweep from the left factors each core as it comes, with what the cores
before it left over (the *factor*, (new a, old a))::

    M_i = factor_i G_i  (the centre)        M_i = Q_i factor_{i+1}

so that ``(Q_0, .., Q_{i-1}, M_i, G_{i+1}, ..)`` is the same train for every i. QR by Householder reflections gives
orthonormal, finite cores whatever the values: zeros and rank deficiency need no special case. Bonds shrink only where
shapes demand it, ``b <- min(a k, b)``.

The sweep from the right is the sweep from the left of the flipped train (modes reversed, a and b exchanged).
"""

from typing import NamedTuple

import jax.numpy as jnp

from t3k.kernels.linalg import contract, in_working_precision, qr
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import sum_end_bonds
from t3k.kernels.types import Array, Cores, T3Cores, as_tuple

__all__ = [
    "OrthogonalTrain",
    "centre_at",
    "flip",
    "left_orthogonalize",
    "orthonormalize_rows",
    "right_orthogonalize",
    "split_tucker",
]


class OrthogonalTrain(NamedTuple):
    """A train orthogonalized from one side.

    `cores` is the same train, orthogonal but for the last core of the sweep; `centres[i]` is the centre core when
    all cores on that side of it are orthogonal and the others are as they were; `factors[i]` is what entered core i:
    (new a, old a) from the left, (old b, new b) from the right.
    """

    cores: tuple[Array, ...]
    centres: tuple[Array, ...]
    factors: tuple[Array, ...]


def flip(tt_cores: Cores) -> tuple[Array, ...]:
    """The train read from the other end: modes reversed, left and right bonds exchanged.

    Args:
      tt_cores: (a, k, b) each.

    Returns:
      (b, k, a) each.

    Example:
      >>> import jax.numpy as jnp
      >>> [G.shape for G in flip((jnp.ones((1, 2, 3)), jnp.ones((3, 4, 1))))]
      [(1, 4, 3), (3, 2, 1)]
    """
    return tuple(jnp.swapaxes(G, 0, 2) for G in reversed(as_tuple(tt_cores)))


def orthonormalize_rows(tucker_cores: Cores, tt_cores: Cores) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The same T3 with orthonormal rows in its Tucker cores; n becomes min(n, N).

    Args:
      tucker_cores: U (k, o) each.
      tt_cores: G (a, k, b) each.

    Returns:
      Tucker cores with orthonormal rows, and the TT cores that make up for it.

    Example:
      >>> import jax.numpy as jnp
      >>> U, G = orthonormalize_rows((jnp.ones((3, 2)),), (jnp.ones((1, 3, 1)),))
      >>> U[0].shape, G[0].shape
      ((2, 2), (1, 2, 1))
    """
    _, cores = sweep_cores(_rows_step, (), list(zip(tucker_cores, tt_cores, strict=True)))
    return tuple(U for U, _ in cores), tuple(G for _, G in cores)


def _rows_step(carry: tuple[()], item: tuple[Array, Array]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, G = item
    Q, R = qr(U.T)
    return carry, (Q.T, contract("lk,akb->alb", R, G))


def left_orthogonalize(tt_cores: Cores) -> OrthogonalTrain:
    """The same train with left orthogonal cores, all but the last, by a sweep of QRs from the left.

    Args:
      tt_cores: (a, k, b) each; end bonds of any size.

    Returns:
      Cores, centres and factors, see `OrthogonalTrain`.

    Example:
      >>> import jax.numpy as jnp
      >>> [Q.shape for Q in left_orthogonalize((jnp.ones((1, 2, 5)), jnp.ones((5, 2, 1)))).cores]
      [(1, 2, 2), (2, 2, 1)]
    """
    *inner, last = as_tuple(tt_cores)
    factor = jnp.eye((inner or [last])[0].shape[0], dtype=last.dtype)
    factor, outputs = sweep_cores(_left_step, factor, _with_bonds(inner))
    centre = contract("ca,akb->ckb", factor, last)
    columns = (tuple(column) for column in zip(*outputs, strict=True)) if inner else ((), (), ())
    cores, centres, factors = columns
    return OrthogonalTrain((*cores, centre), (*centres, centre), (*factors, factor))


def _with_bonds(tt_cores: list[Array]) -> list[tuple[Array, Array]]:
    """Pairs each core with an empty array as long as the factor that will enter it.

    A run of equal-shaped cores may be scanned only while the factor keeps its shape too; the empty array makes that
    a part of the shape of the item.
    """
    items, bond = [], tt_cores[0].shape[0] if tt_cores else 1
    for G in tt_cores:
        items.append((G, jnp.zeros((bond, 0), G.dtype)))
        bond = min(bond * G.shape[1], G.shape[2])
    return items


def _left_step(factor: Array, item: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
    centre = contract("ca,akb->ckb", factor, item[0])
    c, k, b = centre.shape
    Q, R = qr(centre.reshape(c * k, b))
    return R, (Q.reshape(c, k, -1), centre, factor)


def right_orthogonalize(tt_cores: Cores) -> OrthogonalTrain:
    """The same train with right orthogonal cores, all but the first, by a sweep of QRs from the right.

    Args:
      tt_cores: (a, k, b) each; end bonds of any size.

    Returns:
      Cores, centres and factors, see `OrthogonalTrain`.

    Example:
      >>> import jax.numpy as jnp
      >>> [Q.shape for Q in right_orthogonalize((jnp.ones((1, 2, 5)), jnp.ones((5, 2, 1)))).cores]
      [(1, 2, 2), (2, 2, 1)]
    """
    cores, centres, factors = left_orthogonalize(flip(tt_cores))
    return OrthogonalTrain(flip(cores), flip(centres), tuple(factor.T for factor in reversed(factors)))


@in_working_precision
def centre_at(x: T3Cores, mode: int, *, tucker: bool = False) -> T3Cores:
    """The same tensor with all cores orthogonal towards one of them, which then has the norm of the tensor.

    Args:
      x: U (k, o) and G (a, k, b) each.
      mode: of the core that the others are orthogonal towards; static.
      tucker: whether that is the Tucker core of the mode, or its TT core; static.

    Returns:
      U with orthonormal rows, G left orthogonal before `mode` and right orthogonal after it; with `tucker`, G of the
      mode is orthonormal on its Tucker index and U of the mode is what is left. End bonds are 1.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> float(abs(centre_at(constant_cores((4, 9), 1.0), 1).tt[1]).round(4).item())
      6.0
    """
    U, tt = orthonormalize_rows(*sum_end_bonds(x))
    *left, centre = left_orthogonalize(tt[: mode + 1]).cores
    centre, *right = right_orthogonalize((centre, *tt[mode + 1 :])).cores
    if tucker:
        O, S = split_tucker(centre)
        U, centre = (*U[:mode], contract("mk,ko->mo", S, U[mode]), *U[mode + 1 :]), O
    return T3Cores(U, (*left, centre, *right))


def split_tucker(centre: Array) -> tuple[Array, Array]:
    """``C[a,k,b] = sum_m S[m,k] O[a,m,b]`` by QR, with O orthonormal on its Tucker index.

    Args:
      centre: (a, k, b).

    Returns:
      O (a, m, b) and S (m, k).

    Example:
      >>> [x.shape for x in split_tucker(jnp.ones((1, 3, 2)))]
      [(1, 2, 2), (2, 3)]
    """
    a, k, b = centre.shape
    O, S = qr(centre.swapaxes(1, 2).reshape(a * b, k))
    return O.reshape(a, b, -1).swapaxes(1, 2), S
