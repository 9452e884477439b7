"""Singular values of the unfoldings of a T3, and the ranks that a tolerance asks for.

A tensor with d modes has d *Tucker unfoldings*, mode i against the others, and d + 1 *TT unfoldings*, the first i modes
against the others, of which the first and the last are vectors. When all cores but C_i are orthogonal towards it, the
unfoldings of x and of the small core C_i (a, k, b) have the same singular values: (k, a b) for mode i, (a, k b) for
bond i.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels.frames import minimal_cores
from t3k.kernels.linalg import in_working_precision, svd
from t3k.kernels.orthogonalize import left_orthogonalize, orthonormalize_rows, right_orthogonalize
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, T3Cores

__all__ = [
    "discarded_norm",
    "numerical_rank",
    "rank_within",
    "require_concrete",
    "singular_values",
    "split_tolerance",
]


@in_working_precision
def singular_values(x: T3Cores) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Singular values of the Tucker and TT unfoldings of x, in descending order, zeros included.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      d arrays of the lengths of the minimal Tucker ranks, and d + 1 of the lengths of the minimal bonds; the first
      and the last of these hold the norm of x.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> tucker, tt = singular_values(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> [s.shape for s in tucker], [s.shape for s in tt]
      ([(2,), (2,)], [(1,), (2,), (1,)])
    """
    _, tt = orthonormalize_rows(*minimal_cores(x))
    centres = right_orthogonalize(left_orthogonalize(tt).cores).centres
    _, values = sweep_cores(_values_step, (), centres)
    bonds = tuple(bond for _, bond in values)
    return tuple(mode for mode, _ in values), (*bonds, bonds[0])


def _values_step(carry: tuple[()], centre: Array) -> tuple[tuple[()], tuple[Array, Array]]:
    a, k, b = centre.shape
    modes = svd(centre.swapaxes(0, 1).reshape(k, a * b))[1]
    return carry, (modes, svd(centre.reshape(a, k * b))[1])


def discarded_norm(x: T3Cores, tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> Array:
    """The norm of all singular values beyond given ranks: a bound of the error of the truncation to them.

    Args:
      x: U (k, o) and G (a, k, b) each.
      tucker_ranks: one per mode; static.
      tt_ranks: r_0 .. r_d; static, the ends are taken as 1.

    Returns:
      A scalar, at most sqrt(2d - 1) times the error of the best tensor of these ranks.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> discarded_norm(constant_cores((4, 9), 1.0), (1, 1), (1, 1, 1)).item()
      0.0
    """
    tucker, tt = singular_values(x)
    beyond = [values[int(n) :] for values, n in zip(tucker, tucker_ranks, strict=True)]
    beyond += [values[int(r) :] for values, r in zip(tt[1:-1], tt_ranks[1:-1], strict=True)]
    return jnp.linalg.norm(jnp.concatenate(beyond))


def numerical_rank(values: Array, rtol: float | None = None) -> int:
    """How many singular values are above `rtol` times the largest; of several sets, the largest number.

    Args:
      values: (p,) or stacks of them, concrete.
      rtol: p times the machine precision if None.

    Returns:
      An integer from 0 to p.

    Example:
      >>> numerical_rank(jnp.array([3.0, 0.4, 1e-20])), numerical_rank(jnp.array([3.0, 0.4]), 0.5)
      (2, 1)
    """
    precision = float(jnp.finfo(values.dtype).eps) * values.shape[-1]
    wide = np.asarray(values, np.float64)
    largest = wide.max(axis=-1, keepdims=True)
    return int((wide > (precision if rtol is None else rtol) * largest).sum(axis=-1).max())


def require_concrete(function: str, arrays: Any) -> None:
    """Raises TypeError if any array is traced, because what `function` returns has shapes that depend on values.

    Args:
      function: its name, for the message.
      arrays: any pytree.

    Raises:
      TypeError: an array is traced.

    Example:
      >>> import jax.numpy as jnp
      >>> require_concrete("f", jnp.ones(2))
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
        raise TypeError(
            f"{function} chooses ranks by the values of its argument, so it cannot run under jit, vmap or grad: "
            "got a traced array, expected a concrete one. Inside transformed code, give static ranks instead."
        )


def split_tolerance(norm: Array, rtol: float, atol: float, d: int) -> float:
    """What each of the 2d - 1 truncations may discard, so that together they stay within ``rtol |x| + atol``.

    Args:
      norm: of x.
      rtol: relative tolerance.
      atol: absolute tolerance.
      d: number of modes.

    Returns:
      The largest norm of discarded singular values at each truncation.

    Example:
      >>> import jax.numpy as jnp
      >>> split_tolerance(jnp.array(2.0), 0.5, 0.0, 5)
      0.3333333333333333
    """
    return (rtol * float(norm) + atol) / math.sqrt(2 * d - 1)


def rank_within(values: Array | np.ndarray, allowed: float) -> int:
    """The least rank, at least 1, for which the norm of the discarded singular values is within `allowed`.

    Args:
      values: (p,), in descending order.
      allowed: the largest norm to discard.

    Returns:
      An integer from 1 to p.

    Example:
      >>> import jax.numpy as jnp
      >>> rank_within(jnp.array([3.0, 0.4, 0.25]), 0.3)
      2
    """
    smallest_first = np.asarray(values, np.float64)[::-1]
    tails = np.sqrt(np.cumsum(smallest_first**2))
    return max(1, len(tails) - int(np.searchsorted(tails, allowed, side="right")))
