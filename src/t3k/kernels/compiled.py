"""Compile once, however often a transformation is written down: jit caches that follow a function's life.

``chunked_jacfwd(f)(x)`` in a loop makes a new wrapper in every pass, and a new `jax.jit` of a new object would trace
anew. Here the jitted program belongs to the function `f` and to what was asked for (a hashable value), and is dropped
when `f` is: neither `f` nor the arrays it closes over are kept alive.
"""

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import jax

__all__ = ["Program", "program_of"]


class Program:
    """A jitted program of a function, and how concretely that function had to be given its numbers so far.

    Attributes:
      call: the jitted function; its first argument is static.
      level: see `t3k.kernels.jacobian_call`.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.level = 0


_PROGRAMS: weakref.WeakKeyDictionary[Any, dict[Hashable, Program]] = weakref.WeakKeyDictionary()


def _call_with(reference: Callable[[], Any], build: Callable[..., Any], request: Hashable, *args: Any) -> Any:
    return build(reference(), request, *args)


def program_of(fun: Callable[..., Any], build: Callable[..., Any], request: Hashable) -> Program:
    """The program that computes ``build(fun, request, static, *arrays)``, jitted with `static` static.

    Args:
      fun: the user's function. Its programs live as long as it does.
      build: module-level function.
      request: hashable; what is wanted of `fun`.
    """
    try:
        programs = _PROGRAMS.setdefault(fun, {})
        reference: Callable[[], Any] = weakref.ref(fun)
    except TypeError:  # not hashable, or it cannot be referred to weakly: then the caller keeps the program
        programs, reference = {}, lambda: fun
    key = (build, request)
    if key not in programs:
        programs[key] = Program(jax.jit(functools.partial(_call_with, reference, build, request), static_argnums=0))
    return programs[key]
