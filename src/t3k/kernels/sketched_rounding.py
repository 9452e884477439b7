"""Randomized rounding of a sum of products of T3s in one pass, without the cores of the sum or of the products.

The train of a sum is block diagonal and that of a Hadamard product is a Kronecker product, so with s the term and f
the factors of a term, all that lies right of a bond is a tensor R with one bond b_f of each factor. Rounding needs of
it only its product with a few random vectors l, and rank-one vectors, ``omega_i[o,l]`` in each mode, pass from core to
core at little cost (a sweep from the right)::

    R_i[s, a_f.., l]  =  sum  prod_f (G_f U_f)[s, a_f, o, b_f]  omega_i[o,l]  R_{i+1}[s, b_f.., l]

Then a sweep from the left, which carries ``C[s, c, a_f..]``, all that lies left in the orthonormal basis c found so
far, makes of each core a small sketch, whose range gives the Tucker basis B and the next orthonormal core Q::

    S[c,o,l]  =  sum  C prod_f (G_f U_f)[.., o, ..] R_{i+1}        S  =  Q B  up to what was not sketched

With a few more vectors than ranks, what is lost is nearly what the best truncation loses, with high probability; the
train that comes out is then truncated to the ranks wanted.

References:
  H. Al Daas, G. Ballard, P. Cazeaux, E. Hallman, A. Miedlar, M. Pasha, T. W. Reid, A. K. Saibaba, "Randomized
  algorithms for rounding in the tensor-train format", SIAM J. Sci. Comput. 45 (2023), section 3.2 (orthogonalize
  after a sketch from the right; sums). C. Camano, E. N. Epperly, J. A. Tropp, "Successive randomized compression"
  (2025), for sketches of products by rank-one vectors.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.linalg import contract, in_working_precision, normal_like, qr, svd
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import sum_end_bonds
from t3k.kernels.truncation import truncate
from t3k.kernels.types import Array, T3Cores, as_tuple

__all__ = ["OVERSAMPLE", "hadamard_rounded", "round_products"]

#: How many random vectors more than the ranks wanted.
OVERSAMPLE = 8

#: One mode of all groups: for each factor of each group, U (s, k, o) and G (s, a, k, b).
_Item = tuple[tuple[tuple[Array, Array], ...], ...]


class _Sizes(NamedTuple):
    """Of the sketched train, mode by mode: Tucker ranks, bonds found from the left, vectors used at each bond."""

    tucker: tuple[int, ...]
    bonds: tuple[int, ...]
    vectors: tuple[int, ...]


@in_working_precision
def round_products(
    groups: Sequence[Sequence[T3Cores]],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    key: Array,
    *,
    oversample: int = OVERSAMPLE,
) -> T3Cores:
    """A T3 of given ranks near ``sum over groups and terms of the Hadamard product of the factors``.

    Args:
      groups: sets of terms of equal shapes. Each is given by its factors, one T3 for a plain sum, with a leading term
        axis: U (s, k, o) and G (s, a, k, b).
      tucker_ranks: the largest Tucker ranks wanted, one per mode; static.
      tt_ranks: the largest bonds wanted, r_0 .. r_d; static.
      key: from `jax.random.key`.
      oversample: random vectors more than ranks; static.

    Returns:
      U with orthonormal rows, G left orthogonal but for the last one, of the minimal ranks below those wanted.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, to_dense
      >>> x = jax.tree.map(lambda core: core[None], constant_cores((2, 3), 3.0))
      >>> y = round_products([[x, x], [x]], (1, 1), (1, 1, 1), jax.random.key(0))
      >>> to_dense(y).round(3).tolist()  # 3 * 3 + 3
      [[12.0, 12.0, 12.0], [12.0, 12.0, 12.0]]
    """
    groups = [[jax.vmap(sum_end_bonds)(factor) for factor in group] for group in groups]
    modes: list[_Item] = list(zip(*(zip(*(zip(*f, strict=True) for f in g), strict=True) for g in groups), strict=True))
    shape = [U.shape[2] for U in groups[0][0].tucker]
    sizes = _sizes(shape, tucker_ranks, tt_ranks, oversample)
    sketched = _left_sweep(modes, _right_sketches(modes, max(sizes.vectors), key), sizes)
    return truncate(sketched, tucker_ranks, tt_ranks)


def hadamard_rounded(
    x: T3Cores, y: T3Cores, tucker_ranks: Sequence[int], tt_ranks: Sequence[int], key: Array
) -> T3Cores:
    """The Hadamard product of two T3s in given ranks.

    Args:
      x: U (k, o) and G (a, k, b) each.
      y: the same modes, any ranks.
      tucker_ranks: the largest Tucker ranks wanted, one per mode; static.
      tt_ranks: the largest bonds wanted, r_0 .. r_d; static.
      key: from `jax.random.key`.

    Returns:
      As from `round_products`.

    Example:
      >>> from t3k.kernels.t3 import constant_cores, to_dense
      >>> x = constant_cores((2, 3), 3.0)
      >>> to_dense(hadamard_rounded(x, x, (1, 1), (1, 1, 1), jax.random.key(0))).round(3)[0].tolist()
      [9.0, 9.0, 9.0]
    """
    factors = [T3Cores(*jax.tree.map(lambda core: core[None], tuple(map(as_tuple, z)))) for z in (x, y)]
    return round_products([factors], tucker_ranks, tt_ranks, key)


def _sizes(shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], oversample: int) -> _Sizes:
    n, vectors = minimal_ranks(shape, [k + oversample for k in tucker_ranks], [b + oversample for b in tt_ranks])
    found, bonds = [], [1]
    for N, k, count in zip(shape, n, vectors[1:], strict=True):
        found.append(min(N, k, bonds[-1] * count))
        bonds.append(min(bonds[-1] * found[-1], count))
    return _Sizes(tuple(found), tuple(bonds), vectors)


def _spell(group: Any) -> tuple[list[Any], list[int], list[int]]:
    """Operands of an einsum over the cores of one group, with the axes of the left and right bonds of its factors.

    Axes: 0 term, 1 bond c, 2 ambient o, 3 sketch l, 4 new Tucker index, 5 new bond; then three for each factor.
    """
    operands: list[Any] = []
    for f, (U, G) in enumerate(group):
        a, k, b = (6 + 3 * f + j for j in range(3))
        operands += [G, [0, a, k, b], U, [0, k, 2]]
    count = range(len(group))
    return operands, [6 + 3 * f for f in count], [8 + 3 * f for f in count]


def _right_sketches(modes: list[_Item], count: int, key: Array) -> tuple[tuple[Array, ...], ...]:
    """R_{i+1}[s, b_f.., l] right of every core, for every group, scaled all alike."""
    like = modes[0][0][0][0]
    random = normal_like(key, [jnp.zeros((item[0][0][0].shape[2], count), like.dtype) for item in modes])
    ends = tuple(jnp.ones((group[0][0].shape[0], *(1,) * len(group), count), like.dtype) for group in modes[-1])
    return sweep_cores(_sketch_step, ends, list(zip(modes, random, strict=True)), reverse=True)[1]


def _sketch_step(R: tuple[Array, ...], item: tuple[_Item, Array]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    groups, random = item
    moved = []
    for right, group in zip(R, groups, strict=True):
        operands, a, b = _spell(group)
        moved.append(contract(*operands, random, [2, 3], right, [0, *b, 3], [0, *a, 3]))
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(r)) for r in moved]))
    scale = 1 / jnp.where(largest > 0, largest, jnp.ones_like(largest))
    return tuple(r * scale for r in moved), R


def _left_sweep(modes: list[_Item], sketches: tuple[tuple[Array, ...], ...], sizes: _Sizes) -> T3Cores:
    rights = [tuple(r[..., :count] for r in sketch) for sketch, count in zip(sketches, sizes.vectors[1:], strict=True)]
    shapes = [jnp.zeros((*cnb, 0)) for cnb in zip(sizes.bonds[:-1], sizes.tucker, sizes.bonds[1:], strict=True)]
    start = tuple(jnp.ones((g[0][0].shape[0], *(1,) * (1 + len(g))), g[0][0].dtype) for g in modes[0])
    C, cores = sweep_cores(_left_step, start, list(zip(modes[:-1], rights[:-1], shapes[:-1], strict=True)))
    B, core = _meet(C, modes[-1], rights[-1], sizes.tucker[-1])
    return T3Cores((*(B for B, _ in cores), B), (*(G for _, G in cores), core))


def _left_step(C: tuple[Array, ...], item: tuple[_Item, Any, Array]) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
    groups, rights, shape = item
    c, k, following, _ = shape.shape
    B, S = _meet(C, groups, rights, k)
    Q = qr(S.reshape(c * k, -1))[0][:, :following].reshape(c, k, following)
    carried = []
    for left, group in zip(C, groups, strict=True):
        operands, a, b = _spell(group)
        carried.append(contract(left, [0, 1, *a], *operands, B, [4, 2], Q, [1, 4, 5], [0, 5, *b]))
    return tuple(carried), (B, Q)


def _meet(C: tuple[Array, ...], groups: _Item, rights: Any, rank: int) -> tuple[Array, Array]:
    """The basis B (k, o) of the sketch of one core, and the sketch in it, (c, k, l)."""
    sketch: Any = 0
    for left, group, right in zip(C, groups, rights, strict=True):
        operands, a, b = _spell(group)
        sketch += contract(left, [0, 1, *a], *operands, right, [0, *b, 3], [1, 2, 3])
    c, o, l = sketch.shape
    B = svd(sketch.swapaxes(0, 1).reshape(o, c * l))[0][:, :rank].T
    return B, contract("col,ko->ckl", sketch, B)
