"""Calling a derivative: arguments in, the tree out, one compilation per function, request and shapes.

A call splits its arguments into what is differentiated, other arrays, and Python values that a function may branch on.
Those last are static, as they are for `jax.jacfwd`: a function is first given bools, ints and strings as they are and
all else traced (level 0); if it insists on concrete values, Python floats as they are too (level 1); and if it looks
into arrays, it is run on the very values, without a compiled program (level 2), which is what JAX's own transforms do.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.compiled import program_of
from t3k.kernels.jacobian_blocks import sizes
from t3k.kernels.jacobian_plan import Plan, make_plan, plan_mode, result_of, with_seed
from t3k.kernels.jacobian_problem import (
    Problem,
    Request,
    check_inputs,
    check_outputs,
    concrete_problem,
    is_active,
    trace,
)
from t3k.kernels.jacobian_sweep import Sweep, differentiate
from t3k.kernels.jacobian_trees import assemble
from t3k.kernels.types import Array

__all__ = ["Derivative", "Static", "plan_traced", "seed_leaves", "split_arguments"]

_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class _Value:
    """A static argument: equal only to one of the same type and, for floats, the same bits."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = (type(value), repr(value) if isinstance(value, float | complex) else value)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and bool(self.key == other.key)


class Static:
    """The part of a call's arguments that a program is compiled for: structures, and Python values in their places."""

    def __init__(self, structure: Any, x_structure: Any, values: tuple[_Value | None, ...], argnums: Any) -> None:
        self.structure, self.x_structure, self.values, self.argnums = structure, x_structure, values, argnums
        self.key = (structure, x_structure, values, argnums)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and bool(self.key == other.key)

    def call_with(self, arrays: Sequence[Any]) -> Callable[[Any], tuple[list[Any], dict[str, Any]]]:
        """The function that makes all arguments from x (a tuple, or the one differentiated argument)."""
        given = iter(arrays)
        leaves = [next(given) if value is None else value.value for value in self.values]
        args, kwargs = jax.tree.unflatten(self.structure, leaves)

        def arguments(x: Any) -> tuple[list[Any], dict[str, Any]]:
            full = list(args)
            parts = (x,) if isinstance(self.argnums, int) else x
            for number, part in zip(_as_tuple(self.argnums), parts, strict=True):
                full[number] = part
            return full, kwargs

        return arguments


