"""The few pieces of linear algebra that the geometry is made of, with the precision that each needs.

* `contract` is `jnp.einsum` at the highest matrix-product precision: geometry is cheap beside probing, and loses
  orthogonality at the default precision of accelerators.
* LAPACK has no 16-bit routines, so `qr` and `svd` work in float32 on such input and return its dtype.
* `in_working_precision` does the same for a whole algorithm, so that nothing is rounded to 16 bits halfway.
"""

from collections.abc import Callable
from functools import partial, wraps
from itertools import accumulate
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array

__all__ = ["HIGHEST", "contract", "in_working_precision", "normal_like", "qr", "root", "svd"]

HIGHEST = jax.lax.Precision.HIGHEST
#: `jnp.einsum` in the highest precision.
contract = partial(jnp.einsum, precision=HIGHEST)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _is_narrow(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and leaf.dtype in (jnp.bfloat16, jnp.float16)


def in_working_precision(function: _Function) -> _Function:
    """Makes `function` compute in float32 where its arrays have 16 bits; results get the dtype of the input.

    Args:
      function: takes and returns pytrees of arrays; keywords and other leaves are passed on as they are.

    Returns:
      A function with the same arguments.

    Example:
      >>> import jax.numpy as jnp
      >>> in_working_precision(lambda x: x)(jnp.ones(2, jnp.bfloat16)).dtype
      dtype(bfloat16)
    """

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        narrow = [leaf.dtype for leaf in jax.tree.leaves(args) if _is_narrow(leaf)]
        if not narrow:
            return function(*args, **kwargs)
        widened = jax.tree.map(lambda x: x.astype(jnp.float32) if _is_narrow(x) else x, args)
        return jax.tree.map(lambda x: x.astype(narrow[0]), function(*widened, **kwargs))

    return cast(_Function, wrapped)


@in_working_precision
def qr(matrix: Array) -> tuple[Array, Array]:
    """Thin QR by Householder reflections: Q is orthonormal for any finite matrix, zero or rank-deficient ones too.

    Args:
      matrix: (p, q).

    Returns:
      Q (p, min(p, q)) and R (min(p, q), q).

    Example:
      >>> import jax.numpy as jnp
      >>> [x.shape for x in qr(jnp.zeros((2, 5)))]
      [(2, 2), (2, 5)]
    """
    q, r = jnp.linalg.qr(matrix)
    return q, r


@in_working_precision
def svd(matrix: Array) -> tuple[Array, Array]:
    """Left singular vectors and singular values, thin. A very wide matrix is first made square by QR.

    Args:
      matrix: (p, q).

    Returns:
      Vectors (p, min(p, q)) and values (min(p, q),) in descending order.

    Example:
      >>> import jax.numpy as jnp
      >>> [x.shape for x in svd(jnp.ones((2, 5)))]
      [(2, 2), (2,)]
    """
    rows, columns = matrix.shape
    if columns > 8 * rows:  # as it would do inside, but without the right vectors
        matrix = jnp.linalg.qr(matrix.T, mode="r").T
    vectors, values, _ = jnp.linalg.svd(matrix, full_matrices=False)
    return vectors, values


def normal_like(key: Array, tree: Any) -> Any:
    """Independent standard normal numbers in place of every entry, by one call of the generator, which compiles slowly.

    Args:
      key: from `jax.random.key`.
      tree: a pytree of arrays of one dtype.

    Returns:
      A pytree of the same structure, shapes and dtype.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> [x.shape for x in normal_like(jax.random.key(0), [jnp.zeros(2), jnp.zeros((3, 1))])]
      [(2,), (3, 1)]
    """
    leaves, structure = jax.tree.flatten(tree)
    stops = list(accumulate(leaf.size for leaf in leaves))
    drawn = jax.random.normal(key, (stops[-1],), leaves[0].dtype)
    parts = [drawn[stop - leaf.size : stop].reshape(leaf.shape) for leaf, stop in zip(leaves, stops, strict=True)]
    return jax.tree.unflatten(structure, parts)


def root(squared: Array) -> Array:
    """The square root of a sum of squares, with derivative 0 where it is 0.

    Args:
      squared: non-negative numbers.

    Returns:
      Their square roots.

    Example:
      >>> import jax
      >>> float(jax.grad(root)(0.0))
      0.0
    """
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, jnp.ones_like(squared))), jnp.zeros_like(squared))
