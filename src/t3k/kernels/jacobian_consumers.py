"""What people make of a Jacobian, without the Jacobian: J^T J, J^T r, norms of rows and columns, the diagonal.

Each of these looks at one chunk of rows or columns of J at a time and keeps only what it needs of it. The keywords are
those of `t3k.kernels.jacobian.chunked_jacobian`; integer leaves are refused as `jax.jacfwd` or `jax.jacrev` would.
"""

from collections.abc import Callable, Sequence
from typing import Any

from t3k.kernels.jacobian_call import Derivative
from t3k.kernels.jacobian_request import make_request

__all__ = ["chunked_column_norms", "chunked_diagonal", "chunked_jtj", "chunked_jtr", "chunked_row_norms"]


def chunked_jtj(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
    with_value: bool = False,
) -> Callable[..., Any]:
    """J^T J, the Gauss-Newton matrix, of a Jacobian that is never stored.

    By rows (reverse mode) it sums the products of chunks of rows; by columns (forward mode) it pushes a chunk of
    directions and pulls the result back, which gives as many columns of J^T J. The latter costs a push and a pull for
    each of the n columns, the former a pull for each of the m rows: ``"auto"`` takes forward mode if 2 n <= m.

    Args:
      fun: real function of real arrays; see `t3k.kernels.jacobian.chunked_jacfwd`.
      argnums: what to differentiate with respect to.
      mode: ``"fwd"``, ``"rev"`` or ``"auto"``.
      chunk_size: columns or rows at a time, an int >= 1; None for all at once, ``"auto"`` to measure.
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      memory: with ``"auto"``, the scratch allowed.
      linearize: whether to keep the residuals of one linearization for all chunks.
      with_value: whether to return ``fun(x)`` as well, first.

    Returns:
      A function with the arguments of `fun` that returns J^T J with the structure of `jax.hessian`: x in x, each leaf
      of shape ``shape(x leaf) + shape(x leaf)`` and of the first one's dtype.

    Raises:
      TypeError: for complex or integer inputs or outputs.
      ValueError: for a bad `chunk_size`, `memory`, `mode` or `linearize`.

    Example:
      >>> import jax.numpy as jnp
      >>> A = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
      >>> chunked_jtj(lambda x: A @ x, chunk_size=2)(jnp.zeros(2)).tolist()
      [[35.0, 44.0], [44.0, 56.0]]
    """
    request = make_request(
        "chunked_jtj", "jtj", mode, argnums, chunk_size, memory, linearize, has_aux=has_aux, with_value=with_value
    )
    return Derivative(fun, request)


def chunked_jtr(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    residual: Any = None,
    has_aux: bool = False,
    with_value: bool = False,
) -> Callable[..., Any]:
    """J^T r, by one pullback: the gradient of ``|fun(x)|^2 / 2``, or with a `residual` that of ``<residual, fun(x)>``.

    Args:
      fun: real function of real arrays; see `t3k.kernels.jacobian.chunked_jacfwd`.
      argnums: what to differentiate with respect to.
      residual: r, a pytree like ``fun(x)``; by default ``fun(x)`` itself.
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      with_value: whether to return ``fun(x)`` as well, first.

    Returns:
      A function with the arguments of `fun` that returns J^T r, a pytree like x.

    Raises:
      TypeError: for complex or integer inputs or outputs.
      ValueError: for a `residual` that is not like ``fun(x)``.

    Example:
      >>> import jax.numpy as jnp
      >>> chunked_jtr(lambda x: jnp.stack([x[0] * x[1], x[0]]))(jnp.array([2.0, 3.0])).tolist()
      [20.0, 12.0]
    """
    request = make_request(
        "chunked_jtr", "jtr", "rev", argnums, None, None, True, has_aux=has_aux, with_value=with_value
    )
    return Derivative(fun, request, residual)


