"""How many rows or directions to take at a time: by a rule (`auto_chunk_size`) or by measurement (`choose_chunk`)."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from t3k.kernels.chunking import LANE, balanced_chunk
from t3k.kernels.scratch import LinearScratch, fit_scratch

__all__ = ["Choice", "auto_chunk_size", "choose_chunk", "tree_bytes"]

_MIB = 2**20
#: Rows at a time below which loops and matrix products get slow, if memory allows so many.
_ROWS = 8
#: So few rows are taken at once if that needs no more scratch than what must be there anyway: every step of a loop
#: reads what the function closes over once more, and saves little of a little.
_FEW = 64
#: The two widths that a line is fitted to.
_WIDTHS = (8, 32)


class _Machine(NamedTuple):
    """Bytes: what is too little to care about, what a chunk may fill to run fast, what is fine to use in any case."""

    small: int
    fast: int
    free: int


# CPU: the last-level cache (dense maps of 1-2 MiB lose nothing to chunked ones; beyond 8 MiB they take 1.5 to 4 times
# as long). Accelerators: enough to keep every unit busy; not measured.
_CPU = _Machine(2 * _MIB, 8 * _MIB, 4 * _MIB)
_ACCELERATOR = _Machine(64 * _MIB, 256 * _MIB, 256 * _MIB)


def device_bytes() -> int | None:
    """The memory of the default device, if it reports one (CPUs do not)."""
    try:
        stats = jax.local_devices()[0].memory_stats()
    except Exception:  # noqa: BLE001 - backends without the call raise what they like
        return None
    return int(stats["bytes_limit"]) if stats and "bytes_limit" in stats else None


def tree_bytes(tree: Any) -> int:
    """The bytes of the arrays (or shapes and dtypes) in a pytree."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(tree) if hasattr(x, "dtype"))


def auto_chunk_size(
    dim: int,
    output_size: int = 1,
    *,
    max_memory_bytes: int | None = None,
    element_bytes: int = 8,
    memory_fraction: float = 0.5,
) -> int:
    """A chunk size by rule, from sizes alone.

    With a budget, the largest chunk whose block of ``chunk * output_size`` elements takes at most `memory_fraction`
    of it; else ceil(sqrt(dim)), which balances the number of chunks and their size. The rule knows nothing of
    intermediate results; ``chunk_size="auto"`` of the builders measures them.

    Args:
      dim: the number of directions: the input's size in forward mode, the output's in reverse mode.
      output_size: elements of one directional derivative.
      max_memory_bytes: the budget; by default what the device reports, if it reports anything.
      element_bytes: bytes of an element.
      memory_fraction: the part of the budget that a block may take, in (0, 1].

    Returns:
      An int in [1, max(dim, 1)].

    Raises:
      ValueError: for a negative `dim`, or a size, budget or fraction that is not positive.

    Example:
      >>> auto_chunk_size(1000, 500, max_memory_bytes=800_000)
      100
    """
    if dim < 0:
        raise ValueError(f"dim must be at least 0; got {dim}")
    if output_size < 0:
        raise ValueError(f"output_size must be at least 0; got {output_size}")
    if element_bytes < 1:
        raise ValueError(f"element_bytes must be at least 1; got {element_bytes}")
    if not 0 < memory_fraction <= 1:
        raise ValueError(f"memory_fraction must be in (0, 1]; got {memory_fraction}")
    if max_memory_bytes is not None and max_memory_bytes < 1:
        raise ValueError(f"max_memory_bytes must be at least 1; got {max_memory_bytes}")
    if max_memory_bytes is None:
        max_memory_bytes = device_bytes()
    if max_memory_bytes is None:
        chunk = math.ceil(math.sqrt(dim))
    else:
        chunk = int(memory_fraction * max_memory_bytes) // max(1, output_size * element_bytes)
    return int(min(max(chunk, 1), max(dim, 1)))


class Choice(NamedTuple):
    """A chunk and why. None for a chunk means dense, and for bytes, not known."""

    chunk: int | None
    reason: str
    dense: int | None = None
    line: LinearScratch | None = None


def choose_chunk(
    measure: Callable[[int | None], int], n_rows: int, *, resident: int, per_row: int, budget: int | None = None
) -> Choice:
    """Chooses a chunk from the scratch of the program compiled at two chunk sizes and dense.

    Dense where that needs at most twice the scratch that the chunks do, or so little that it does not matter. Else the
    chunk that runs fast (at least 8 rows, or more while all that they touch fits the cache) within `budget`, or,
    without a budget, within the bytes that must be there anyway.

    Args:
      measure: the scratch of the program at a chunk size, or dense at None. It may fail, where the program makes
        sense only inside a `shard_map`; then the rule of `auto_chunk_size` is used.
      n_rows: rows in all.
      resident: bytes of inputs and outputs.
      per_row: an upper bound for the scratch of one row, by which small problems are told without compiling.
      budget: bytes of scratch allowed.

    Raises:
      ValueError: if one row does not fit the budget.
    """
    machine = _CPU if jax.default_backend() == "cpu" else _ACCELERATOR
    if budget is None and (limit := device_bytes()) is not None:
        budget = limit // 2
    bound = n_rows * per_row
    if bound <= min(machine.small, machine.small if budget is None else budget):
        return Choice(None, f"dense: its intermediates are at most {bound} bytes")
    try:
        return _choose_measured(measure, n_rows, resident, per_row, budget, machine)
    except ValueError:
        raise
    except Exception as error:  # noqa: BLE001 - a hint must not break what it hints at
        fallback = auto_chunk_size(n_rows, per_row, element_bytes=1, max_memory_bytes=budget)
        return Choice(fallback, f"by rule, since measuring failed with {type(error).__name__}")


def _choose_measured(
    measure: Callable[[int | None], int],
    n_rows: int,
    resident: int,
    per_row: int,
    budget: int | None,
    machine: _Machine,
) -> Choice:
    small, large = (min(width, max(1, n_rows // 2)) for width in _WIDTHS)
    line = fit_scratch(measure, small, large)
    rows = max(_ROWS, machine.fast // max(per_row, 1))
    limit = max(resident, machine.free) if budget is None else budget
    chunk = min(_round(rows, up=True), _round(line.largest_within(limit) or 1), n_rows)
    chunk = balanced_chunk(n_rows, chunk)
    dense = measure(None)
    # A loop of one or two steps, or half the scratch, is not worth a loop.
    allowed = max(2 * line.at(chunk), machine.small, limit if n_rows <= _FEW else 0)
    if dense <= (allowed if budget is None else min(allowed, budget)):
        return Choice(None, f"dense: its scratch of {dense} bytes is small, or not twice that of chunks", dense, line)
    if budget is not None:
        chunk = _fit_exactly(measure, chunk, budget)
    return Choice(chunk, f"chunked: dense would need {dense} bytes of scratch", dense, line)


def _round(rows: int, *, up: bool = False) -> int:
    """A multiple of `LANE`, or of two `LANE` upwards, if there are so many rows: other widths cost products 20%."""
    if rows <= LANE:
        return rows
    return math.ceil(rows / (2 * LANE)) * 2 * LANE if up else rows // LANE * LANE


def _fit_exactly(measure: Callable[[int | None], int], chunk: int, budget: int) -> int:
    """Halves the chunk until its measured scratch fits: fusion makes the line only nearly one."""
    while (scratch := measure(chunk)) > budget:
        if chunk == 1:
            raise ValueError(f"memory allows {budget} bytes of scratch, and one direction at a time needs {scratch}")
        chunk = max(1, chunk // 2)
    return chunk
