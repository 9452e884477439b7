"""Tangents as Tucker tensor trains, and the orthogonal projection of tensors on a tangent space.

A tangent with coordinates (V, H) in the frame (U, O, L, R) is a T3 of doubled ranks. Its Tucker cores are [U; V], and
its TT cores are block matrices in their bonds, whose state says whether the variation has happened yet ::

    U slice:  [ L  H ]        V slice:  [ 0  O ]        first core: upper row only
              [ 0  R ]                  [ 0  0 ]        last core:  right column only

The point itself, the train L, is added by ``H + L`` in the last core.

The projection of y has the coordinates in the gauge of ::

    H_i = U_i and the interfaces L_0..L_{i-1}, R_{i+1}..R_{d-1} contracted with y,      V_i = the same with O_i

because the terms of a gauged tangent are orthogonal to each other and have orthonormal factors. For a T3 y, the
interfaces meet y in two sweeps, ``P_{i+1} = L_i P_i B_i (U_i Y_i^T)`` and the like from the right with R, where (Y, B)
are the cores of y.
"""

import jax.numpy as jnp

from t3k.kernels.checks import check_frame, check_t3, check_variations
from t3k.kernels.gauge import orthogonal_gauge
from t3k.kernels.linalg import contract
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Array, Frame, T3Cores, Variations, as_tuple, like_train

__all__ = ["project_dense", "project_t3", "tangent_to_t3", "transport"]


def tangent_to_t3(frame: Frame, v: Variations, *, include_point: bool = False) -> T3Cores:
    """The tangent v, or the point plus v, as a T3 of doubled ranks.

    Args:
      frame: (up, down, left, right), orthogonal or corewise.
      v: V (m, o) and H (a, k, b) each, gauged or not.
      include_point: add the base point of the frame.

    Returns:
      Cores [U; V] (k + m, o) and (a + A, k + m, b + B), with the left bonds of L (a) and of R (A) side by side.

    Example:
      >>> import jax.numpy as jnp
      >>> U, G = 2 * (jnp.ones((2, 4)),), (jnp.ones((1, 2, 3)), jnp.ones((3, 2, 1)))
      >>> x = tangent_to_t3(Frame(U, G, G, G), Variations(U, G))
      >>> [G.shape for G in x.tt]
      [(1, 4, 6), (6, 4, 1)]
    """
    check_variations(*v, frame)
    tt = as_tuple(v.tt)
    if include_point:
        tt = (*tt[:-1], tt[-1] + frame.left[-1])
    _, cores = sweep_cores(_block_step, (), list(zip(frame.up, *frame[1:], v.tucker, tt, strict=True)))
    blocks = [G for _, G in cores]
    blocks[0] = blocks[0][: frame.left[0].shape[0]]
    blocks[-1] = blocks[-1][:, :, frame.left[-1].shape[2] :]
    return T3Cores(tuple(U for U, _ in cores), tuple(blocks))


