"""Scratch memory, measured: what XLA reserves for a compiled program besides its inputs and outputs.

A kernel is compiled on abstract shapes (nothing is run and no array is made) and asked for the size of its temporary
buffers. Two chunk sizes give a line, ``bytes = base + per_row * chunk``, from which a chunk for a budget follows.
"""

import functools
import math
import re
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import numpy as np

__all__ = ["LinearScratch", "check_memory", "fit_scratch", "parse_memory", "scratch_bytes"]

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_memory(memory: Any) -> int:
    """The number of bytes in ``"2GB"`` (2e9), ``"1.5 GiB"`` (1.5 * 2**30) or a plain positive number of bytes.

    Raises:
      TypeError: for anything but a string or an integer (bool included).
      ValueError: for an unknown unit, or less than one byte.

    Example:
      >>> parse_memory("2GB"), parse_memory("1.5 KiB"), parse_memory(64)
      (2000000000, 1536, 64)
    """
    expected = 'memory must be a positive number of bytes or a string such as "500MB" or "2GiB"'
    if isinstance(memory, bool | np.bool_) or not isinstance(memory, str | int | np.integer):
        raise TypeError(f"{expected}; got {memory!r} of type {type(memory).__name__}")
    if isinstance(memory, str):
        match = _AMOUNT.fullmatch(memory)
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError(f"{expected}; got {memory!r}")
        memory = math.floor(float(match[1]) * _UNITS[match[2].lower()])
    if memory < 1:
        raise ValueError(f"{expected}; got {memory}")
    return int(memory)


def check_memory(memory: Any, chunk_size: Any) -> int | None:
    """The bytes that `memory` allows, or None if nothing is said; it goes with ``chunk_size="auto"`` alone.

    Raises:
      TypeError, ValueError: see `parse_memory`; or if `chunk_size` is anything else.

    Example:
      >>> check_memory("1KiB", "auto"), check_memory(None, 5)
      (1024, None)
    """
    if memory is None:
        return None
    if chunk_size != "auto":
        raise ValueError(f'memory is a bound for chunk_size="auto" to keep; got chunk_size={chunk_size!r} as well')
    return parse_memory(memory)


class _Compilation:
    """One program to measure. Programs with equal keys are taken to be the same, so the later one is not compiled."""

    def __init__(self, key: Hashable, fun: Callable[..., Any], args: Any, static: dict[str, Any]) -> None:
        self.key, self.fun, self.args, self.static = key, fun, args, static

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compilation) and self.key == other.key


def _abstract(x: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype alone: nothing of x's sharding or mesh, since the program is measured on one device."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@functools.lru_cache(maxsize=1024)
def _measure(compilation: _Compilation) -> int:
    fun = functools.partial(compilation.fun, **compilation.static)
    # Lowering has a trace of its own, so that nothing of this becomes part of the program around it, if there is one.
    # (Inside `jax.ensure_compile_time_eval` it would not: constants of the program would be computed and stored.)
    lowered = jax.jit(fun).lower(*compilation.args)
    analysis: Any = _compile(lowered).memory_analysis()
    # The program must not outlive its measurement, nor what it closes over.
    compilation.fun, compilation.args = _measured, ()
    return int(analysis.temp_size_in_bytes)


def _measured() -> None:
    """Stands in for a function that has been measured."""


def _compile(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compiles quickly where that is known to leave the buffers alone: on the CPU the machine code is not the point."""
    if jax.default_backend() == "cpu":
        options: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
        return lowered.compile(compiler_options=options)
    return lowered.compile()


def scratch_bytes(fun: Callable[..., Any], *abstract_args: Any, key: Hashable = None, **static: Any) -> int:
    """The bytes that the compiled ``fun(*abstract_args, **static)`` needs besides its inputs and outputs.

    Works inside a trace as outside: only shapes are looked at. Results are kept, so that asking again is free.

    Args:
      fun: a function of arrays.
      *abstract_args: pytrees of anything with a shape and a dtype, `jax.ShapeDtypeStruct` for instance.
      key: what identifies the program, where `fun` is a new object each time; by default `fun` itself. It is joined
        with the shapes, the static arguments and the backend.
      **static: hashable keyword arguments, which stay Python values.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> scratch_bytes(lambda x: jnp.sin(x) @ x, jax.ShapeDtypeStruct((100, 100), jnp.float32))
      40000
    """
    args = jax.tree.map(_abstract, abstract_args)
    leaves, structure = jax.tree.flatten(args)
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
    settings = (jax.default_backend(), jax.config.read("jax_enable_x64"), tuple(sorted(static.items())))
    name = fun if key is None else key
    return _measure(_Compilation((name, structure, shapes, settings), fun, args, static))


class LinearScratch(NamedTuple):
    """Scratch as a line over the chunk size: ``base + per_row * chunk`` bytes."""

    base: float
    per_row: float

    def at(self, chunk: int) -> int:
        """The bytes at a chunk size.

        Example:
          >>> LinearScratch(base=1000, per_row=8).at(10)
          1080
        """
        return max(0, math.ceil(self.base + self.per_row * chunk))

    def largest_within(self, budget_bytes: int) -> int | None:
        """The largest chunk whose bytes are within the budget; None if not even one row's are.

        Example:
          >>> line = LinearScratch(base=1000, per_row=8)
          >>> line.largest_within(2000), line.largest_within(1000)
          (125, None)
        """
        room = budget_bytes - self.base
        if room < max(self.per_row, 0):
            return None
        return max(1, math.floor(room / max(self.per_row, 1e-3)))


def fit_scratch(measure: Callable[[int], int], small: int, large: int) -> LinearScratch:
    """The line through the scratch measured at two chunk sizes.

    Example:
      >>> fit_scratch(lambda chunk: 1000 + 8 * chunk, 8, 32)
      LinearScratch(base=1000.0, per_row=8.0)
    """
    if small == large:
        return LinearScratch(0.0, measure(small) / small)
    low, high = measure(small), measure(large)
    per_row = max(0.0, (high - low) / (large - small))
    return LinearScratch(max(0.0, float(high - per_row * large)), per_row)
