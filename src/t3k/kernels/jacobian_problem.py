"""What a Jacobian is taken of: a function of flat leaves, traced once, and what was asked for.

Letters: x are the differentiated leaves (n elements in all), y the outputs (m elements). A leaf is *active* if its
dtype is inexact; the derivative of or with respect to any other is zero, as in JAX.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun, jaxprs_in_params

from t3k.kernels.types import Array

__all__ = [
    "Problem",
    "Request",
    "check_inputs",
    "check_outputs",
    "concrete_problem",
    "intermediate_bytes",
    "is_active",
    "normalize_argnums",
    "trace",
]


@dataclass(frozen=True)
class Request:
    """What is asked of a function; hashable, so that programs are found again.

    Attributes:
      product: ``"jacobian"``, ``"jtj"``, ``"jtr"``, ``"row_norms"``, ``"column_norms"`` or ``"diagonal"``.
      mode: ``"fwd"``, ``"rev"`` or ``"auto"``.
      name: of the public function, for messages.
      budget: bytes of scratch, or None.
      linearize: True, False or ``"auto"``.
      with_value: whether y is returned as well.
    """

    product: str
    mode: str
    name: str
    argnums: int | tuple[int, ...]
    chunk_size: int | str | None
    budget: int | None
    linearize: bool | str
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False
    with_value: bool = False


@dataclass(frozen=True)
class Problem:
    """A function of the active leaves of x, ``call(consts, *primals) -> (y leaves, auxiliary leaves)``.

    Attributes:
      xs: shapes and dtypes of all leaves of x.
      ys: those of y; None until a function that could not be traced has been run.
      trees: the structures of y and of the auxiliary output under ``"y"`` and ``"aux"``, once the function has run.
      jaxpr: the traced function; None if it has to be run on concrete values.
    """

    call: Callable[..., tuple[list[Array], list[Array]]]
    consts: list[Array]
    primals: list[Array]
    xs: list[jax.ShapeDtypeStruct]
    x_tree: Any
    ys: list[jax.ShapeDtypeStruct] | None
    trees: dict[str, Any]
    jaxpr: Jaxpr | None


def normalize_argnums(argnums: Any) -> int | tuple[int, ...]:
    """`argnums` as an int or a tuple of ints.

    Raises:
      TypeError: if it is neither.

    Example:
      >>> normalize_argnums([0, -1])
      (0, -1)
    """
    try:
        return operator.index(argnums)
    except TypeError:
        try:
            return tuple(map(operator.index, argnums))
        except TypeError:
            raise TypeError(f"argnums must be an int or a sequence of ints; got {argnums!r}") from None


def is_active(kind: Any) -> bool:
    """Whether derivatives with respect to (or of) such a leaf may differ from zero."""
    return bool(jnp.issubdtype(kind.dtype, jnp.inexact))


def check_inputs(request: Request, mode: str, leaves: Sequence[Any]) -> None:
    """Refuses what `jax.jacfwd` or `jax.jacrev` refuses to differentiate with respect to.

    Raises:
      TypeError: for complex leaves without `holomorphic` in forward mode, real ones with it, integers without
        `allow_int`, and what is no array.
    """
    for leaf in leaves:
        try:
            dtype = jnp.result_type(leaf)
        except (TypeError, ValueError):
            raise TypeError(
                f"{request.name}: argument {leaf!r} of type {type(leaf).__name__} is not a valid JAX type"
            ) from None
        _check_input(request, mode, dtype)


def _check_input(request: Request, mode: str, dtype: Any) -> None:
    if request.holomorphic:
        if not jnp.issubdtype(dtype, jnp.complexfloating):
            raise TypeError(f"{request.name} with holomorphic=True requires complex inputs; got {dtype}")
    elif mode == "fwd" and not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(
            f"{request.name} requires real-valued inputs of floating dtype; got {dtype}. For holomorphic functions "
            "pass holomorphic=True; for other functions of complex or integer inputs use jax.jvp"
        )
    elif not jnp.issubdtype(dtype, jnp.inexact) and not (request.allow_int and jnp.issubdtype(dtype, jnp.number)):
        if request.allow_int and dtype == jnp.bool_:
            return
        raise TypeError(
            f"{request.name} requires real- or complex-valued inputs; got {dtype}. Integers need allow_int=True"
        )


def check_outputs(request: Request, mode: str, ys: Sequence[Any]) -> None:
    """Refuses outputs that `jax.jacfwd` or `jax.jacrev` refuses.

    Raises:
      TypeError: for real outputs with `holomorphic`; in reverse mode for complex ones without it, and integers.
    """
    for y in ys:
        if request.holomorphic:
            if not jnp.issubdtype(y.dtype, jnp.complexfloating):
                raise TypeError(f"{request.name} with holomorphic=True requires complex outputs; got {y.dtype}")
        elif mode == "rev" and not jnp.issubdtype(y.dtype, jnp.floating):
            raise TypeError(
                f"{request.name} requires real-valued outputs of floating dtype; got {y.dtype}. For holomorphic "
                "functions pass holomorphic=True; for other complex or integer outputs use jax.vjp"
            )


def _flat(fun: Callable[..., Any], call_with: Callable[[Any], Any], x: Any, request: Request) -> Any:
    """The function of the active leaves alone; the structures of what it returns are noted in `trees`."""
    leaves, x_tree = jax.tree.flatten(x)
    leaves = [leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf) for leaf in leaves]
    trees: dict[str, Any] = {}

    def flat(*primals: Array) -> tuple[list[Array], list[Array]]:
        given = iter(primals)
        args, kwargs = call_with(jax.tree.unflatten(x_tree, [next(given) if is_active(x) else x for x in leaves]))
        output = fun(*args, **kwargs)
        if request.has_aux and not (isinstance(output, tuple) and len(output) == 2):
            raise TypeError(f"{request.name} with has_aux=True needs fun to return a pair; got {type(output)}")
        y, aux = output if request.has_aux else (output, ())
        y_leaves, trees["y"] = jax.tree.flatten(y)
        aux_leaves, trees["aux"] = jax.tree.flatten(aux)
        return [jnp.asarray(leaf) for leaf in y_leaves], aux_leaves

    kinds = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    return flat, [leaf for leaf in leaves if is_active(leaf)], kinds, x_tree, trees


def trace(fun: Callable[..., Any], call_with: Callable[[Any], Any], x: Any, request: Request) -> Problem:
    """Traces ``fun(*args, **kwargs)`` with ``args, kwargs = call_with(x)``, once."""
    flat, primals, xs, x_tree, trees = _flat(fun, call_with, x, request)
    closed, (ys, aux) = jax.make_jaxpr(flat, return_shape=True)(*primals)

    def call(consts: list[Array], *primals: Array) -> tuple[list[Array], list[Array]]:
        outputs = jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, consts))(*primals)
        return list(outputs[: len(ys)]), list(outputs[len(ys) :])

    return Problem(call, closed.consts, primals, xs, x_tree, ys, trees, closed.jaxpr)


def concrete_problem(fun: Callable[..., Any], call_with: Callable[[Any], Any], x: Any, request: Request) -> Problem:
    """The same for a function whose Python code must see the values: it is run anew each time."""
    flat, primals, xs, x_tree, trees = _flat(fun, call_with, x, request)
    return Problem(lambda consts, *primals: flat(*primals), [], primals, xs, x_tree, None, trees, None)


def intermediate_bytes(jaxpr: Jaxpr) -> int:
    """The bytes of all results in a program: a bound for its residuals, and for one tangent's scratch."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = sum(intermediate_bytes(getattr(sub, "jaxpr", sub)) for sub in jaxprs_in_params(eqn.params))
        total += inner * int(eqn.params.get("length", 1) or 1)
        kinds: list[Any] = [v.aval for v in eqn.outvars if hasattr(v.aval, "dtype")]
        total += sum(math.prod(k.shape) * k.dtype.itemsize for k in kinds)
    return total
