"""Jacobians in the memory of a chunk of directions: `jax.jacfwd` and `jax.jacrev` with a bound.

J has the shape of ``fun(x)`` followed by that of x, and in pytrees the structure of ``fun(x)`` with that of x in each
leaf, as in JAX. Equal to JAX's to rounding: the order of a sum inside a matrix product may differ.
"""

from collections.abc import Callable, Sequence
from typing import Any

from t3k.kernels.jacobian_call import Derivative
from t3k.kernels.jacobian_request import make_request

__all__ = ["chunked_jacfwd", "chunked_jacobian", "chunked_jacrev", "chunked_value_and_jacobian"]


def chunked_jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
    seed: Any = None,
) -> Callable[..., Any]:
    """The Jacobian of `fun` by columns, `chunk_size` of them at a time: `jax.jacfwd` in bounded memory.

    Right where the input is no larger than the output. One-hot directions are made in the loop and each chunk is
    written into its place in J, so that scratch is that of one chunk. `fun` is traced once. Eager calls compile once
    for each set of shapes (the program belongs to `fun`, so that ``chunked_jacfwd(f)(x)`` in a loop finds it again);
    as with `jax.jit`, `fun` must be pure. If it branches on values, which cannot be compiled, it is run on them
    eagerly, as JAX does. Reverse-mode differentiation of J recomputes one chunk at a time.

    Args:
      fun: function of arrays and pytrees of them. Arguments that are not differentiated may be anything.
      argnums: the positional argument or arguments to differentiate with respect to; may be negative.
      chunk_size: columns at a time, an int >= 1; None takes all at once; ``"auto"`` measures the scratch of the
        compiled program and takes what runs fast in no more memory than must be there anyway, or all at once if
        that needs no more (see `chunk_report`).
      has_aux: whether `fun` returns a pair of the output and of auxiliary data.
      holomorphic: whether `fun` is promised to be holomorphic.
      memory: with ``"auto"``, the scratch allowed: ``"1GB"``, or a number of bytes.
      linearize: True keeps the residuals of one linearization for all chunks; False computes them again in every
        chunk; ``"auto"`` linearizes once unless the measured scratch of doing it again is a quarter less.
      seed: a matrix S to multiply J with from the right, instead of computing all of J: a pytree like x whose arrays
        have a last axis more, ``shape(x) + (p,)``. Compressed Jacobians of a coloured sparsity pattern are ``J S``.

    Returns:
      A function with the arguments of `fun` that returns J (each leaf of shape ``shape(fun(x)) + shape(x)`` and of
      the dtype of ``fun(x)``), or ``J S`` of shape ``shape(fun(x)) + (p,)``; with `has_aux`, a pair with the
      auxiliary data.

    Raises:
      TypeError: as `jax.jacfwd`, when called: for inputs that are not real (complex with `holomorphic`).
      ValueError: for a bad `chunk_size`, `memory`, `linearize` or `seed`, or an `argnums` out of range.

    Example:
      >>> import jax.numpy as jnp
      >>> J = chunked_jacfwd(lambda x: x**2, chunk_size=2)(jnp.array([1.0, 2.0, 3.0]))
      >>> J.tolist()
      [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
      >>> ones = jnp.ones((3, 1))  # a diagonal J has one colour
      >>> chunked_jacfwd(lambda x: x**2, seed=ones)(jnp.array([1.0, 2.0, 3.0])).tolist()
      [[2.0], [4.0], [6.0]]
    """
    request = make_request(
        "chunked_jacfwd", "jacobian", "fwd", argnums, chunk_size, memory, linearize,
        has_aux=has_aux, holomorphic=holomorphic,
    )  # fmt: skip
    return Derivative(fun, request, seed)


