"""From data to a tensor of a rank that they support: `fit`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.fit_stats import FitStats
from t3k.api.geometry import MANIFOLD, ManifoldGeometry
from t3k.api.newton import newton_cg
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.continuation import next_ranks
from t3k.kernels.types import Array

__all__ = ["FitPath", "FitStage", "fit"]


@dataclass(frozen=True)
class FitStage:
    """One rank on the way: what was fitted, and how well. `error` is relative to the norm of the data."""

    tucker_ranks: tuple[int, ...]
    tt_ranks: tuple[int, ...]
    error: float
    validation_error: float | None
    stats: FitStats


@dataclass
class FitPath:
    """The ranks that `fit` went through. `chosen` is the stage whose tensor was returned; `message` says why."""

    stages: list[FitStage] = field(default_factory=list)
    chosen: int = 0
    message: str = ""

    def __str__(self) -> str:
        """A table with a line per stage."""
        lines = [f"{'':2}{'Tucker ranks':<20}{'TT ranks':<22}{'error':>10}{'validation':>12}{'steps':>7}"]
        for i, stage in enumerate(self.stages):
            held_out = "" if stage.validation_error is None else f"{stage.validation_error:.2e}"
            lines.append(
                f"{'*' if i == self.chosen else '':2}{stage.tucker_ranks!s:<20}{stage.tt_ranks!s:<22}"
                f"{stage.error:>10.2e}{held_out:>12}{stage.stats.iterations:>7}"
            )
        return "\n".join([*lines, self.message])


def fit(
    kind: Any,
    sample: Any,
    data: Any,
    shape: Sequence[int],
    *,
    geometry: ManifoldGeometry = MANIFOLD,
    validation: Any = None,
    max_tucker_ranks: Sequence[int] | int = 32,
    max_tt_ranks: Sequence[int] | int = 32,
    tau: float = 10.0,
    tolerance: float | None = None,
    max_stages: int = 20,
    patience: int = 1,
    key: Array | None = None,
    dtype: Any = None,
    loss_tolerance: float = 1e-3,
    **settings: Any,
) -> tuple[TuckerTensorTrain, FitPath]:
    """Fits a T3 of a rank that the data support, growing ranks from 1 on a manifold.

    Each stage is a fit by `newton_cg` from the tensor of the one before. Then every edge, a mode or a bond, whose
    condition number is below that of the worst by the factor `tau` gets one more. It ends where the data are fitted to
    `tolerance`, where the validation error no longer falls, or where more ranks would be more parameters than
    equations.

    Args:
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      shape: (N_0, .., N_{d-1}).
      geometry: `t3k.MANIFOLD`, or a `t3k.SharedManifold`, whose groups of modes grow together.
      validation: ``(sample, data)`` that are not fitted; without them nothing tells a good fit from too close a one.
      max_tucker_ranks: the largest wanted, one for each mode or one for all.
      max_tt_ranks: likewise, one for each of the d - 1 inner bonds or one for all.
      tau: how much better conditioned than the worst an edge must be to grow.
      tolerance: the relative error with which data count as fitted; the square root of the machine precision if None.
      max_stages: stages at the most.
      patience: stages in a row that may fail to lower the validation error.
      key: of the new directions, from `jax.random.key`; ``jax.random.key(0)`` if None.
      dtype: of the tensor; the default float if None.
      loss_tolerance: each stage ends where an iteration lowers the loss by less than this fraction of it.
      **settings: what else `newton_cg` takes: `order`, `weight`, `sample_weight`, `regularizer`, `chunk_size`, ...

    Returns:
      The tensor of the stage with the lowest validation error (without validation, of the last), and the `FitPath`.

    Raises:
      TypeError, ValueError: if an argument does not fit; before any compilation.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 5.4.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (2, 2), (1, 2, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> x_fit, path = t3k.fit("apply", ww, x.apply(ww), x.shape)
      >>> [stage.tucker_ranks for stage in path.stages]
      [(1, 1), (2, 2)]
    """
    x = TuckerTensorTrain.zeros(shape, (1,) * len(shape), (1,) * (len(shape) + 1), dtype)
    caps = _caps("max_tucker_ranks", max_tucker_ranks, x.d), (1, *_caps("max_tt_ranks", max_tt_ranks, x.d - 1), 1)
    enough = float(jnp.finfo(x.dtype).eps) ** 0.5 if tolerance is None else tolerance
    keys = jax.random.split(jax.random.key(0) if key is None else key, max_stages)
    path, tensors, scale = FitPath(), list[TuckerTensorTrain](), (0.0, 0.0)
    for stage_key in keys:
        x, stats = newton_cg(
            geometry, kind, sample, data, x, validation=validation, loss_tolerance=loss_tolerance, **settings
        )
        if not path.stages:  # the zero tensor's losses are half the squared norms of the data
            scale = stats.losses[0], stats.validation_losses[0] if stats.validation_losses else 0.0
        path.stages.append(_stage(x, stats, scale))
        tensors.append(x)
        path.message = _verdict(path, enough, patience)
        if path.message:
            break
        modes, bonds = jax.device_get(compiled.singular_values(x.cores))
        ranks = geometry.tie_ranks(next_ranks(x.shape, modes, bonds, caps, tau=tau))
        path.message = _no_further(geometry, x, ranks, data)
        if path.message:
            break
        x = TuckerTensorTrain(*compiled.with_room(stage_key, x.cores, *ranks))
    path.message = path.message or f"max_stages = {max_stages} was reached."
    return tensors[path.chosen], path


def _caps(name: str, ranks: Sequence[int] | int, length: int) -> tuple[int, ...]:
    return validate.as_ranks(name, (ranks,) * length if isinstance(ranks, int) else ranks, length)


def _stage(x: TuckerTensorTrain, stats: FitStats, scale: tuple[float, float]) -> FitStage:
    def relative(loss: float, zero: float) -> float:
        return float(np.sqrt(loss / zero)) if zero else 0.0

    held_out = relative(stats.validation_losses[-1], scale[1]) if stats.validation_losses else None
    return FitStage(x.tucker_ranks, x.tt_ranks, relative(stats.losses[-1], scale[0]), held_out, stats)


def _verdict(path: FitPath, enough: float, patience: int) -> str:
    """Why the path ends with its last stage, or nothing; chooses the stage to return."""
    errors = [stage.error if stage.validation_error is None else stage.validation_error for stage in path.stages]
    validated = path.stages[-1].validation_error is not None
    path.chosen = int(np.argmin(errors)) if validated else len(errors) - 1
    if path.stages[-1].stats.status == "non_finite":
        return "The loss was not finite."
    if path.stages[-1].error <= enough:
        return f"The data are fitted to the tolerance of {enough:.1e}."
    if validated and len(errors) - 1 - path.chosen >= patience:
        return "The validation error no longer fell."
    return ""


def _no_further(geometry: ManifoldGeometry, x: TuckerTensorTrain, ranks: Any, data: Any) -> str:
    if ranks == (x.tucker_ranks, x.tt_ranks):
        return "No rank may grow any further."
    free, equations = geometry.n_free(x.shape, *ranks), sum(np.size(leaf) for leaf in jax.tree.leaves(data))
    return f"Ranks {ranks} would have {free} parameters for {equations} equations." if free > equations else ""
