"""T3-SVD of a dense array: successive SVDs, first of every mode and then of every bond.

Mode by mode, the array is multiplied by the dominant left singular vectors of its unfolding (sequentially truncated
higher-order SVD, Vannieuwenhoven, Vandebril, Meerbergen 2012), which leaves a small array; that one is cut into a
train from the left (TT-SVD, Oseledets 2011). Each of the 2d - 1 steps is an orthogonal projection, so that the
squares of what they discard add up to the square of the error.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp

from t3k.kernels.frames import minimal_cores
from t3k.kernels.linalg import contract, in_working_precision, svd
from t3k.kernels.ranks import cap_ranks, minimal_ranks
from t3k.kernels.spectra import rank_within, require_concrete, split_tolerance
from t3k.kernels.types import Array, T3Cores

__all__ = ["from_dense_cores", "from_dense_tolerance"]

#: Mode or bond and singular values to the rank that is kept.
_Choice = Callable[[int, Array], int]


@in_working_precision
def from_dense_cores(array: Array, tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> T3Cores:
    """The T3-SVD of an array to given ranks: exact if they suffice, else within sqrt(2d - 1) of the best.

    Args:
      array: (N_0, .., N_{d-1}), d >= 1.
      tucker_ranks: the largest Tucker ranks wanted, one per mode; static.
      tt_ranks: the largest bonds wanted, r_0 .. r_d; static. The end bonds of the result are 1.

    Returns:
      U with orthonormal rows, G left orthogonal but for the last one, of the minimal ranks below those wanted.

    Example:
      >>> x = from_dense_cores(jnp.ones((4, 5)), (9, 2), (1, 3, 1))
      >>> [G.shape for G in x.tt]
      [(1, 2, 2), (2, 2, 1)]
    """
    n, r = minimal_ranks(array.shape, tucker_ranks, tt_ranks)
    return _decompose(array, lambda i, _: n[i], lambda i, _: r[i])


def from_dense_tolerance(
    array: Array,
    rtol: float,
    atol: float = 0.0,
    max_tucker_ranks: Sequence[int] | None = None,
    max_tt_ranks: Sequence[int] | None = None,
) -> T3Cores:
    """The T3-SVD of an array within ``rtol |x| + atol``, for concrete arrays only. Caps win over the tolerance.

    Args:
      array: (N_0, .., N_{d-1}), d >= 1.
      rtol: error allowed relative to the norm of the array.
      atol: error allowed besides.
      max_tucker_ranks: caps, one per mode.
      max_tt_ranks: caps, r_0 .. r_d.

    Returns:
      U with orthonormal rows; ranks are minimal and at least 1.

    Raises:
      TypeError: the array is being traced.

    Example:
      >>> [G.shape for G in from_dense_tolerance(jnp.ones((4, 5)), 1e-3).tt]
      [(1, 1, 1), (1, 1, 1)]
    """
    require_concrete("from_dense_tolerance", array)
    shape, size = array.shape, array.size
    n = cap_ranks(shape, shape if max_tucker_ranks is None else max_tucker_ranks)
    r = (size,) * (len(shape) + 1) if max_tt_ranks is None else max_tt_ranks
    allowed = split_tolerance(jnp.linalg.norm(array.reshape(-1)), rtol, atol, len(shape))
    within = in_working_precision(_decompose)
    x = within(array, lambda i, s: min(rank_within(s, allowed), n[i]), lambda i, s: min(rank_within(s, allowed), r[i]))
    return minimal_cores(x)


def _decompose(array: Array, tucker_rank: _Choice, bond: _Choice) -> T3Cores:
    tucker, core = [], array
    for i, N in enumerate(array.shape):
        vectors, values = svd(jnp.moveaxis(core, i, 0).reshape(N, -1))
        U = vectors[:, : tucker_rank(i, values)]
        core = jnp.moveaxis(jnp.tensordot(core, U, axes=(i, 0), precision="highest"), -1, i)
        tucker.append(U.T)
    return T3Cores(tuple(tucker), _train(core, bond))


def _train(core: Array, bond: _Choice) -> tuple[Array, ...]:
    tt, rest = [], core.reshape(1, -1)
    for i, k in enumerate(core.shape[:-1]):
        a, matrix = rest.shape[0], rest.reshape(rest.shape[0] * k, -1)
        vectors, values = svd(matrix)
        Q = vectors[:, : bond(i + 1, values)]
        tt.append(Q.reshape(a, k, -1))
        rest = contract("pj,pq->jq", Q, matrix)
    return (*tt, rest.reshape(-1, core.shape[-1], 1))
