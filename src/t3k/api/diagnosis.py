"""What to know of measurements before a fit: `diagnose`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.chunk_size import MemoryReport, memory_report
from t3k.api.fitting import FitProblem, fit_problem
from t3k.api.geometry import MANIFOLD
from t3k.api.kinds import as_kind
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.measurements import ProbeKind, SampleKind
from t3k.kernels.ranks import manifold_dimension
from t3k.kernels.stored_arrays import reading

__all__ = ["Diagnosis", "Forecast", "diagnose"]

#: Gauss-Newton products that the conditioning is judged by.
LANCZOS_STEPS = 30


class Forecast(NamedTuple):
    """What a Gauss-Newton product at the start has told.

    `curvatures` are the smallest and largest Ritz value of the Gauss-Newton operator after `LANCZOS_STEPS` products:
    its spectrum reaches at least as far. `memory` is what a product needs, None for a kind of one's own.
    `compile_seconds` is how long these products took to compile, and `product_seconds` how long one of them then took;
    a step of `newton_cg` is compiled in two or three times that, and takes from four products on.
    """

    curvatures: tuple[float, float]
    memory: MemoryReport | None
    compile_seconds: float
    product_seconds: float
    resolved: float

    @property
    def condition(self) -> float:
        """The ratio of the curvatures, a lower bound on the condition number."""
        low, high = self.curvatures
        return high / low if low > 0 else float("inf")

    def __str__(self) -> str:
        """Conditioning, seconds and memory."""
        lines = [
            f"condition number of the first Gauss-Newton system: {self.condition:.1e} or more",
            f"a product: {self.product_seconds:.1e} s, compiled in {self.compile_seconds:.1f} s",
        ]
        return "\n".join(lines if self.memory is None else [*lines, str(self.memory)])


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; `print` shows it, warnings first.

    `equations` are the finite numbers in the data, `parameters` the free ones of a tensor of the ranks. `not_finite`
    names every array that holds NaN or infinity, how many, and where the first is. `duplicates` are samples that repeat
    an earlier one. `scales` are the root mean squares of the data, in the layout of `ErrorTable.errors`. `forecast` is
    what was found at a start, if there was one.
    """

    equations: int
    parameters: int
    not_finite: tuple[str, ...]
    duplicates: int
    scales: Any
    forecast: "Forecast | None" = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against a fit as it stands, in sentences."""
        found = [f"{what}; leave it out by sample_weight." for what in self.not_finite]
        if self.equations < self.parameters:
            few = f"{self.equations} equations for {self.parameters} free parameters: many tensors fit equally well."
            found.append(few)
        if self.duplicates:
            found.append(f"{self.duplicates} samples repeat earlier ones and tell nothing new about the tensor.")
        positive = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(self.scales)])
        positive = positive[positive > 0]
        if len(positive) and positive.max() > 1e3 * positive.min():
            ratio = positive.max() / positive.min()
            found.append(
                f"The data differ in scale by {ratio:.0e} from part to part; weight them, or the largest decide."
            )
        if self.forecast is not None and self.forecast.condition > self.forecast.resolved:
            found.append(
                f"The problem at the start is conditioned like {self.forecast.condition:.0e} or worse: the samples "
                "hardly determine some directions. Lower the ranks, take more samples, or regularize."
            )
        return tuple(found)

    def __str__(self) -> str:
        """Warnings, counts and scales."""
        lines = list(self.warnings) or ["Nothing speaks against a fit."]
        lines.append(f"{self.equations} equations, {self.parameters} free parameters")
        if self.forecast is not None:
            lines.append(str(self.forecast))
        for i, scale in enumerate(jax.tree.leaves(self.scales)):
            lines.append(f"scale {i}: " + "  ".join(f"{value:.2e}" for value in np.ravel(scale)))
        return "\n".join(lines)


def diagnose(
    kind: Any,
    sample: Any,
    data: Any,
    shape: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    *,
    order: int | None = None,
    x0: TuckerTensorTrain | None = None,
) -> Diagnosis:
    """Looks at measurements before a fit: are there enough, are they finite, do they repeat, how large are they.

    Nothing is compiled (but with a start x0), and nothing is refused for its values.

    Args:
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      shape: (N_0, .., N_{d-1}).
      tucker_ranks: that are to be fitted.
      tt_ranks: likewise, (r_0, .., r_d).
      order: the highest derivative, where the kind is a name and has them.
      x0: a start, of these ranks. Where it is given and all is finite, Gauss-Newton products on the manifold are
        compiled and run there, to forecast conditioning, memory and time.

    Returns:
      A `Diagnosis`.

    Raises:
      TypeError, ValueError: for an unknown kind, or ranks that do not fit.

    Example:
      >>> import t3k
      >>> found = t3k.diagnose("entries", ([0, 1, 1], [0, 2, 2]), [1.0, float("nan"), 2.0], (4, 5), (1, 1), (1, 1, 1))
      >>> found.equations, found.parameters, found.duplicates
      (2, 8, 1)
      >>> found.not_finite
      ('data has 1 number that is not finite, the first at (1,)',)
    """
    checked = as_kind(kind, order, None, "auto")
    sizes = validate.require_structure(shape, tucker_ranks, tt_ranks)
    plain, by_index = getattr(checked, "plain", True), getattr(checked, "by_index", False)
    at = sample if plain else sample[0]
    parts = _parts("data", data)
    finite = sum(int(np.isfinite(array).sum()) for _, array in parts)
    named = [*_parts("sample", sample), *parts]
    not_finite = tuple(sentence for name, array in named if (sentence := _not_finite(name, array)))
    axis, dimension = None if plain else 0, manifold_dimension(*sizes)
    forecast = None if x0 is None or not_finite else _forecast(kind, sample, data, x0, order, dimension)
    scales = _scales([x for _, x in parts], axis)
    return Diagnosis(finite, dimension, not_finite, _duplicates(at, by_index), scales, forecast)


def _forecast(kind: Any, sample: Any, data: Any, x0: TuckerTensorTrain, order: int | None, dimension: int) -> Forecast:
    problem = fit_problem(
        MANIFOLD,
        kind,
        sample,
        data,
        x0,
        order=order,
        weight=None,
        sample_weight=None,
        regularizer=None,
        chunk_size="auto",
    )
    steps, arrays = min(LANCZOS_STEPS, dimension), (problem.x0.cores, problem.sample, jax.random.key(0))
    with reading(*problem.arrays):
        started = time.perf_counter()
        program = compiled.curvatures.lower(problem.objective, steps, *arrays).compile()
        compiled_at = time.perf_counter()
        low, high = map(float, program(*arrays))
        seconds = time.perf_counter() - compiled_at
    resolved = 1 / float(jnp.finfo(x0.dtype).eps) ** 0.75
    return Forecast((low, high), _memory(problem, x0), compiled_at - started, seconds / steps, resolved)


def _memory(problem: FitProblem, x0: TuckerTensorTrain) -> MemoryReport | None:
    """What a product needs, if its kind is one that chunks are measured for."""
    kind = problem.objective.kind
    if not isinstance(kind, ProbeKind | SampleKind):
        return None
    name = "probe" if isinstance(kind, ProbeKind) else "entries" if kind.by_index else "apply"
    return memory_report(
        x0.shape,
        x0.tucker_ranks,
        x0.tt_ranks,
        kind.order,
        problem.n_rows,
        chunk_size=kind.chunk_size,
        dtype=x0.dtype,
        kind=name,
        operation="gauss_newton",
    )


def _parts(name: str, tree: Any) -> list[tuple[str, np.ndarray]]:
    """The arrays of a sample or of data, with their names; lists of numbers are arrays."""
    if not isinstance(tree, tuple | list | dict) or _is_array(tree):
        return [(name, np.asarray(tree))]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [part for key, item in items for part in _parts(f"{name}[{key!r}]", item)]


def _is_array(tree: Any) -> bool:
    return isinstance(tree, list) and all(isinstance(item, int | float) for item in tree)


def _not_finite(name: str, array: np.ndarray) -> str:
    wrong = np.argwhere(~np.isfinite(array))
    if not len(wrong):
        return ""
    count = "1 number that is" if len(wrong) == 1 else f"{len(wrong)} numbers that are"
    return f"{name} has {count} not finite, the first at {tuple(map(int, wrong[0]))}"


def _duplicates(at: Any, by_index: bool) -> int:
    """Samples that are at the same vectors or indices as an earlier one."""
    arrays = [array for _, array in _parts("", at)]
    rows = [x.reshape(-1, 1) if by_index or x.ndim < 2 else x.reshape(-1, x.shape[-1]) for x in arrays]
    if len({len(x) for x in rows}) != 1:
        return 0
    table = np.concatenate([x.astype(np.float64) for x in rows], axis=1)
    return len(table) - len(np.unique(table, axis=0))


def _scales(arrays: list[np.ndarray], axis: int | None) -> Any:
    """Root mean squares of each array, order by order where the orders are on an axis; NaN is left out."""

    def scale(array: np.ndarray) -> np.ndarray:
        squares = np.where(np.isfinite(array), array.astype(np.float64), 0.0) ** 2
        return np.sqrt(squares.mean(axis=tuple(range(0 if axis is None else 1, array.ndim))))

    return np.stack([np.atleast_1d(scale(array)) for array in arrays])
