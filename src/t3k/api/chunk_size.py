"""How many probes to take at a time: from shapes alone, so that it works inside `jit` as well.

Scratch is *measured*: the real kernel is compiled on abstract shapes at two chunk sizes, and the line through them
gives the largest chunk for a budget (`t3k.kernels.scratch`). ``"auto"`` first asks for less: a chunk that keeps the
working set in the cache is the fastest, and only where its scratch would be large is anything measured.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.api import validate
from t3k.kernels.chunking import LANE, balanced_chunk, check_chunk_size
from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose, rows_at_once
from t3k.kernels.scratch import LinearScratch, fit_scratch, parse_memory, scratch_bytes
from t3k.kernels.types import Frame, Variations

__all__ = [
    "MemoryReport",
    "ProblemShape",
    "auto_chunk",
    "estimate_chunk_size",
    "max_chunk_size_within",
    "memory_report",
]

#: Below this much scratch nothing is measured: the compiler itself needs about as much.
SMALL_BYTES = 256 * 2**20
#: The entries of a lifted jet (rank times Tucker rank times rows) that are fastest: half a MiB of float32 stays in the
#: cache of a core, and the matrix products are large enough. Measured over the grid of `benchmarks/transpose.py`.
FAST_ENTRIES = 2**17
#: Bounds on the rows that this makes.
FAST_ROWS = (128, 1024)


class ProblemShape(NamedTuple):
    """All that scratch depends on besides the chunk; hashable."""

    shape: tuple[int, ...]
    tucker_ranks: tuple[int, ...]
    tt_ranks: tuple[int, ...]
    order: int
    n_probes: int
    n_stacked: int
    dtype: Any

    def arrays(self, n_probes: int) -> tuple[Frame, Variations, Any, Any]:
        """Abstract frame, variations, probe vectors and residual jets for some number of probes."""

        def array(*shape: int) -> Any:
            return jax.ShapeDtypeStruct(shape, self.dtype)

        bonds = list(zip(self.tt_ranks[:-1], self.tucker_ranks, self.tt_ranks[1:], strict=True))
        tucker = tuple(array(n, N) for n, N in zip(self.tucker_ranks, self.shape, strict=True))
        tt = tuple(array(*akb) for akb in bonds)
        ww = tuple(array(n_probes, N) for N in self.shape)
        zz = tuple(array(self.order + 1, n_probes, N) for N in self.shape)
        return Frame(tucker, tt, tt, tt), Variations(tucker, tt), ww, zz

    def bytes_of(self, *trees: Any) -> int:
        """The bytes of abstract arrays, all stacked tangents and base points included."""
        return self.n_stacked * sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))


def _transpose(zz: Any, ww: Any, pp: Any, frame: Any, *, order: int, chunk_size: int) -> Any:
    return probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size)


def _jacobian(ww: Any, pp: Any, variations: Any, frame: Any, *, order: int, chunk_size: int) -> Any:
    return probe_jacobian(ww, pp, variations, frame, order, chunk_size=chunk_size)


def _gauss_newton(ww: Any, pp: Any, variations: Any, frame: Any, *, order: int, chunk_size: int) -> Any:
    return gauss_newton_product(Probes(ww, pp), variations, frame, order, chunk_size=chunk_size)


def _measured(problem: ProblemShape, operation: str, chunk: int) -> int:
    """Scratch of one operation at a chunk size, with enough probes for its loop to be there."""
    frame, variations, ww, zz = problem.arrays(max(problem.n_probes, 4 * chunk))
    static = {"order": problem.order, "chunk_size": chunk}
    if operation == "transpose":
        bytes_ = scratch_bytes(_transpose, zz, ww, ww, frame, **static)
    elif operation == "jacobian":
        bytes_ = scratch_bytes(_jacobian, ww, ww, variations, frame, **static)
    else:
        bytes_ = scratch_bytes(_gauss_newton, ww, ww, variations, frame, **static)
    return problem.n_stacked * bytes_


def scratch_line(problem: ProblemShape, operation: str) -> LinearScratch:
    """Measured scratch of an operation, as a line over the chunk size, up to where the kernel takes no more rows."""
    most = rows_at_once(4 * LANE, problem.arrays(1)[0], problem.order)
    small, large = (LANE, 4 * LANE) if most == 4 * LANE else (LANE // 4, LANE)
    return fit_scratch(lambda chunk: _measured(problem, operation, chunk), small, large)


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
) -> ProblemShape:
    shape, n, r = validate.require_structure(mode_shapes, tucker_ranks, tt_ranks)
    (n_probes,) = validate.as_ranks("n_probes", (n_probes,))
    (n_tangent,) = validate.as_ranks("n_tangent", (n_tangent,))
    (n_shards,) = validate.as_ranks("n_shards", (n_shards,))
    stacked = n_tangent * math.prod(validate.as_ranks("stack_shape", stack_shape))
    kind = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
    return ProblemShape(shape, n, r, validate.as_order(order), math.ceil(n_probes / n_shards), stacked, kind)


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
    problem = _problem(mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype)
    return _balanced(problem, "transpose")


def _resident_bytes(problem: ProblemShape) -> int:
    """What must be there anyway: cores, probes, directions, residuals and the gradient."""
    frame, variations, ww, zz = problem.arrays(problem.n_probes)
    return problem.bytes_of(frame, variations, ww, ww, zz)


def _balanced(problem: ProblemShape, operation: str, at_least: int = 0) -> int:
    chunk = scratch_line(problem, operation).largest_within(max(_resident_bytes(problem), at_least)) or 1
    return max(1, min(chunk, problem.n_probes))


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
    problem = _problem(mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype)
    return _within(problem, "transpose", parse_memory(target_bytes))


def _within(problem: ProblemShape, operation: str, budget: int) -> int:
    line = scratch_line(problem, operation)
    chunk = line.largest_within(budget)
    if chunk is None:
        raise ValueError(
            f"target_bytes must be at least {line.at(1):,}, the scratch of one probe at a time; got {budget:,}"
        )
    return min(chunk, problem.n_probes)


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
            "inputs": "inputs (cores, probes, residuals)",
            "output": "output (gradient)",
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
) -> MemoryReport:
    """What the transpose needs: inputs, output, scratch per probe, the chunk, and the total, in bytes per device.

    Arguments as in `estimate_chunk_size`; `chunk_size` is an int, None (all at once) or ``"auto"``.

    Example:
      >>> import t3k
      >>> report = t3k.memory_report((8, 9, 10), (2, 3, 2), (1, 2, 2, 1), 1, 1000, chunk_size=100)
      >>> report.chunk_size, report.total == report.inputs + report.output + report.scratch
      (100, True)
    """
    problem = _problem(mode_shapes, tucker_ranks, tt_ranks, order, n_probes, n_tangent, n_shards, stack_shape, dtype)
    checked = check_chunk_size(chunk_size, auto=True)
    chunk = balanced_chunk(problem.n_probes, auto_chunk(problem) if isinstance(checked, str) else checked)
    line = scratch_line(problem, "transpose")
    frame, variations, ww, zz = problem.arrays(problem.n_probes)
    inputs, output = problem.bytes_of(frame, ww, ww, zz), problem.bytes_of(variations)
    scratch = _measured(problem, "transpose", chunk)
    per_probe = math.ceil(line.per_row)
    return MemoryReport(inputs, output, math.ceil(line.base), per_probe, chunk, scratch, inputs + output + scratch)


def auto_chunk(problem: ProblemShape, operation: str = "transpose") -> int:
    """The chunk that ``"auto"`` stands for: the fast one, or less where its scratch would be large.

    Large is more than `SMALL_BYTES` and more than what is resident; a smaller chunk to save less than that is slow.
    """
    chunk = min(problem.n_probes, _fast_chunk(problem))
    if _rough_bytes(problem, chunk) <= SMALL_BYTES:
        return chunk
    return min(chunk, _balanced(problem, operation, SMALL_BYTES))


def _fast_chunk(problem: ProblemShape) -> int:
    """The rows that are fastest: `FAST_ENTRIES` in a lifted jet, or few where the mode sizes are large.

    Where N is much larger than n, most of the time goes into reading the residuals, twice: they stay in the cache.
    """
    if max(N / n for N, n in zip(problem.shape, problem.tucker_ranks, strict=True)) >= LANE:
        return LANE
    bonds = zip(problem.tt_ranks[:-1], problem.tucker_ranks, problem.tt_ranks[1:], strict=True)
    lifted = max(max(a, b) * k for a, k, b in bonds)
    return min(max(FAST_ROWS[0], FAST_ENTRIES // lifted // LANE * LANE), FAST_ROWS[1])


def _rough_bytes(problem: ProblemShape, chunk: int) -> int:
    """A bound on the scratch of a chunk: all lifted jets of the largest core, and every core's jets, at once."""
    bonds = list(zip(problem.tt_ranks[:-1], problem.tucker_ranks, problem.tt_ranks[1:], strict=True))
    lifted = max(a * k + k * b + a * b for a, k, b in bonds)
    jets = sum(2 * (a + k + b) + N for (a, k, b), N in zip(bonds, problem.shape, strict=True))
    per_row = 4 * (problem.order + 1) * (lifted + jets)
    cores = 6 * sum(a * k * b for a, k, b in bonds)
    return problem.n_stacked * problem.dtype.itemsize * (per_row * chunk + cores)