def _block_step(carry: tuple[()], item: tuple[Array, ...]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, O, L, R, V, H = item
    (a, k, b), (A, m, B) = L.shape, (R.shape[0], O.shape[1], R.shape[2])
    core = jnp.zeros((a + A, k + m, b + B), L.dtype)
    core = core.at[:a, :k, :b].set(L).at[:a, :k, b:].set(H).at[a:, :k, b:].set(R).at[:a, k:, b:].set(O)
    return carry, (jnp.concatenate([U, V]), core)


def project_t3(frame: Frame, y: T3Cores) -> Variations:
    """The orthogonal projection of a T3 on the tangent space.

    Args:
      frame: an orthogonal frame.
      y: Y (K, o) and B (e, K, f) each, of any ranks and end bonds.

    Returns:
      Gauged coordinates of the nearest tangent to y.

    Example:
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import zeros_cores
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> [V.shape for V in project_t3(frame, zeros_cores((4, 5), (3, 3), (1, 3, 1))).tucker]
      [(2, 4), (2, 5)]
    """
    check_frame(*frame)
    check_t3(*y)
    left, right = _interfaces(frame, y)
    _, modes = sweep_cores(_meet_step, (), list(zip(frame.up, frame.down, left, right, *y, strict=True)))
    tucker, tt = tuple(V for V, _ in modes), tuple(H for _, H in modes)
    return orthogonal_gauge(frame, Variations(like_train(tucker, frame.up), like_train(tt, frame.left)))


def _interfaces(frame: Frame, y: T3Cores) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """P_i (a, e), what lies left of core i of the frame and of y contracted with each other; (b, f) on the right."""
    start = jnp.ones((frame.left[0].shape[0], y.tt[0].shape[0]), y.tt[0].dtype)
    _, left = sweep_cores(_left_step, start, list(zip(frame.left, frame.up, *y, strict=True)))
    end = jnp.ones((frame.right[-1].shape[2], y.tt[-1].shape[2]), y.tt[0].dtype)
    _, right = sweep_cores(_right_step, end, list(zip(frame.right, frame.up, *y, strict=True)), reverse=True)
    return left, right


def _left_step(P: Array, item: tuple[Array, ...]) -> tuple[Array, Array]:
    L, U, Y, B = item
    return contract("ae,akb,kK,eKf->bf", P, L, contract("ko,Ko->kK", U, Y), B), P


def _right_step(Q: Array, item: tuple[Array, ...]) -> tuple[Array, Array]:
    R, U, Y, B = item
    return contract("bf,akb,kK,eKf->ae", Q, R, contract("ko,Ko->kK", U, Y), B), Q


def _meet_step(carry: tuple[()], item: tuple[Array, ...]) -> tuple[tuple[()], tuple[Array, Array]]:
    U, O, P, Q, Y, B = item
    core = contract("ae,eKf,bf->aKb", P, B, Q)
    V = contract("amb,aKb,Ko->mo", O, core, Y)
    return carry, (V, contract("aKb,Ko,ko->akb", core, Y, U))


def project_dense(frame: Frame, array: Array) -> Variations:
    """The orthogonal projection of a dense tensor on the tangent space.

    Args:
      frame: an orthogonal frame.
      array: (N_0, .., N_{d-1}).

    Returns:
      Gauged coordinates of the nearest tangent to the array.

    Example:
      >>> import jax.numpy as jnp
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import zeros_cores
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> [V.shape for V in project_dense(frame, jnp.ones((4, 5), jnp.float32)).tucker]
      [(2, 4), (2, 5)]
    """
    d = check_frame(*frame)
    rest, tucker, tt = array.reshape(1, -1), [], []
    for i in range(d):
        U, L, O = frame.up[i], frame.left[i], frame.down[i]
        rest = rest.reshape(L.shape[0], U.shape[1], -1)
        block = contract("aop,bp->aob", rest, _right_interface(frame, i))
        tucker.append(contract("aob,amb->mo", block, O))
        tt.append(contract("aob,ko->akb", block, U))
        rest = contract("aop,akb,ko->bp", rest, L, U)
    v = Variations(like_train(tuple(tucker), frame.up), like_train(tuple(tt), frame.left))
    return orthogonal_gauge(frame, v)


def _right_interface(frame: Frame, i: int) -> Array:
    """The cores right of core i as a matrix (b, N_{i+1} .. N_{d-1})."""
    matrix = jnp.ones((1, 1), frame.right[-1].dtype)
    for U, R in reversed(list(zip(frame.up[i + 1 :], frame.right[i + 1 :], strict=True))):
        matrix = contract("akb,ko,bp->aop", R, U, matrix).reshape(R.shape[0], -1)
    return matrix


def transport(frame_from: Frame, v: Variations, frame_to: Frame) -> Variations:
    """Carries a tangent to another tangent space by orthogonal projection.

    Args:
      frame_from: the frame of v.
      v: V (m, o) and H (a, k, b) each.
      frame_to: an orthogonal frame at another point of the same shape.

    Returns:
      Gauged coordinates in `frame_to`.

    Example:
      >>> from t3k.kernels.frames import orthogonal_frame
      >>> from t3k.kernels.t3 import zeros_cores
      >>> from t3k.kernels.variations import zero_variations
      >>> frame, point = orthogonal_frame(zeros_cores((4, 5), (2, 2), (1, 2, 1)))
      >>> [V.shape for V in transport(frame, zero_variations(frame), frame).tucker]
      [(2, 4), (2, 5)]
    """
    return project_t3(frame_to, tangent_to_t3(frame_from, v))
