"""Jets: truncated polynomials in the step s of a perturbed probe X + s P, and their products.

A jet is a tuple of arrays ``(rank, w)``, one per order t = 0, 1, ..., with the probe axis w last. In the fast path
entry t is the t-th **Taylor coefficient** (the t-th derivative divided by t!), so that the product of two jets is the
plain product of polynomials. Public arrays hold **derivatives**; their product carries the binomials
``trs[t, r, s] = C(t, r) if r + s == t``. Every product here takes an optional `trs`, and leaves it out for Taylor
coefficients.

A jet is as long as its degree makes it: an edge variable that has passed p cores is a polynomial of degree p, so it
has ``min(p, K) + 1`` coefficients, and the empty jet is zero. An **adjoint** jet has the length of the variable that
it belongs to, in the same order, and `correlate` is the transpose of `multiply`::

    multiply:  y_t = sum_{r+s=t} lift(x_r, u_s)       correlate:  x~_r = sum_t lift(y~_t, u_{t-r})

Numbering the orders of adjoint jets backwards would turn the second into the first; both are kept, because true
lengths save more than a shared loop does.

`lift` combines the two indices of a pair of jets into one row axis, ready for a matrix product with a core.
"""

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from t3k.kernels.constants import filled_like
from t3k.kernels.types import Array, Jet

__all__ = [
    "add_and_store",
    "add_jets",
    "binomial_combine_tensor",
    "correlate",
    "from_derivatives",
    "jet_to_array",
    "lift",
    "multiply",
    "pad_jet",
    "scale_orders",
    "taylor_scales",
    "total",
    "transform",
    "transform_pair",
    "transposed",
]


def binomial_combine_tensor(order: int) -> np.ndarray:
    """The product rule as a tensor: ``trs[t, r, s] = C(t, r)`` if r + s == t, else 0.

    Args:
      order: the highest derivative order K >= 0.

    Returns:
      Exact integers, int64, shape ``(K+1, K+1, K+1)``.

    Example:
      >>> binomial_combine_tensor(2)[2]
      array([[0, 0, 1],
             [0, 2, 0],
             [1, 0, 0]])
    """
    trs = np.zeros((order + 1,) * 3, dtype=np.int64)
    for t in range(order + 1):
        for r in range(t + 1):
            trs[t, r, t - r] = math.comb(t, r)
    return trs


#: The orders of a jet, and with them the products that each of its coefficients is in, beyond which it is stored.
_MANY_USES = 4

# Written in `jax.lax`, these are traced two to three times faster; they are most of what is traced.


def transposed(x: Array) -> Array:
    """The transpose of a matrix as an array of its own, made by a product with the identity.

    The compiler takes a plain transpose into the loops that use it. There it is read across its rows, once for each
    entry of a lifted jet, and these loops take up to three times as long.
    """
    eye = jnp.eye(x.shape[1], dtype=x.dtype)
    return lax.dot_general(eye, x, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)


def lift(x: Array, u: Array) -> Array:
    """The outer product over each probe, ``(a, w), (k, w) -> (a k, w)``."""
    (a, w), k = x.shape, u.shape[0]
    rows, columns = lax.broadcast_in_dim(x, (a, k, w), (0, 2)), lax.broadcast_in_dim(u, (a, k, w), (1, 2))
    return lax.reshape(lax.mul(rows, columns), (a * k, w))


def _weighted(term: Array, trs: Any, t: int, r: int, s: int) -> Array:
    if trs is None or (isinstance(trs, np.ndarray) and trs[t, r, s] == 1):
        return term
    return term * jnp.asarray(trs[t, r, s], term.dtype)


def total(terms: Iterable[Array]) -> Array:
    """The sum of one array or more, of the same shape and dtype."""
    return reduce(lax.add, terms)


def multiply(x: Jet, u: Jet, length: int, trs: Any = None) -> Jet:
    """The product ``x * u`` of jets ``(a, w)`` and ``(k, w)``, lifted: up to `length` arrays ``(a k, w)``."""
    if not x or not u:
        return ()
    return tuple(
        total(
            [
                _weighted(lift(x[r], u[t - r]), trs, t, r, t - r)
                for r in range(max(0, t - len(u) + 1), min(t, len(x) - 1) + 1)
            ]
        )
        for t in range(min(length, len(x) + len(u) - 1))
    )


def correlate(y: Jet, u: Jet, length: int, trs: Any = None, *, swap: bool = False) -> Jet:
    """The transpose of `multiply` with the jet u: from the adjoint y of ``x * u`` to that of x, lifted.

    Args:
      y: adjoint jet, arrays ``(a, w)``.
      u: the other factor, arrays ``(k, w)``.
      length: of the jet x.
      trs: binomials, for derivatives.
      swap: lift to ``(k a, w)`` instead of ``(a k, w)``.
    """

    def term(t: int, r: int) -> Array:
        pair = (u[t - r], y[t]) if swap else (y[t], u[t - r])
        return _weighted(lift(*pair), trs, t, r, t - r)

    return tuple(total([term(t, r) for t in range(r, min(len(y), r + len(u)))]) for r in range(min(length, len(y))))


def add_jets(*jets: Jet) -> Jet:
    """The sum of jets of any lengths."""
    longest = max(map(len, jets))
    return tuple(total([jet[t] for jet in jets if t < len(jet)]) for t in range(longest))


def add_and_store(*jets: Jet) -> Jet:
    """The sum of jets of any lengths, for others to multiply; see `transposed` for why it is not left to the compiler.

    From `_MANY_USES` orders on, to add the terms up in all the loops that use them takes longer than a product.
    """
    added = add_jets(*jets)
    if len(added) < _MANY_USES:
        return added
    eye = jnp.eye(added[0].shape[0], dtype=added[0].dtype)
    return tuple(lax.dot(eye, x, precision=lax.Precision.HIGHEST) for x in added)


def transform(matrix: Array, jet: Jet) -> Jet:
    """Applies a matrix ``(row, column)`` to every coefficient ``(column, w)``."""
    return tuple(lax.dot(matrix, x) for x in jet)


def transform_pair(matrix: Array, rows: int, jet: Jet) -> tuple[Jet, Jet]:
    """Applies two matrices, one above the other: the first has so many `rows`."""
    products = transform(matrix, jet)
    return tuple(x[:rows] for x in products), tuple(x[rows:] for x in products)


def pad_jet(jet: Jet, length: int, shape: tuple[int, int], like: Array) -> Jet:
    """The jet with zero coefficients `shape` up to `length`; `like` gives their dtype."""
    return jet + tuple(filled_like(like, 0, shape) for _ in range(length - len(jet)))


def taylor_scales(length: int) -> tuple[float, ...]:
    """The derivatives of a Taylor series divided by its coefficients: t! for each order."""
    return tuple(float(math.factorial(t)) for t in range(length))


def scale_orders(jet: Jet, scales: tuple[float, ...]) -> Jet:
    """Multiplies each order by its scale (1 costs nothing)."""
    return tuple(x if scale == 1 else x * scale for x, scale in zip(jet, scales, strict=False))


def from_derivatives(jets: Array) -> Jet:
    """The orders of an array ``(t, w, rank)`` as a tuple of arrays ``(rank, w)``, without any scaling."""
    return tuple(transposed(x) for x in jets)


def jet_to_array(jet: Jet, order: int, shape: tuple[int, int], like: Array) -> Array:
    """The inverse of `from_derivatives`: an array ``(order+1, w, rank)``, zero in the orders that `jet` lacks."""
    return jnp.stack([x.T for x in pad_jet(jet, order + 1, shape, like)])
