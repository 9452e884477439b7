"""What all optimizers ask for, checked and made into what the kernels take."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from t3k.api import validate
from t3k.api.fit_stats import FitInfo
from t3k.api.geometry import Geometry
from t3k.api.kinds import as_kind
from t3k.api.sharding import spread_kind
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.minibatches import count_rows
from t3k.kernels.objective import Objective
from t3k.kernels.ranks import manifold_dimension
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.sharded import n_shards
from t3k.kernels.sharded_kind import ShardedKind
from t3k.kernels.stored_arrays import StoredArray, flatten_stored

__all__ = ["FitProblem", "LoopSettings", "Validation", "fit_problem"]

#: Floating-point operations of a whole fit below which compiling takes longer: they take about half a second, and quick
#: compiling, to code half as fast, saves three.
_SMALL_WORK = 2.5e10


class Validation(NamedTuple):
    """Measurements that are not fitted, and the objective that they are judged by."""

    objective: Objective
    sample: Any
    data: Any


@dataclass(frozen=True)
class LoopSettings:
    """What a user wants of the loop around the steps, whichever the optimizer."""

    callback: Callable[[FitInfo], bool | None] | None = None
    verbose: bool | str = False
    max_iterations: int = 50
    patience: int | None = None
    check_every: int = 1
    loss_tolerance: float | None = None
    checkpoint: Any = None
    checkpoint_every: int = 1
    resume: bool = False
    #: Options of the optimizer that a checkpoint must agree with.
    mark: Any = None

    def __post_init__(self) -> None:
        validate.as_ranks("max_iterations", (self.max_iterations,))
        validate.as_ranks("check_every", (self.check_every,))
        validate.as_ranks("checkpoint_every", (self.checkpoint_every,))
        if self.resume and self.checkpoint is None:
            raise ValueError("checkpoint must name the file to resume from; got None")
        if self.patience is not None:
            validate.as_ranks("patience", (self.patience,))
        if self.loss_tolerance is not None:
            validate.as_tolerance("loss_tolerance", self.loss_tolerance)


@dataclass(frozen=True)
class FitProblem:
    """A fit as the kernels see it: start, objective, sample and data; and measurements to validate it by."""

    x0: TuckerTensorTrain
    objective: Objective
    sample: Any
    data: Any
    validation: Validation | None = None

    @property
    def chunk_size(self) -> int | None:
        """The rows that are taken at a time."""
        return self.objective.kind.chunk_size  # type: ignore[attr-defined]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All samples and data."""
        held_out = () if self.validation is None else (self.validation.sample, self.validation.data)
        return (self.sample, self.data, *held_out)

    @property
    def n_rows(self) -> int:
        """The rows of the data."""
        return count_rows(self.objective.kind, self.data)

    def is_small(self, products: int, batch_size: int | None = None) -> bool:
        """Whether a fit of so many Gauss-Newton products is compiled longer than it runs, by a rough count of both."""
        cores = sum(G.size for G in self.x0.tt_cores) + sum(U.size for U in self.x0.tucker_cores)
        orders = getattr(self.objective.kind, "order", 0) + 1
        return 40.0 * orders * cores * (batch_size or self.n_rows) * products < _SMALL_WORK

    def on_batches_of(self, batch_size: int | None) -> "FitProblem":
        """The same with an objective for minibatches, in which the regularizer has its share."""
        if batch_size is None:
            return self
        share = batch_size / self.n_rows
        return replace(self, objective=replace(self.objective, share=share))

    def without_regularizer(self) -> "FitProblem":
        """The same with the misfit alone."""
        return replace(self, objective=replace(self.objective, regularizer=None))

    @property
    def equations(self) -> int:
        """The numbers in the data, those of samples of weight zero left out."""
        rows = self.sample.rows
        values = sum(math.prod(leaf.shape) for leaf in flatten_stored(self.data)[0])
        return round(values if rows is None else float(np.mean(np.asarray(rows) != 0)) * values)

    @property
    def free_parameters(self) -> int:
        """The dimension of the manifold of tensors of these ranks."""
        return manifold_dimension(self.x0.shape, self.x0.tucker_ranks, self.x0.tt_ranks)

    def note(self) -> str:
        """A sentence if there are fewer equations than the tensor has free parameters; else nothing."""
        equations, free = self.equations, self.free_parameters
        if equations >= free or self.objective.regularizer is not None:
            return ""
        return f" There are fewer equations ({equations}) than free parameters ({free}): many tensors fit equally well."


def fit_problem(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    order: int | None,
    weight: Any,
    sample_weight: Any,
    regularizer: Regularizer | None,
    chunk_size: int | str | None,
    memory: int | str | None = None,
    validation: Any = None,
    batch_size: int | None = None,
) -> FitProblem:
    """The problem that an optimizer was called with.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample, data or x0 are not finite.
    """
    _check(geometry, x0, regularizer, batch_size)
    user_kind = as_kind(kind, order, weight, chunk_size, memory)
    kernel, sample, data = user_kind.prepare(x0, sample, data, sample_weight, batch_size)
    validate.require_finite("x0: tucker_cores", x0.tucker_cores, "row")
    validate.require_finite("x0: tt_cores", x0.tt_cores, "position")
    if batch_size is not None and any(isinstance(x, StoredArray) for x in flatten_stored((sample, data))[0]):
        raise ValueError("batch_size must be None where sample or data are in files, which are read in order")
    spread = spread_kind(kernel, sample)
    if batch_size is not None and isinstance(spread, ShardedKind) and batch_size % n_shards(spread.sharding):
        devices = n_shards(spread.sharding)
        raise ValueError(f"batch_size must be a multiple of the {devices} devices of the samples; got {batch_size}")
    objective = Objective(geometry.kernel, spread, regularizer)
    if validation is None:
        return FitProblem(x0, objective, sample, data)
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise TypeError(f"validation must be (sample, data); got {type(validation).__name__}")
    held_out = user_kind.prepare(x0, *validation)
    judged_kind = spread_kind(held_out.kind, held_out.sample)
    judged = Validation(Objective(geometry.kernel, judged_kind), held_out.sample, held_out.data)
    return FitProblem(x0, objective, sample, data, judged)


def _check(geometry: Any, x0: Any, regularizer: Any, batch_size: Any) -> None:
    if not isinstance(geometry, Geometry):
        raise TypeError(f"geometry must be t3k.MANIFOLD or t3k.COREWISE; got {geometry!r:.60}")
    if not isinstance(x0, TuckerTensorTrain):
        raise TypeError(f"x0 must be a TuckerTensorTrain; got {type(x0).__name__}")
    if x0.stack_shape:
        raise ValueError(f"x0 must be a single tensor; got a stack of shape {x0.stack_shape} (see t3k.fit_many)")
    if regularizer is not None and not isinstance(regularizer, Regularizer):
        raise TypeError(f"regularizer must be a t3k.Regularizer or None; got {type(regularizer).__name__}")
    if batch_size is not None:
        validate.as_ranks("batch_size", (batch_size,))
