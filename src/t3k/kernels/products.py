"""Products of Tucker tensor trains, inner and entry by entry, and norms; never through the dense tensor.

The inner product of x and y is the sweep ::

    P_{i+1}[b, c] = sum  P_i[a, e] Gx_i[a, k, b] (Ux_i Uy_i^T)[k, l] Gy_i[e, l, c]          P_0 = 1

The norm is not its square root, which would be right only to the square root of the machine precision when
x is a difference of two nearly equal tensors: it is read off the last core of an orthogonalized train.

The cores of the exact Hadamard product are Kronecker products of the cores, in all indices but the ambient one, so that
ranks multiply; `t3k.kernels.sketched_rounding` finds a product of given ranks without them.
"""

import jax
import jax.numpy as jnp

from t3k.kernels.checks import check_t3
from t3k.kernels.linalg import contract, in_working_precision
from t3k.kernels.orthogonalize import left_orthogonalize, orthonormalize_rows
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.t3 import add, scale, sum_end_bonds
from t3k.kernels.types import Array, T3Cores

__all__ = ["distance", "hadamard", "inner", "norm"]


def inner(x: T3Cores, y: T3Cores) -> Array:
    """The Hilbert-Schmidt inner product, the sum of the products of all entries.

    Args:
      x: U (k, o) and G (a, k, b) each.
      y: the same modes, any ranks; end bonds of both may have any size.

    Returns:
      A scalar.

    Example:
      >>> import jax.numpy as jnp
      >>> x = T3Cores((jnp.ones((1, 4)),), (jnp.ones((1, 1, 1)),))
      >>> inner(x, x).item()
      4.0
    """
    check_t3(*x)
    check_t3(*y)
    gram = jnp.ones((x.tt[0].shape[0], y.tt[0].shape[0]), x.tt[0].dtype)
    gram, _ = sweep_cores(_inner_step, gram, list(zip(x.tucker, x.tt, y.tucker, y.tt, strict=True)))
    return jnp.sum(gram)


def _inner_step(gram: Array, item: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
    U, G, V, H = item
    metric = contract("ko,lo->kl", U, V)
    return contract("ae,akb,kl,elc->bc", gram, G, metric, H), None


@in_working_precision
def norm(x: T3Cores) -> Array:
    """The Hilbert-Schmidt norm, to machine precision relative to the size of the cores; 0 at zero.

    It may be differentiated any number of times away from 0, through ``d|x| = <x, dx> / |x|``; at 0 its derivative
    is taken as 0.

    Args:
      x: U (k, o) and G (a, k, b) each.

    Returns:
      A scalar.

    Example:
      >>> import jax.numpy as jnp
      >>> bool(abs(norm(T3Cores((jnp.ones((1, 4)),), (jnp.ones((1, 1, 1)),))) - 2) < 1e-6)
      True
    """
    return _norm(sum_end_bonds(x))


@jax.custom_jvp
def _norm(x: T3Cores) -> Array:
    _, tt = orthonormalize_rows(*x)
    return jnp.linalg.norm(left_orthogonalize(tt).cores[-1].reshape(-1))


@_norm.defjvp
def _norm_jvp(primals: tuple[T3Cores], tangents: tuple[T3Cores]) -> tuple[Array, Array]:
    value = _norm(*primals)
    half = jax.jvp(lambda x: inner(x, x), primals, tangents)[1] / 2
    positive = value > 0
    return value, jnp.where(positive, half / jnp.where(positive, value, jnp.ones_like(value)), jnp.zeros_like(half))


def distance(x: T3Cores, y: T3Cores) -> Array:
    """The Hilbert-Schmidt norm of the difference, to machine precision relative to the size of the cores.

    Args:
      x: U (k, o) and G (a, k, b) each.
      y: the same modes, any ranks.

    Returns:
      A scalar.

    Example:
      >>> import jax.numpy as jnp
      >>> x = T3Cores((jnp.ones((1, 4)),), (jnp.ones((1, 1, 1)),))
      >>> float(distance(x, scale(x, 3.0)).round(4))
      4.0
    """
    return norm(add(x, scale(y, -1.0)))


def hadamard(x: T3Cores, y: T3Cores) -> T3Cores:
    """The exact product of all entries; its ranks are the products of theirs, its end bonds are 1.

    Args:
      x: U (k, o) and G (a, k, b) each.
      y: the same modes, any ranks.

    Returns:
      Kronecker products of the cores.

    Example:
      >>> from t3k.kernels.t3 import ranks_of, zeros_cores
      >>> ranks_of(hadamard(zeros_cores((4, 5), (2, 3), (1, 2, 1)), zeros_cores((4, 5), (2, 2), (1, 3, 1))))
      ((4, 5), (4, 6), (1, 6, 1))
    """
    check_t3(*x)
    check_t3(*y)
    x, y = sum_end_bonds(x), sum_end_bonds(y)
    # A loop over modes and no sweep: nothing is passed on, and scanning a run would copy the large cores once more.
    tucker = tuple(_kronecker(U, V, (0,)) for U, V in zip(x.tucker, y.tucker, strict=True))
    return T3Cores(tucker, tuple(_kronecker(G, H, (0, 1, 2)) for G, H in zip(x.tt, y.tt, strict=True)))


def _kronecker(G: Array, H: Array, axes: tuple[int, ...]) -> Array:
    """Products of all pairs of indices of some axes, and of equal indices of the others; one fused loop."""
    left = jnp.expand_dims(G, [2 * i + 1 for i in axes])
    right = jnp.expand_dims(H, [2 * i for i in axes])
    sizes = zip(G.shape, H.shape, strict=True)
    return (left * right).reshape([g * h if i in axes else g for i, (g, h) in enumerate(sizes)])
