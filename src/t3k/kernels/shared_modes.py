"""T3s whose modes share Tucker cores: groups of modes i with one core U, as symmetric tensors have.

They are the tensors of a submanifold. A change dU of the core of a group changes the tensor by the Tucker variations
``V_i = S_i dU`` at all its modes at once, where S_i is the Tucker factor of the centre core, ``C_i[a,k,b] = sum_m
S_i[m,k] O_i[a,m,b]``. So a gauged tangent is in the tangent space when its V_i, one above the other, are in the range
of the S_i, one above the other, and with a QR of these the projection is ::

    [S_i]  =  Q R                  [V_i]  <-  Q Q^T [V_i]

TT variations are free. The retraction truncates the point plus the tangent with one basis for a group, from the
unfoldings of all its modes side by side (`t3k.kernels.truncation.project_to_ranks`).
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from t3k.kernels.frames import frame_from_left
from t3k.kernels.linalg import contract, in_working_precision, qr
from t3k.kernels.ranks import n_parameters
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import ranks_of
from t3k.kernels.truncation import project_to_ranks
from t3k.kernels.types import Array, Cores, Frame, T3Cores, Variations, like_train

__all__ = ["Groups", "largest_in_groups", "round_shared", "shared_dimension", "shared_frame", "tie"]

#: Sets of modes, each with one Tucker core in common; modes that are in none are by themselves.
Groups = tuple[tuple[int, ...], ...]


def largest_in_groups(ranks: Sequence[int], groups: Groups) -> list[int]:
    """For each mode, the largest Tucker rank of its group."""
    largest = [int(n) for n in ranks]
    for group in groups:
        for i in group:
            largest[i] = max(int(ranks[j]) for j in group)
    return largest


def round_shared(x: T3Cores, groups: Groups, tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> T3Cores:
    """A T3 near x whose modes share Tucker cores: x itself if it is one, and the ranks suffice.

    Args:
      x: U (k, o) and G (a, k, b) each.
      groups: static.
      tucker_ranks: one per mode; static. A group gets the largest of its modes.
      tt_ranks: r_0 .. r_d; static, the ends are taken as 1.

    Returns:
      U with orthonormal rows, the same within a group; G left orthogonal but for the last one.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> y = round_shared(constant_cores((3, 3), 1.0), ((0, 1),), (1, 1), (1, 1, 1))
      >>> bool((y.tucker[0] == y.tucker[1]).all())
      True
    """
    return project_to_ranks(x, largest_in_groups(tucker_ranks, groups), tt_ranks, groups)


def shared_frame(x: T3Cores, groups: Groups) -> tuple[Frame, Cores]:
    """The orthogonal frame at x, with the Tucker cores that its groups share, and x as a Tucker variation in it.

    Args:
      x: U (k, o) and G (a, k, b) each; where its groups do not share cores, the frame is at `round_shared` of x.
      groups: static.

    Returns:
      The frame, and V^x_i (m, o), as from `t3k.kernels.frames.orthogonal_frame`.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> shared_frame(constant_cores((3, 3), 1.0), ((0, 1),))[0].up[0].shape
      (1, 3)
    """
    _, n, r = ranks_of(x)
    return _frame(x, groups, n, r)


@in_working_precision
def _frame(x: T3Cores, groups: Groups, n: Sequence[int], r: Sequence[int]) -> tuple[Frame, Cores]:
    return frame_from_left(round_shared(x, groups, n, r))


def tie(frame: Frame, v: Variations, groups: Groups) -> Variations:
    """The orthogonal projection of a gauged tangent on those that keep the Tucker cores of groups the same.

    Args:
      frame: an orthogonal frame with shared Tucker cores.
      v: V (m, o) and H (a, k, b) each, gauged.
      groups: static.

    Returns:
      Gauged coordinates.

    Example:
      >>> from t3k.kernels.t3 import constant_cores
      >>> frame, point = shared_frame(constant_cores((3, 3), 1.0), ((0, 1),))
      >>> v = Variations((jnp.ones((1, 3)), -jnp.ones((1, 3))), frame.left)
      >>> [bool(abs(V).max() < 1e-6) for V in tie(frame, v, ((0, 1),)).tucker]
      [True, True]
    """
    start = jnp.ones((1, 1), frame.left[0].dtype)
    _, factors = sweep_cores(_factor_step, start, list(zip(frame.down, frame.left, frame.right, strict=True)))
    tucker = list(v.tucker)
    for group in groups:
        Q, _ = qr(jnp.concatenate([factors[i] for i in group]))
        projected = contract("pj,qj,qo->po", Q, Q, jnp.concatenate([tucker[i] for i in group]))
        stops = np.cumsum([tucker[i].shape[0] for i in group])[:-1]
        for i, V in zip(group, jnp.split(projected, stops), strict=True):
            tucker[i] = V
    return Variations(like_train(tuple(tucker), v.tucker), v.tt)


def _factor_step(X: Array, item: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """S_i (m, k) of the centre ``C_i = X R_i``; and what comes before R_{i+1}."""
    O, L, R = item
    centre = contract("ca,akb->ckb", X, R)
    return contract("akb,akc->bc", L, centre), contract("amb,akb->mk", O, centre)


def shared_dimension(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], groups: Groups) -> int:
    """The dimension of the manifold of T3s with shared Tucker cores, of ranks that none of the groups can do without.

    Args:
      shape: mode sizes N_i.
      tucker_ranks: n_i, the same within a group.
      tt_ranks: r_0 .. r_d.
      groups: of modes.

    Returns:
      The parameters, with the Tucker core of a group counted once, less the freedoms of gauge.

    Example:
      >>> shared_dimension((3, 3), (2, 2), (1, 2, 1), ((0, 1),))  # 3 x 3 matrices with one row and column space
      6
    """
    repeated = [i for group in groups for i in group[1:]]
    total = n_parameters(shape, tucker_ranks, tt_ranks) - sum(tucker_ranks[i] * shape[i] for i in repeated)
    gauge = sum(n * n for i, n in enumerate(tucker_ranks) if i not in repeated)
    return total - gauge - sum(r * r for r in tt_ranks[1:-1])
