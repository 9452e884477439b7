"""Frames: the orthogonal base of a tangent space, and the corewise one.

The orthogonal frame (U, O, L, R) of a T3 x comes from one sweep of QRs from the left, which gives L, and one from the
right over L, which gives R and, on its way, the centre core C_i of every mode::

    x = [U .. U ; L_0 .. L_{i-1}, C_i, R_{i+1} .. R_{d-1}]             for every i

QR of the centre on its Tucker index, ``C_i[a,k,b] = sum_m S_i[k,m] O_i[a,m,b]``, gives O_i, and with it the point
itself as a single Tucker variation, ``V^x_i = S_i^T U_i``::

    x = [U .. V^x_i .. U ; L_0 .. L_{i-1}, O_i, R_{i+1} .. R_{d-1}]    for every i

L_{d-1} and R_0 are the centres C_{d-1} and C_0, so that both trains are x. Ranks that are not minimal are reduced
first, which is exact (`minimal_cores`); so left and right bonds agree, m_i = n_i, and r_0 = r_d = 1.
"""

from t3k.kernels.checks import check_t3
from t3k.kernels.linalg import contract, in_working_precision, qr
from t3k.kernels.orthogonalize import left_orthogonalize, orthonormalize_rows, right_orthogonalize, split_tucker
from t3k.kernels.ranks import has_minimal_ranks
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import ranks_of, sum_end_bonds
from t3k.kernels.types import Array, Cores, Frame, T3Cores

__all__ = ["corewise_frame", "frame_from_left", "minimal_cores", "orthogonal_frame"]


def minimal_cores(x: T3Cores) -> T3Cores:
    """The same tensor with minimal ranks (`t3k.kernels.ranks.minimal_ranks`); exact, since shapes alone decide.

    Args:
      x: U (k, o) and G (a, k, b) each, of any ranks.

    Returns:
      Cores of minimal ranks, with end bonds of 1; those of x itself if they are so already.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> ranks_of(minimal_cores(zeros_cores((3, 4), (9, 9), (2, 9, 2))))
      ((3, 4), (3, 3), (1, 3, 1))
    """
    x = sum_end_bonds(x)
    return x if has_minimal_ranks(*ranks_of(x)) else _reduced(x)


@in_working_precision
def _reduced(x: T3Cores) -> T3Cores:
    tucker, tt = orthonormalize_rows(*x)
    tt = right_orthogonalize(left_orthogonalize(tt).cores).cores
    _, cores = sweep_cores(_tucker_rank_step, (), list(zip(tucker, tt, strict=True)))
    return T3Cores(tuple(U for U, _ in cores), tuple(G for _, G in cores))


def _tucker_rank_step(carry: tuple[()], item: tuple[Array, Array]) -> tuple[tuple[()], tuple[Array, Array]]:
    """n becomes min(n, a b): QR of the matrix (k, a b), of which the Tucker core takes Q."""
    U, G = item
    a, k, b = G.shape
    if k <= a * b:
        return carry, (U, G)
    Q, R = qr(G.swapaxes(0, 1).reshape(k, a * b))
    return carry, (contract("kl,ko->lo", Q, U), R.reshape(-1, a, b).swapaxes(0, 1))


@in_working_precision
def orthogonal_frame(x: T3Cores) -> tuple[Frame, tuple[Array, ...]]:
    """The orthogonal frame at x, and x itself as a Tucker variation in it.

    Args:
      x: U (k, o) and G (a, k, b) each. Zeros and rank deficiency are fine: the frame is orthonormal all the same.

    Returns:
      The frame, of the minimal ranks below those of x; and V^x_i (m, o) for every mode, each of which alone
      represents x.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> [L.shape for L in frame.left], [V.shape for V in point]
      ([(1, 2, 2), (2, 2, 1)], [(2, 4), (2, 5)])
    """
    up, tt = orthonormalize_rows(*minimal_cores(x))
    return frame_from_left(T3Cores(up, left_orthogonalize(tt).cores))


def frame_from_left(x: T3Cores) -> tuple[Frame, tuple[Array, ...]]:
    """The orthogonal frame at a T3 whose cores are orthogonal already, the TT cores from the left.

    Args:
      x: U (k, o) with orthonormal rows, G (a, k, b) left orthogonal but for the last one, with minimal bonds.

    Returns:
      As from `orthogonal_frame`, with U and L the cores of x; where n_i is above r_i r_{i+1}, m_i is less than n_i.

    Example:
      >>> import jax.numpy as jnp
      >>> frame, point = frame_from_left(T3Cores((jnp.eye(2),), (jnp.ones((1, 2, 1)),)))
      >>> frame.down[0].shape
      (1, 1, 1)
    """
    right = right_orthogonalize(x.tt)
    _, outputs = sweep_cores(_down_step, (), list(zip(x.tucker, right.centres, strict=True)))
    down, point = tuple(O for O, _ in outputs), tuple(V for _, V in outputs)
    return Frame(x.tucker, down, x.tt, right.cores), point


def _down_step(carry: tuple[()], item: tuple[Array, Array]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, centre = item
    O, S = split_tucker(centre)
    return carry, (O, contract("mk,ko->mo", S, U))


def corewise_frame(x: T3Cores) -> tuple[Frame, Cores]:
    """The frame (U, G, G, G), in which variations are changes of the cores of x, and x as a Tucker variation.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      The frame, and V^x_i = U_i, as from `orthogonal_frame`.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> x = zeros_cores((4, 5), (2, 2), (1, 2, 1))
      >>> corewise_frame(x)[0].left is x.tt
      True
    """
    check_t3(*x)
    return Frame(x.tucker, x.tt, x.tt, x.tt), x.tucker
