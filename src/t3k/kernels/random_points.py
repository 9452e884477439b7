"""Random points of the manifold."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import DTypeLike

from t3k.kernels.linalg import in_working_precision, normal_like, qr
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.t3 import zeros_cores
from t3k.kernels.types import Array, T3Cores

__all__ = ["random_point"]


def random_point(
    key: Array,
    shape: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    dtype: DTypeLike = jnp.float32,
) -> T3Cores:
    """A T3 of norm 1: orthonormal rows in U and left orthogonal G from the uniform distribution, a normal last core.

    Args:
      key: from `jax.random.key`.
      shape: mode sizes N_i; static.
      tucker_ranks: n_i; static.
      tt_ranks: r_0 .. r_d; static, the ends are taken as 1.
      dtype: of the cores.

    Returns:
      A T3 of the minimal ranks below those given.

    Example:
      >>> import jax
      >>> from t3k.kernels.products import norm
      >>> float(norm(random_point(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))).round(4))
      1.0
    """
    return _orthonormal(normal_like(key, zeros_cores(shape, *minimal_ranks(shape, tucker_ranks, tt_ranks), dtype)))


@in_working_precision
def _orthonormal(x: T3Cores) -> T3Cores:
    tucker = tuple(_columns(U.T).T for U in x.tucker)
    *inner, last = x.tt
    tt = tuple(_columns(G.reshape(-1, G.shape[2])).reshape(G.shape) for G in inner)
    return T3Cores(tucker, (*tt, last / jnp.linalg.norm(last.reshape(-1))))


def _columns(matrix: Array) -> Array:
    """Q of the QR whose R has a positive diagonal: uniform for a normal matrix (Mezzadri 2007)."""
    Q, R = qr(matrix)
    return Q * jnp.where(jnp.diagonal(R) < 0, -1, 1).astype(Q.dtype)[None]