def chunked_jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
    seed: Any = None,
) -> Callable[..., Any]:
    """The Jacobian of `fun` by rows, `chunk_size` of them at a time: `jax.jacrev` in bounded memory.

    Right where the output is smaller than the input. Like `chunked_jacfwd` in all else.

    Args:
      fun: see `chunked_jacfwd`.
      argnums: see `chunked_jacfwd`.
      chunk_size: rows at a time; see `chunked_jacfwd`.
      has_aux: see `chunked_jacfwd`.
      holomorphic: see `chunked_jacfwd`.
      allow_int: whether to accept inputs of integers and bools; the derivative with respect to them is zero.
      memory: see `chunked_jacfwd`.
      linearize: see `chunked_jacfwd`; a pullback needs residuals in any case, so that False saves little.
      seed: a matrix S to multiply J with from the left: a pytree like ``fun(x)`` whose arrays have a leading axis
        more, ``(p,) + shape(fun(x))``.

    Returns:
      A function with the arguments of `fun` that returns J (each leaf of shape ``shape(fun(x)) + shape(x)`` and of
      the dtype of x), or ``S J`` of shape ``(p,) + shape(x)``; with `has_aux`, a pair with the auxiliary data.

    Raises:
      TypeError: as `jax.jacrev`, when called: for integer inputs without `allow_int`, outputs that are not real.
      ValueError: see `chunked_jacfwd`.

    Example:
      >>> import jax.numpy as jnp
      >>> chunked_jacrev(lambda x: jnp.sum(x**2), chunk_size=1)(jnp.array([1.0, 2.0])).tolist()
      [2.0, 4.0]
    """
    request = make_request(
        "chunked_jacrev", "jacobian", "rev", argnums, chunk_size, memory, linearize,
        has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int,
    )  # fmt: skip
    return Derivative(fun, request, seed)


def chunked_jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
) -> Callable[..., Any]:
    """The Jacobian of `fun`, by columns or by rows as its sizes suggest, in bounded memory.

    Args:
      fun: see `chunked_jacfwd`.
      argnums: see `chunked_jacfwd`.
      mode: ``"fwd"``, ``"rev"``, or ``"auto"``: forward if the input has no more elements than the output. Complex or
        integer inputs leave only reverse mode, and such outputs only forward mode.
      chunk_size: columns or rows at a time; see `chunked_jacfwd`.
      has_aux: see `chunked_jacfwd`.
      holomorphic: see `chunked_jacfwd`.
      allow_int: see `chunked_jacrev`.
      memory: see `chunked_jacfwd`.
      linearize: see `chunked_jacfwd`.

    Returns:
      A function with the arguments of `fun` that returns J as `chunked_jacfwd` and `chunked_jacrev` do.

    Raises:
      TypeError: see `chunked_jacfwd` and `chunked_jacrev`.
      ValueError: see `chunked_jacfwd`; for an unknown `mode`.

    Example:
      >>> import jax.numpy as jnp
      >>> chunked_jacobian(lambda x: jnp.stack([x[0] * x[1], x[0]]))(jnp.array([2.0, 3.0])).tolist()
      [[3.0, 2.0], [1.0, 0.0]]
    """
    request = make_request(
        "chunked_jacobian", "jacobian", mode, argnums, chunk_size, memory, linearize,
        has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int,
    )  # fmt: skip
    return Derivative(fun, request)


def chunked_value_and_jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    chunk_size: int | str | None = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    memory: int | str | None = None,
    linearize: bool | str = "auto",
) -> Callable[..., Any]:
    """The value of `fun` and its Jacobian, with one evaluation of `fun` for both.

    Args:
      fun: see `chunked_jacfwd`.
      argnums: see `chunked_jacfwd`.
      mode: see `chunked_jacobian`.
      chunk_size: see `chunked_jacobian`.
      has_aux: see `chunked_jacfwd`.
      holomorphic: see `chunked_jacfwd`.
      allow_int: see `chunked_jacrev`.
      memory: see `chunked_jacfwd`.
      linearize: see `chunked_jacfwd`.

    Returns:
      A function with the arguments of `fun` that returns ``(fun(x), J)``, or with `has_aux` ``((value, aux), J)``, as
      `jax.value_and_grad` does.

    Raises:
      TypeError: see `chunked_jacfwd` and `chunked_jacrev`.
      ValueError: see `chunked_jacfwd`; for an unknown `mode`.

    Example:
      >>> import jax.numpy as jnp
      >>> value, J = chunked_value_and_jacobian(lambda x: x**2)(jnp.array([1.0, 3.0]))
      >>> value.tolist(), J.tolist()
      ([1.0, 9.0], [[2.0, 0.0], [0.0, 6.0]])
    """
    request = make_request(
        "chunked_value_and_jacobian", "jacobian", mode, argnums, chunk_size, memory, linearize,
        has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int, with_value=True,
    )  # fmt: skip
    return Derivative(fun, request)
