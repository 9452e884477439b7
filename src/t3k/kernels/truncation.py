"""Rounding of a T3 to lower ranks (T3-SVD), jittable and differentiable.

First every mode: U_i (k, o) is replaced by the n' dominant left singular vectors of the mode-i unfolding, B_i (l, o),
and ``G_i <- G_i x_k (U_i B_i^T)`` (higher-order SVD). Then every bond from left to right: with T what the cores before
have left, ``C = T G_i`` as a matrix (a k, b) and W^T the right factor of the rest of the train (from a sweep of QRs),
Q is the r' dominant left singular vectors of ``C W``; it becomes core i, and ``T = Q^T C`` goes on.

Each of these 2d - 1 steps is an orthogonal projection that loses no more than the singular values of the same unfolding
of x that are cut off, so that (De Lathauwer, De Moor, Vandewalle 2000; Oseledets 2011) ::

    |x - x'|^2  <=  sum over unfoldings of the discarded sigma_j(x)^2  <=  (2d - 1) |x - best|^2

The isometries are computed by QR and SVD without derivative; `t3k.kernels.subspaces` gives them one, which needs the
Gram matrices of the rest of the train: polynomials of the cores, that XLA drops when nothing is differentiated. Only
first derivatives are right.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from t3k.kernels.frames import minimal_cores
from t3k.kernels.grams import left_grams, right_grams
from t3k.kernels.linalg import contract, in_working_precision, svd
from t3k.kernels.orthogonalize import left_orthogonalize, orthonormalize_rows, right_orthogonalize
from t3k.kernels.ranks import cap_ranks, minimal_ranks
from t3k.kernels.spectra import rank_within, require_concrete, singular_values, split_tolerance
from t3k.kernels.subspaces import subspace
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import ranks_of, sum_end_bonds
from t3k.kernels.types import Array, T3Cores

__all__ = ["project_to_ranks", "truncate", "truncate_tolerance"]


@in_working_precision
def truncate(x: T3Cores, tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> T3Cores:
    """A T3 of given ranks near x: exact if they suffice, else within sqrt(2d - 1) of the best.

    Args:
      x: U (k, o) and G (a, k, b) each.
      tucker_ranks: the largest Tucker ranks wanted, one per mode; static.
      tt_ranks: the largest bonds wanted, r_0 .. r_d; static. The end bonds of the result are 1.

    Returns:
      U with orthonormal rows, G left orthogonal but for the last one. The ranks are the minimal ones below those
      wanted and those of x.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> ranks_of(truncate(zeros_cores((4, 5), (3, 3), (1, 3, 1)), (2, 9), (1, 9, 1)))
      ((4, 5), (2, 2), (1, 2, 1))
    """
    shape, n, r = ranks_of(x)
    n, r = minimal_ranks(shape, cap_ranks(tucker_ranks, n), cap_ranks((1, *tt_ranks[1:-1], 1), (1, *r[1:-1], 1)))
    return project_to_ranks(x, n, r)


def truncate_tolerance(
    x: T3Cores,
    rtol: float,
    atol: float = 0.0,
    max_tucker_ranks: Sequence[int] | None = None,
    max_tt_ranks: Sequence[int] | None = None,
) -> T3Cores:
    """A T3 of low ranks within ``rtol |x| + atol`` of x in the Hilbert-Schmidt norm.

    The square of the tolerance is split evenly over the 2d - 1 truncations. Ranks depend on values, so this is for
    concrete arrays only. Caps win over the tolerance.

    Args:
      x: U (k, o) and G (a, k, b) each.
      rtol: error allowed relative to the norm of x.
      atol: error allowed besides.
      max_tucker_ranks: caps, one per mode.
      max_tt_ranks: caps, r_0 .. r_d.

    Returns:
      U with orthonormal rows; ranks are minimal and at least 1.

    Raises:
      TypeError: x is being traced.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> ranks_of(truncate_tolerance(zeros_cores((4, 5), (3, 3), (1, 3, 1)), 1e-3))
      ((4, 5), (1, 1), (1, 1, 1))
    """
    require_concrete("truncate_tolerance", x)
    tucker, tt = _singular_values(x)
    allowed = split_tolerance(tt[0][0], rtol, atol, len(tucker))
    n = tuple(rank_within(values, allowed) for values in tucker)
    r = tuple(rank_within(values, allowed) for values in tt)
    n = cap_ranks(n, n if max_tucker_ranks is None else max_tucker_ranks)
    r = cap_ranks(r, r if max_tt_ranks is None else (1, *max_tt_ranks[1:-1], 1))
    return _minimal_cores(_project_to_ranks(x, n, r))


@in_working_precision
def project_to_ranks(
    x: T3Cores, tucker_ranks: Sequence[int], tt_ranks: Sequence[int], groups: Sequence[Sequence[int]] = ()
) -> T3Cores:
    """`truncate` to ranks that need not be minimal: each is only cut to what there is when its turn comes.

    Args:
      x: U (k, o) and G (a, k, b) each.
      tucker_ranks: one per mode, the same in all modes of a group; static.
      tt_ranks: r_0 .. r_d; static, the ends are taken as 1.
      groups: sets of modes of equal size that get one Tucker core in common: the dominant left singular vectors of
        their unfoldings side by side; static.

    Returns:
      U with orthonormal rows, G left orthogonal but for the last one.

    Example:
      >>> from t3k.kernels.t3 import zeros_cores
      >>> ranks_of(project_to_ranks(zeros_cores((4, 5), (3, 3), (1, 3, 1)), (2, 3), (1, 9, 1)))
      ((4, 5), (2, 3), (1, 2, 1))
    """
    x = sum_end_bonds(x)
    bases = _tucker_bases(x, tucker_ranks, groups)
    _, tt = sweep_cores(_change_basis, (), list(zip(x.tucker, x.tt, bases, strict=True)))
    return T3Cores(bases, _round_train(tt, tt_ranks))


# Run eagerly, `truncate_tolerance` would compile each of their operations by itself.
_singular_values = jax.jit(singular_values)
_project_to_ranks = jax.jit(project_to_ranks, static_argnums=(1, 2))
_minimal_cores = jax.jit(minimal_cores)


def _change_basis(carry: tuple[()], item: tuple[Array, Array, Array]) -> tuple[tuple[()], Array]:
    U, G, B = item
    return carry, contract("akb,km->amb", G, contract("ko,mo->km", U, B))


def _tucker_bases(x: T3Cores, tucker_ranks: Sequence[int], groups: Sequence[Sequence[int]]) -> tuple[Array, ...]:
    """B_i (m, o): orthonormal rows that span the dominant subspace of every mode, or of every group of modes."""
    rows, tt = orthonormalize_rows(*jax.lax.stop_gradient(x))
    centres = right_orthogonalize(left_orthogonalize(tt).cores).centres
    _, metrics = sweep_cores(_metric_step, (), tuple(x.tucker))
    left, right = left_grams(x.tt, metrics), right_grams(x.tt, metrics)
    ranks = [jnp.zeros((int(n), 0)) for n in tucker_ranks]
    modes = list(zip(rows, centres, *x, left, right, ranks, strict=True))
    alone = [i for i in range(len(modes)) if not any(i in group for group in groups)]
    bases = dict(zip(alone, sweep_cores(_basis_step, (), [modes[i] for i in alone])[1], strict=True))
    for group in groups:
        bases |= dict.fromkeys(group, _shared_basis([modes[i] for i in group]))
    return tuple(bases[i] for i in range(len(modes)))


def _metric_step(carry: tuple[()], U: Array) -> tuple[tuple[()], Array]:
    return carry, contract("ko,lo->kl", U, U)


def _basis_step(carry: tuple[()], item: tuple[Array, ...]) -> tuple[tuple[()], Array]:
    vectors, values = _dominant(item)
    return carry, _basis([item], vectors, values)


def _shared_basis(items: list[tuple[Array, ...]]) -> Array:
    """The basis of modes whose unfoldings are put side by side."""
    spectra = [_dominant(item) for item in items]
    return _basis(items, *svd(jnp.concatenate([vectors * values[None] for vectors, values in spectra], axis=1)))


def _dominant(item: tuple[Array, ...]) -> tuple[Array, Array]:
    """Left singular vectors (o, j) and values of the unfolding of one mode."""
    rows, centre, *_ = item
    vectors, values = svd(centre.swapaxes(0, 1).reshape(centre.shape[1], -1))
    return contract("ko,kj->oj", rows, vectors), values


def _basis(items: list[tuple[Array, ...]], vectors: Array, values: Array) -> Array:
    n = min(items[0][-1].shape[0], len(values))
    product = sum(_gram_product(item, vectors[:, :n]) for item in items)
    return subspace(vectors[:, :n], vectors[:, n:], values[:n], values[n:], jnp.asarray(product)).T


def _gram_product(item: tuple[Array, ...], Q: Array) -> Array:
    """The Gram matrix of the unfolding of one mode times Q (o, j)."""
    _, _, U, G, left, right, _ = item
    product = contract("akb,ko,oj->ajb", G, U, Q)
    product = contract("akb,ac,bd,cjd->kj", G, left, right, product)
    return contract("ko,kj->oj", U, product)


def _round_train(tt: tuple[Array, ...], tt_ranks: Sequence[int]) -> tuple[Array, ...]:
    """The TT cores with truncated bonds, left orthogonal but for the last; Tucker rows are orthonormal."""
    factors = right_orthogonalize(jax.lax.stop_gradient(tt)).factors
    *items, (last, _, _) = zip(tt, factors, right_grams(tt), strict=True)
    ranks, bond = [], 1
    for (G, W, _), rank in zip(items, tt_ranks[1:-1], strict=True):
        following = min(int(rank), bond * G.shape[1], W.shape[1])
        ranks.append(jnp.zeros((bond, following, 0)))
        bond = following
    with_ranks = [(*item, rank) for item, rank in zip(items, ranks, strict=True)]
    T, cores = sweep_cores(_round_step, jnp.ones((1, 1), last.dtype), with_ranks)
    return (*cores, contract("ca,akb->ckb", T, last))


def _round_step(T: Array, item: tuple[Array, ...]) -> tuple[Array, Array]:
    G, W, gram, rank = item
    C = contract("ca,akb->ckb", T, G)
    c, k, b = C.shape
    vectors, values = svd(jax.lax.stop_gradient(contract("ckb,bj->ckj", C, W).reshape(c * k, -1)))
    C, r = C.reshape(c * k, b), rank.shape[1]
    product = contract("pb,bd,qd,qj->pj", C, gram, C, vectors[:, :r])
    Q = subspace(vectors[:, :r], vectors[:, r:], values[:r], values[r:], product)
    return contract("pj,pb->jb", Q, C), Q.reshape(c, k, r)