def chunked_row_norms(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
) -> Callable[..., Any]:
    """The Euclidean norm of every row of J, over all that is differentiated: how far each output can be moved.

    Args:
      fun: see `t3k.kernels.jacobian.chunked_jacfwd`.
      argnums: what to differentiate with respect to.
      mode: ``"fwd"``, ``"rev"`` or ``"auto"``.
      chunk_size: columns or rows at a time, an int >= 1; None for all at once, ``"auto"`` to measure.
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      memory: with ``"auto"``, the scratch allowed.
      linearize: whether to keep the residuals of one linearization for all chunks.

    Returns:
      A function with the arguments of `fun` that returns a pytree like ``fun(x)``. Where a norm is zero, its
      derivative is taken to be zero.

    Raises:
      TypeError: as `jax.jacfwd` or `jax.jacrev`.
      ValueError: for a bad `chunk_size`, `memory`, `mode` or `linearize`.

    Example:
      >>> import jax.numpy as jnp
      >>> A = jnp.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
      >>> chunked_row_norms(lambda x: A @ x, chunk_size=1)(jnp.zeros(2)).tolist()
      [5.0, 2.0, 0.0]
    """
    request = make_request(
        "chunked_row_norms", "row_norms", mode, argnums, chunk_size, memory, linearize, has_aux=has_aux
    )
    return Derivative(fun, request)


def chunked_column_norms(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
) -> Callable[..., Any]:
    """The Euclidean norm of every column of J, over all outputs: the usual scaling of a least-squares problem.

    Args:
      fun: see `t3k.kernels.jacobian.chunked_jacfwd`.
      argnums: what to differentiate with respect to.
      mode: ``"fwd"``, ``"rev"`` or ``"auto"``.
      chunk_size: columns or rows at a time, an int >= 1; None for all at once, ``"auto"`` to measure.
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      memory: with ``"auto"``, the scratch allowed.
      linearize: whether to keep the residuals of one linearization for all chunks.

    Returns:
      A function with the arguments of `fun` that returns a pytree like x. Where a norm is zero, its derivative is
      taken to be zero.

    Raises:
      TypeError: as `jax.jacfwd` or `jax.jacrev`.
      ValueError: for a bad `chunk_size`, `memory`, `mode` or `linearize`.

    Example:
      >>> import jax.numpy as jnp
      >>> A = jnp.array([[3.0, 0.0], [4.0, 2.0]])
      >>> chunked_column_norms(lambda x: A @ x, chunk_size=1)(jnp.zeros(2)).tolist()
      [5.0, 2.0]
    """
    request = make_request(
        "chunked_column_norms", "column_norms", mode, argnums, chunk_size, memory, linearize, has_aux=has_aux
    )
    return Derivative(fun, request)


def chunked_diagonal(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
) -> Callable[..., Any]:
    """The diagonal of a square J: of ``fun`` from x to something with leaves of the same sizes, in the same order.

    Args:
      fun: real function; see `t3k.kernels.jacobian.chunked_jacfwd`.
      argnums: what to differentiate with respect to.
      mode: ``"fwd"``, ``"rev"`` or ``"auto"``.
      chunk_size: columns or rows at a time, an int >= 1; None for all at once, ``"auto"`` to measure.
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      memory: with ``"auto"``, the scratch allowed.
      linearize: whether to keep the residuals of one linearization for all chunks.

    Returns:
      A function with the arguments of `fun` that returns a pytree like ``fun(x)``.

    Raises:
      TypeError: for complex or integer inputs or outputs.
      ValueError: if J is not square, leaf by leaf; for a bad `chunk_size`, `memory`, `mode` or `linearize`.

    Example:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> hessian_diagonal = chunked_diagonal(jax.grad(lambda x: x[0] ** 2 * x[1] + x[1] ** 3), chunk_size=1)
      >>> hessian_diagonal(jnp.array([1.0, 2.0])).tolist()
      [4.0, 12.0]
    """
    request = make_request(
        "chunked_diagonal", "diagonal", mode, argnums, chunk_size, memory, linearize, has_aux=has_aux
    )
    return Derivative(fun, request)