def _as_tuple(argnums: int | tuple[int, ...]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else argnums


def _is_static(leaf: Any, level: int) -> bool:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return False
    return level >= 1 or not isinstance(leaf, float | complex)


def split_arguments(
    request: Request, args: tuple[Any, ...], kwargs: dict[str, Any], level: int
) -> tuple[Static, list[Any], list[Any]]:
    """The static part of the arguments, the leaves of x, and the other arrays.

    Raises:
      ValueError: if `argnums` names an argument that is not there, or one twice.
    """
    numbers = _as_tuple(request.argnums)
    if any(not -len(args) <= number < len(args) for number in numbers):
        raise ValueError(f"{request.name} has argnums={request.argnums}, and got {len(args)} positional arguments")
    numbers = tuple(number % len(args) for number in numbers)
    argnums = numbers[0] if isinstance(request.argnums, int) else numbers
    rest = list(args)
    for number in numbers:
        rest[number] = None
    x = args[numbers[0]] if isinstance(argnums, int) else tuple(args[number] for number in numbers)
    x_leaves, x_structure = jax.tree.flatten(x)
    leaves, structure = jax.tree.flatten((rest, kwargs))
    values = tuple(_Value(leaf) if _is_static(leaf, level) else None for leaf in leaves)
    arrays = [leaf for leaf, value in zip(leaves, values, strict=True) if value is None]
    return Static(structure, x_structure, values, argnums), x_leaves, arrays


class Derivative:
    """What a builder returns: a function with the arguments of `fun`. Two for equal requests are equal, and hash so."""

    def __init__(self, fun: Callable[..., Any], request: Request, seed: Any = None) -> None:
        if not callable(fun):
            raise TypeError(f"{request.name} needs a callable; got {fun!r}")
        self.fun, self.request, self.seed = fun, request, seed
        self.program = program_of(fun, _compute, request)
        functools.update_wrapper(self, fun, updated=())
        self.__doc__ = f"{request.name} of {getattr(fun, '__name__', fun)!s}; takes the same arguments."

    def __hash__(self) -> int:
        return hash((self.fun, self.request, id(self.seed)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Derivative):
            return NotImplemented
        return bool(self.fun == other.fun and self.request == other.request and self.seed is other.seed)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the derivative."""
        level = self.program.level
        while True:
            try:
                result = self._at_level(level, args, kwargs)
            except _NEEDS_VALUES:
                if level == 2:
                    raise
                level += 1
            else:
                self.program.level = level
                return result

    def _at_level(self, level: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        static, x_leaves, arrays = split_arguments(self.request, args, kwargs, level)
        # Reverse mode's rules are the weaker ones, where either mode may be chosen.
        check_inputs(self.request, "rev" if self.request.mode == "auto" else self.request.mode, x_leaves)
        if level == 2 or not _hashable(static):
            return _compute(self.fun, self.request, static, x_leaves, arrays, self.seed, concrete=True)
        return self.program.call(static, x_leaves, arrays, self.seed)


def _hashable(static: Static) -> bool:
    try:
        hash(static)
    except TypeError:
        return False
    return True


def _compute(
    fun: Callable[..., Any],
    request: Request,
    static: Static,
    x_leaves: list[Any],
    arrays: list[Any],
    seed: Any,
    concrete: bool = False,
) -> Any:
    """The whole computation, in the trees of `fun`: the body of the compiled program."""
    x = jax.tree.unflatten(static.x_structure, x_leaves)
    problem = (concrete_problem if concrete else trace)(fun, static.call_with(arrays), x, request)
    problem, sweep, mode, result = _evaluate(problem, request, seed)
    trees = problem.trees
    tree = assemble(problem, request, mode, result, sweep.n_directions, seed is not None)
    if request.with_value:
        y = jax.tree.unflatten(trees["y"], sweep.y)
        aux = jax.tree.unflatten(trees["aux"], sweep.aux)
        return ((y, aux), tree) if request.has_aux else (y, tree)
    return (tree, jax.tree.unflatten(trees["aux"], sweep.aux)) if request.has_aux else tree


def _evaluate(problem: Problem, request: Request, seed: Any) -> tuple[Problem, Sweep, str, Any]:
    if problem.ys is None:  # run it now, since only that tells what comes out
        mode = "rev" if request.mode == "rev" or request.product == "jtr" else "fwd"
        sweep = differentiate(problem, problem.consts, problem.primals, mode, linearize=True)
        problem = _with_outputs(problem, sweep)
        check_outputs(request, mode, sweep.y)
        seeds = seed_leaves(problem, request, mode, seed)
        plan = make_plan(problem, request, mode, seeds)
    else:
        seeds, plan = plan_traced(problem, request, seed)
        mode = plan.mode
        sweep = differentiate(problem, problem.consts, problem.primals, mode, plan.linearize)
    sweep = with_seed(sweep, seeds)
    _check_product(request, problem, sweep)
    return problem, sweep, mode, result_of(sweep, request, mode, plan.chunk)


def plan_traced(problem: Problem, request: Request, seed: Any) -> tuple[list[Array] | None, Plan]:
    """The seed's leaves and the plan for a problem that has been traced, after checking its outputs."""
    assert problem.ys is not None
    mode = "rev" if request.product == "jtr" else plan_mode(request, problem.xs, problem.ys)
    check_outputs(request, mode, problem.ys)
    seeds = seed_leaves(problem, request, mode, seed)
    return seeds, make_plan(problem, request, mode, seeds)


def _check_product(request: Request, problem: Problem, sweep: Sweep) -> None:
    """Refuses products that are not defined here: the diagonal of what is not square, J^T of complex leaves."""
    if request.product in ("jtj", "jtr", "diagonal"):
        for leaf in (*sweep.ins, *sweep.outs):
            if jnp.iscomplexobj(leaf):
                raise TypeError(f"{request.name} is for real inputs and outputs; got {leaf.dtype}")
    if request.product == "diagonal":
        n, m = sizes(sweep.ins), sizes(sweep.outs)
        if n != m:
            raise ValueError(f"{request.name} needs x and fun(x) with leaves of the same sizes; got {n} and {m}")


def _with_outputs(problem: Problem, sweep: Sweep) -> Problem:
    return replace(problem, ys=[jax.ShapeDtypeStruct(y.shape, y.dtype) for y in sweep.y])


def seed_leaves(problem: Problem, request: Request, mode: str, seed: Any) -> list[Array] | None:
    """The seed's leaves for the active leaves that go in, with the directions on a leading axis.

    Raises:
      ValueError: if its structure or a shape does not fit.
    """
    if seed is None:
        return None
    kinds, tree = (problem.xs, problem.x_tree) if mode == "fwd" else (problem.ys, problem.trees["y"])
    assert kinds is not None
    residual = request.product == "jtr"
    leaves, structure = jax.tree.flatten(seed)
    if structure != tree:
        raise ValueError(f"{request.name}: the seed has the structure {structure}, expected {tree}")
    counts = {None if residual else leaf.shape[-1 if mode == "fwd" else 0] for leaf in leaves if leaf.ndim or residual}
    for leaf, kind in zip(leaves, kinds, strict=True):
        count = () if residual else tuple(counts)[:1]
        expected = (*kind.shape, *count) if mode == "fwd" else (*count, *kind.shape)
        if leaf.shape != expected or len(counts) != 1:
            raise ValueError(f"{request.name}: the seed has an array of shape {leaf.shape}, expected {expected}")
    active = [leaf for leaf, kind in zip(leaves, kinds, strict=True) if is_active(kind)]
    return [jnp.moveaxis(leaf, -1, 0) for leaf in active] if mode == "fwd" and not residual else active
