"""The words and letters of the library: container types and the glossary of axes.

A Tucker tensor train (T3) with d modes is ``(tucker_cores, tt_cores)``::

    T[o_0 .. o_{d-1}] = sum  G_0[a0,k0,a1] U_0[k0,o0]  G_1[a1,k1,a2] U_1[k1,o1]  ...

One letter means one axis in every einsum string, shape assertion and docstring:

==  =====================================================================
i   mode number, 0 .. d-1
o   ambient index of a mode, size N_i
k   Tucker index, size n_i (``m_i`` on the down cores, when they differ)
a   left bond, size r_i
b   right bond, size r_{i+1}
w   probe (several probe axes W are flattened to this one)
t   derivative order, 0 .. K (``K`` is called ``order`` in signatures)
==  =====================================================================

A train of cores is a tuple with one array per mode, each of its true shape. One stacked array with a
leading mode axis is accepted wherever such a tuple is, and comes back stacked.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Array", "Cores", "Frame", "Jet", "T3Cores", "Variations", "as_tuple", "like_train"]

Array = jax.Array
#: One array per mode, or all of them stacked on a leading axis.
Cores = tuple[Array, ...] | Array
#: A truncated polynomial: one array ``(rank, w)`` per coefficient (see `t3k.kernels.jets`).
Jet = tuple[Array, ...]


class T3Cores(NamedTuple):
    """The cores of a Tucker tensor train: ``U_i (n_i, N_i)`` and ``G_i (r_i, n_i, r_{i+1})``."""

    tucker: Cores
    tt: Cores


class Frame(NamedTuple):
    """The base of a tangent space, ``(up, down, left, right)`` = (U, O, L, R).

    On the manifold ``U_i (n_i, N_i)`` has orthonormal rows; ``L_i (r_i, n_i, r_{i+1})`` is left orthogonal for
    i < d-1 and ``R_i`` right orthogonal for i > 0; ``O_i (r_i, m_i, r_{i+1})`` is orthonormal on its Tucker index.
    The left bond of O is that of L, its right bond that of R. Both ``(L_0 .. L_{d-1})`` and ``(R_0 .. R_{d-1})``
    are the whole base point. Corewise, all three trains are the TT cores G.
    """

    up: Cores
    down: Cores
    left: Cores
    right: Cores


class Variations(NamedTuple):
    """The coordinates of a tangent in a frame: ``V_i (m_i, N_i)`` and ``H_i (rL_i, n_i, rR_{i+1})``."""

    tucker: Cores
    tt: Cores


def as_tuple(cores: Cores) -> tuple[Array, ...]:
    """The train as one array per mode, whichever layout it came in."""
    return tuple(cores)


def like_train(cores: tuple[Array, ...], like: Cores) -> Cores:
    """The train `cores` in the layout of `like`: stacked if that is one array, else a tuple."""
    if isinstance(like, jax.Array | np.ndarray):
        return jnp.stack(cores)
    return tuple(cores)
