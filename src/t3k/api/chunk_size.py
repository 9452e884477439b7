"""How many probes to take at a time: from shapes alone, so that it works inside `jit` as well.

Scratch is *measured*: the real kernel is compiled on abstract shapes at two chunk sizes, and the line through them
gives the largest chunk for a budget (`t3k.kernels.scratch`). ``"auto"`` first asks for less: a chunk that keeps the
working set in the cache is the fastest, and only where its scratch would be large is anything measured.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from t3k.api import validate
from t3k.api.problem_shape import KINDS, OPERATIONS, ProblemShape, measured, scratch_line
from t3k.kernels.chunking import LANE, balanced_chunk, check_chunk_size
from t3k.kernels.scratch import parse_memory

__all__ = [
    "MemoryReport",
    "auto_chunk",
    "estimate_chunk_size",
    "max_chunk_size_within",
    "memory_report",
]

#: How often a chunk is made smaller until its measured scratch is within a budget.
_CORRECTIONS = 3
#: Below this much scratch nothing is measured: the compiler itself needs about as much.
SMALL_BYTES = 256 * 2**20
#: The entries of a lifted jet (rank times Tucker rank times rows, in all orders) that are fastest: 2 MiB of float32
#: stay in the cache of a core, and matrix products are large enough. Measured over the grid of `benchmarks/chunks.py`.
FAST_ENTRIES = 2**19
#: More rows than this gain nothing.
MOST_ROWS = 2048
#: So many entries of a lifted jet of a Gauss-Newton product are faster in two blocks than in one, all of whose jets, of
#: both sweeps, XLA computes early and keeps.
DIVIDED_ENTRIES = 2**16
#: The rows where modes are much longer than Tucker ranks.
LONG_MODE_ROWS = 256


def _problem(
    mode_shapes: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    order: int,
    n_probes: int,
    n_tangent: int,
    n_shards: int,
    stack_shape: Sequence[int],
    dtype: Any,
    kind: str = "probe",
) -> ProblemShape:
    shape, n, r = validate.require_structure(mode_shapes, tucker_ranks, tt_ranks)
    (n_probes,) = validate.as_ranks("n_probes", (n_probes,))
    (n_tangent,) = validate.as_ranks("n_tangent", (n_tangent,))
    (n_shards,) = validate.as_ranks("n_shards", (n_shards,))
    stacked = n_tangent * math.prod(validate.as_ranks("stack_shape", stack_shape))
    number = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
    validate.require_choice("kind", kind, KINDS)
    return ProblemShape(shape, n, r, validate.as_order(order), math.ceil(n_probes / n_shards), stacked, number, kind)


def estimate_chunk_size(
    mode_shapes: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    order: int,
    n_probes: int,
    *,
    n_tangent: int = 1,
    n_shards: int = 1,
    stack_shape: Sequence[int] = (),
    dtype: Any = None,
    kind: str = "probe",
    operation: str = "transpose",
) -> int:
    """A balanced chunk: the largest whose measured scratch is no more than the arrays that are resident anyway.

    Args:
      mode_shapes: (N_0, .., N_{d-1}).
      tucker_ranks: (n_0, .., n_{d-1}).
      tt_ranks: (r_0, .., r_d).
      order: the highest derivative.
      n_probes: the number of probes, over all devices.
      n_tangent: tangents that share a frame (the stack V).
      n_shards: devices that the probes are spread over; the chunk is one device's.
      stack_shape: the stack C of base points.
      dtype: of the arrays; the default float if None.
      kind: ``"probe"``, ``"apply"`` or ``"entries"``, derivatives included.
      operation: ``"transpose"``, ``"jacobian"`` or ``"gauss_newton"``.

    Returns:
      A chunk size between 1 and the probes of one device.

    Raises:
      TypeError, ValueError: if an argument does not fit.

    Example:
      >>> import t3k
      >>> chunk = t3k.estimate_chunk_size((40, 40, 40), (8, 8, 8), (1, 8, 8, 1), 2, 2000)
      >>> 32 < chunk < 2000
      True
    """
    problem = _problem(
        mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype, kind
    )
    operation = validate.require_choice("operation", operation, OPERATIONS)
    return _within(problem, operation, problem.resident_bytes()) or 1


def max_chunk_size_within(
    mode_shapes: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    order: int,
    n_probes: int,
    target_bytes: int | str,
    *,
    n_tangent: int = 1,
    n_shards: int = 1,
    stack_shape: Sequence[int] = (),
    dtype: Any = None,
    kind: str = "probe",
    operation: str = "transpose",
) -> int:
    """The largest chunk whose measured scratch fits `target_bytes` (per device), such as ``2 * 10**9`` or ``"2GB"``.

    Other arguments as in `estimate_chunk_size`.

    Raises:
      ValueError: if not even one probe at a time fits, naming the bytes that it takes.
      TypeError, ValueError: if an argument does not fit.

    Example:
      >>> import t3k
      >>> t3k.max_chunk_size_within((8, 9, 10), (2, 3, 2), (1, 2, 2, 1), 1, 50, "1GB")
      50
    """
    problem = _problem(
        mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype, kind
    )
    operation = validate.require_choice("operation", operation, OPERATIONS)
    return _require_within(problem, operation, "target_bytes", parse_memory(target_bytes))


def _within(problem: ProblemShape, operation: str, budget: int) -> int | None:
    """The largest chunk whose scratch is within the budget, None if not even one row's is.

    The line says where it should be, and the program of that chunk whether it is: scratch is not quite linear, since
    the compiler arranges its buffers anew for every size.
    """
    line = scratch_line(problem, operation)
    guess = line.largest_within(budget)
    if guess is None:
        return None
    chunk = problem.n_probes if guess >= problem.most_rows() else guess
    for _ in range(_CORRECTIONS):
        used = measured(problem, operation, chunk)
        if used <= budget or chunk == 1:
            return chunk
        chunk = max(1, math.floor(0.97 * chunk * budget / used))
    return chunk


def _require_within(problem: ProblemShape, operation: str, name: str, budget: int) -> int:
    chunk = _within(problem, operation, budget)
    if chunk is None:
        least = scratch_line(problem, operation).at(1)
        raise ValueError(f"{name} must be at least {least:,}, the scratch of one probe at a time; got {budget:,}")
    return chunk


class MemoryReport(NamedTuple):
    """What an operation needs, in bytes per device; `print` shows it as a table."""

    inputs: int
    output: int
    scratch_base: int
    scratch_per_probe: int
    chunk_size: int
    scratch: int
    total: int

    def __str__(self) -> str:
        """A table in binary units."""
        names = {
            "inputs": "inputs (cores, probes, numbers)",
            "output": "output",
            "scratch_base": "scratch, whatever the chunk",
            "scratch_per_probe": "scratch per probe of a chunk",
            "scratch": f"scratch at chunk {self.chunk_size}",
            "total": "total",
        }
        return "\n".join(f"{label:<36}{_readable(getattr(self, name)):>12}" for name, label in names.items())


def _readable(n_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def memory_report(
    mode_shapes: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    order: int,
    n_probes: int,
    *,
    chunk_size: int | str | None = "auto",
    n_tangent: int = 1,
    n_shards: int = 1,
    stack_shape: Sequence[int] = (),
    dtype: Any = None,
    kind: str = "probe",
    operation: str = "transpose",
) -> MemoryReport:
    """What an operation needs: inputs, output, scratch per probe, the chunk, and the total, in bytes per device.

    Arguments as in `estimate_chunk_size`; `chunk_size` is an int, None (all at once) or ``"auto"``.

    Example:
      >>> import t3k
      >>> report = t3k.memory_report((8, 9, 10), (2, 3, 2), (1, 2, 2, 1), 1, 1000, chunk_size=100)
      >>> report.chunk_size, report.total == report.inputs + report.output + report.scratch
      (100, True)
    """
    problem = _problem(
        mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype, kind
    )
    operation = validate.require_choice("operation", operation, OPERATIONS)
    checked = check_chunk_size(chunk_size, auto=True)
    chunk = balanced_chunk(problem.n_probes, auto_chunk(problem, operation) if isinstance(checked, str) else checked)
    line, (at, pp, zz), (frame, variations) = (
        scratch_line(problem, operation),
        problem.rows(problem.n_probes),
        problem.cores(),
    )
    taken, given = {
        "transpose": (zz, variations), "jacobian": (variations, zz), "gauss_newton": (variations, variations)
    }[operation]  # fmt: skip
    inputs, output = problem.bytes_of(frame, at, pp, taken), problem.bytes_of(given)
    scratch = measured(problem, operation, chunk)
    per_probe = math.ceil(line.per_row)
    return MemoryReport(inputs, output, math.ceil(line.base), per_probe, chunk, scratch, inputs + output + scratch)


def auto_chunk(problem: ProblemShape, operation: str = "transpose", memory: int | None = None) -> int:
    """The chunk that ``"auto"`` stands for: the fast one, or less where its scratch would be large.

    Large is more than `memory` allows; where nothing is said, more than `SMALL_BYTES` and more than what is resident: a
    smaller chunk to save less than that is slow.

    Raises:
      ValueError: if one row at a time takes more than `memory`.
    """
    chunk = min(problem.n_probes, _fast_chunk(problem))
    if operation == "gauss_newton" and chunk * _lifted_entries(problem) > DIVIDED_ENTRIES:
        chunk = min(chunk, balanced_chunk(problem.n_probes, math.ceil(problem.n_probes / 2 / LANE) * LANE))
    budget = SMALL_BYTES if memory is None else memory
    if _rough_bytes(problem, chunk) <= budget:
        return chunk
    if memory is None:
        return min(chunk, _within(problem, operation, max(problem.resident_bytes(), SMALL_BYTES)) or 1)
    return min(chunk, _require_within(problem, operation, "memory", memory))


def _fast_chunk(problem: ProblemShape) -> int:
    """The rows that are fastest: about `FAST_ENTRIES` in a lifted jet, or few where the mode sizes are large.

    Where N is much larger than n, it is the residuals of probes that fill the memory. Applies and entries have none.
    """
    if problem.kind == "probe" and max(N / n for N, n in zip(problem.shape, problem.tucker_ranks, strict=True)) >= LANE:
        return LONG_MODE_ROWS
    rows = 2 ** round(math.log2(max(1, FAST_ENTRIES / _lifted_entries(problem))))
    # Where not even a few rows stay in the cache, matrix products are faster with twice as many.
    return 2 * LANE if rows < LANE else min(rows, MOST_ROWS)


def _lifted_entries(problem: ProblemShape) -> int:
    """The entries of the largest lifted jet, in all orders, for one row."""
    bonds = zip(problem.tt_ranks[:-1], problem.tucker_ranks, problem.tt_ranks[1:], strict=True)
    return max(max(a, b) * k for a, k, b in bonds) * (problem.order + 1)


def _rough_bytes(problem: ProblemShape, chunk: int) -> int:
    """A bound on the scratch of a chunk: all lifted jets of the largest core, and every core's jets, at once."""
    bonds = list(zip(problem.tt_ranks[:-1], problem.tucker_ranks, problem.tt_ranks[1:], strict=True))
    lifted = max(a * k + k * b + a * b for a, k, b in bonds)
    jets = sum(2 * (a + k + b) + N for (a, k, b), N in zip(bonds, problem.shape, strict=True))
    per_row = 4 * (problem.order + 1) * (lifted + jets)
    cores = 6 * sum(a * k * b for a, k, b in bonds)
    return problem.n_stacked * problem.dtype.itemsize * (per_row * chunk + cores)
