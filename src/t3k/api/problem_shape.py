"""A sampling problem by its shapes alone, and the scratch that its programs take, measured."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.chunking import LANE
from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose
from t3k.kernels.sample_maps import Samples, sample_gauss_newton, sample_jacobian, sample_transpose
from t3k.kernels.scratch import LinearScratch, fit_scratch, scratch_bytes
from t3k.kernels.streaming import rows_at_once
from t3k.kernels.types import Frame, Variations

__all__ = ["KINDS", "OPERATIONS", "ProblemShape", "measured", "scratch_line"]

#: What is sampled, and what is done with it.
KINDS = ("probe", "apply", "entries")
OPERATIONS = ("transpose", "jacobian", "gauss_newton")


class ProblemShape(NamedTuple):
    """All that scratch depends on besides the chunk; hashable."""

    shape: tuple[int, ...]
    tucker_ranks: tuple[int, ...]
    tt_ranks: tuple[int, ...]
    order: int
    n_probes: int
    n_stacked: int
    dtype: Any
    kind: str = "probe"

    def _array(self, *shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, self.dtype)

    def cores(self) -> tuple[Frame, Variations]:
        """Abstract frame and variations."""
        bonds = zip(self.tt_ranks[:-1], self.tucker_ranks, self.tt_ranks[1:], strict=True)
        tucker = tuple(self._array(n, N) for n, N in zip(self.tucker_ranks, self.shape, strict=True))
        tt = tuple(self._array(*akb) for akb in bonds)
        return Frame(tucker, tt, tt, tt), Variations(tucker, tt)

    def rows(self, n_probes: int) -> tuple[Any, Any, Any]:
        """Abstract vectors or indices, directions (None at order 0) and residuals for some number of probes."""
        vectors = tuple(self._array(n_probes, N) for N in self.shape)
        index = tuple(jax.ShapeDtypeStruct((n_probes,), jnp.int32) for _ in self.shape)
        jets = tuple(self._array(self.order + 1, n_probes, N) for N in self.shape)
        residuals = jets if self.kind == "probe" else self._array(self.order + 1, n_probes)
        return index if self.kind == "entries" else vectors, vectors if self.order else None, residuals

    def bytes_of(self, *trees: Any) -> int:
        """The bytes of abstract arrays, all stacked tangents and base points included."""
        return self.n_stacked * sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))

    def resident_bytes(self) -> int:
        """What must be there anyway: cores, probes, directions, residuals and the gradient."""
        return self.bytes_of(self.cores(), self.rows(self.n_probes))

    def most_rows(self) -> int:
        """The rows of a block beyond which a larger chunk size changes nothing."""
        return rows_at_once(self.n_probes, self.cores()[0], self.order) or self.n_probes


def _run(cores: Any, rows: Any, *, operation: str, by_probes: bool, order: int, chunk_size: int) -> Any:
    (frame, variations), (at, pp, residuals) = cores, rows
    if operation == "transpose":
        back = probe_transpose if by_probes else sample_transpose
        return back(residuals, at, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size)
    if operation == "jacobian":
        forward = probe_jacobian if by_probes else sample_jacobian
        return forward(at, pp, variations, frame, order, chunk_size=chunk_size)
    if by_probes:
        return gauss_newton_product(Probes(at, pp), variations, frame, order, chunk_size=chunk_size)
    return sample_gauss_newton(Samples(at, pp), variations, frame, order, chunk_size=chunk_size)


def measured(problem: ProblemShape, operation: str, chunk: int) -> int:
    """Scratch of one operation at a chunk size, with enough probes for its loop to be there."""
    rows = problem.rows(max(problem.n_probes, 4 * chunk))
    static = {"operation": operation, "by_probes": problem.kind == "probe", "order": problem.order}
    return problem.n_stacked * scratch_bytes(_run, problem.cores(), rows, chunk_size=chunk, **static)


def scratch_line(problem: ProblemShape, operation: str) -> LinearScratch:
    """Measured scratch of an operation, as a line over the chunk size, up to `ProblemShape.most_rows`."""
    frame, _ = problem.cores()
    most = rows_at_once(4 * LANE, frame, problem.order)
    small, large = (LANE, 4 * LANE) if most == 4 * LANE else (LANE // 4, LANE)
    return fit_scratch(lambda chunk: measured(problem, operation, chunk), small, large)
