"""Slow and obvious: the tensor, its tangents and its probes through the dense array. For tests only.

Everything here is one sum written out, with none of the sweeps, jets and chunks of the real kernels.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import jax.numpy as jnp
from jax.typing import ArrayLike

from t3k.kernels.types import Array, Cores, Frame, Variations

__all__ = [
    "dense_apply",
    "dense_apply_derivatives",
    "dense_entries",
    "dense_probe",
    "dense_probe_derivatives",
    "dense_t3",
    "dense_tangent",
]


def dense_t3(tucker_cores: Cores, tt_cores: Cores) -> Array:
    """All entries of a T3, by one einsum; end bonds are summed.

    Args:
      tucker_cores: U (k, o) each.
      tt_cores: G (a, k, b) each.

    Returns:
      (N_0, .., N_{d-1}).

    Example:
      >>> dense_t3((jnp.ones((2, 3)),), (jnp.ones((1, 2, 1)),)).tolist()
      [2.0, 2.0, 2.0]
    """
    d, operands = len(tt_cores), []
    for i in range(d):  # bonds are letters 0 .. d, Tucker indices the next d, ambient ones the last d
        operands += [tt_cores[i], [i, d + 1 + i, i + 1], tucker_cores[i], [d + 1 + i, 2 * d + 1 + i]]
    return jnp.einsum(*operands, list(range(2 * d + 1, 3 * d + 1)), precision="highest")


def dense_tangent(frame: Frame, v: Variations) -> Array:
    """The tangent as the sum of its 2d terms, each a T3 with one core replaced.

    Args:
      frame: (up, down, left, right).
      v: V (m, o) and H (a, k, b) each.

    Returns:
      (N_0, .., N_{d-1}).

    Example:
      >>> U, G = (jnp.ones((1, 2)),), (jnp.ones((1, 1, 1)),)
      >>> dense_tangent(Frame(U, G, G, G), Variations(U, G)).tolist()
      [2.0, 2.0]
    """
    up, down, left, right = (tuple(train) for train in frame)
    terms = []
    for i in range(len(up)):
        terms.append(dense_t3(up, (*left[:i], v.tt[i], *right[i + 1 :])))
        terms.append(dense_t3((*up[:i], v.tucker[i], *up[i + 1 :]), (*left[:i], down[i], *right[i + 1 :])))
    return sum(terms[1:], start=terms[0])


def dense_entries(array: Array, index: Sequence[ArrayLike | list[int]]) -> Array:
    """Entries at given places.

    Args:
      array: (N_0, .., N_{d-1}).
      index: d integer arrays of one shape.

    Returns:
      An array of that shape.

    Example:
      >>> dense_entries(jnp.eye(2), ([0, 1], [0, 0])).tolist()
      [1.0, 0.0]
    """
    return array[tuple(jnp.asarray(indices) for indices in index)]


def dense_apply(array: Array, ww: Sequence[Array]) -> Array:
    """The array contracted with one vector in every mode, for every probe.

    Args:
      array: (N_0, .., N_{d-1}).
      ww: (w, o) each.

    Returns:
      (w,).

    Example:
      >>> dense_apply(jnp.eye(2), [jnp.ones((1, 2)), jnp.ones((1, 2))]).tolist()
      [2.0]
    """
    d, operands = len(ww), []
    for i in range(d):
        operands += [ww[i], [d, i]]
    return jnp.einsum(array, list(range(d)), *operands, [d], precision="highest")


def dense_apply_derivatives(array: Array, ww: Sequence[Array], pp: Sequence[Array], order: int) -> Array:
    """Derivatives by s at 0 of ``dense_apply(array, ww + s pp)``, by enumeration as in `dense_probe_derivatives`.

    Entries and their derivatives are those at unit vectors.

    Args:
      array: (N_0, .., N_{d-1}).
      ww: (w, o) each.
      pp: (w, o) each.
      order: the highest derivative K.

    Returns:
      (order + 1, w).

    Example:
      >>> ones = [jnp.ones((1, 2)), jnp.ones((1, 2))]
      >>> dense_apply_derivatives(jnp.eye(2), ones, ones, 2)[:, 0].tolist()
      [2.0, 4.0, 4.0]
    """
    d = len(ww)

    def derivative(t: int) -> Array:
        choices = ([pp[j] if j in chosen else ww[j] for j in range(d)] for chosen in combinations(range(d), t))
        terms = [dense_apply(array, mixed) for mixed in choices]
        return sum(terms, start=jnp.zeros_like(ww[0][:, 0])) * math.factorial(t)

    return jnp.stack([derivative(t) for t in range(order + 1)])


def dense_probe(array: Array, ww: Sequence[Array]) -> tuple[Array, ...]:
    """The array contracted with one vector in every mode but one, for every probe and every such mode.

    Args:
      array: (N_0, .., N_{d-1}).
      ww: (w, o) each.

    Returns:
      (w, o) each.

    Example:
      >>> [z.tolist() for z in dense_probe(jnp.ones((2, 3)), [jnp.ones((1, 2)), jnp.ones((1, 3))])]
      [[[3.0, 3.0]], [[2.0, 2.0, 2.0]]]
    """
    return tuple(_probe_mode(array, ww, i) for i in range(len(ww)))


def _probe_mode(array: Array, ww: Sequence[Array], i: int) -> Array:
    d, operands = len(ww), []
    for j in range(d):
        if j != i:
            operands += [ww[j], [d, j]]
    ones = jnp.ones(ww[i].shape[:1], array.dtype)
    return jnp.einsum(array, list(range(d)), ones, [d], *operands, [d, i], precision="highest")


def dense_probe_derivatives(array: Array, ww: Sequence[Array], pp: Sequence[Array], order: int) -> tuple[Array, ...]:
    """Derivatives by s at 0 of ``dense_probe(array, ww + s pp)``, by enumeration of the modes that are differentiated.

    The probe is multilinear, so its t-th derivative is t! times the sum over all choices of t modes of the probe with
    pp there and ww elsewhere.

    Args:
      array: (N_0, .., N_{d-1}).
      ww: (w, o) each.
      pp: (w, o) each.
      order: the highest derivative K.

    Returns:
      (order + 1, w, o) each.

    Example:
      >>> ww = [jnp.ones((1, 2)), jnp.ones((1, 3))]
      >>> z = dense_probe_derivatives(jnp.ones((2, 3)), ww, ww, 0)
      >>> [zi.shape for zi in z]
      [(1, 1, 2), (1, 1, 3)]
    """
    d = len(ww)
    return tuple(jnp.stack([_probe_derivative(array, ww, pp, i, t) for t in range(order + 1)]) for i in range(d))


def _probe_derivative(array: Array, ww: Sequence[Array], pp: Sequence[Array], i: int, t: int) -> Array:
    others = [j for j in range(len(ww)) if j != i]
    total = jnp.zeros_like(ww[i])
    for chosen in combinations(others, t):
        mixed = [pp[j] if j in chosen else ww[j] for j in range(len(ww))]
        total = total + _probe_mode(array, mixed, i)
    return total * math.factorial(t)
