"""Many fits at once: restarts, outputs, right-hand sides, under one compiled program."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.fit_stats import words
from t3k.api.fitting import fit_problem
from t3k.api.geometry import Geometry
from t3k.api.newton import default_tolerance
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels import newton
from t3k.kernels.newton import NewtonOptions
from t3k.kernels.objective import Objective
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.status import Reason, Tolerances

__all__ = ["ManyFitsStats", "fit_many"]


@dataclass(frozen=True)
class ManyFitsStats:
    """How many fits went, one entry (or row of `losses`) for each.

    `statuses` are those of `FitStats`. A row of `losses` begins with the start's and repeats the last to its end.
    """

    statuses: tuple[str, ...]
    iterations: np.ndarray
    losses: np.ndarray

    @property
    def best(self) -> int:
        """The fit with the lowest loss at its end; the one to keep of many restarts."""
        return int(np.nanargmin(self.losses[:, -1]))


def fit_many(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    in_axes: tuple[int | None, int | None, int | None] = (None, None, 0),
    order: int | None = None,
    weight: Any = None,
    regularizer: Regularizer | None = None,
    chunk_size: int | str | None = "auto",
    fits_at_once: int = 8,
    max_iterations: int = 50,
    gradient_tolerance: float | None = None,
    loss_tolerance: float = 0.0,
    max_cg: int = 200,
    forcing_power: float = 0.5,
) -> tuple[TuckerTensorTrain, ManyFitsStats]:
    """Runs `newton_cg` on many problems of the same shapes, by `jax.vmap`, under one compile.

    A few fits are taken step by step together; one that has ended makes room for the next. For small problems this is
    many times faster than a loop.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: the kind of measurement, by name or as an object.
      sample: as in `newton_cg`, with a leading axis of fits in every array where ``in_axes[0]`` is 0.
      data: likewise, for ``in_axes[1]``.
      x0: likewise, a stack of starts for ``in_axes[2]``.
      in_axes: for sample, data and x0: 0 where each fit has its own, None where all share one. The default is many
        starts on the same data; ``(None, 0, None)`` is many data from one start.
      order: as all that follow, see `newton_cg`.
      weight: factors of the residuals.
      regularizer: added to each misfit.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      fits_at_once: how many fits are taken together, and take memory for a step. The more there are, the longer they
        wait for the slowest of each step; a device of many cores wants more of them.
      max_iterations: iterations at the most, a static number.
      gradient_tolerance: a fit has converged where the gradient's norm has fallen by this factor.
      loss_tolerance: or where an iteration lowers the loss by less than this fraction of it.
      max_cg: CG iterations in one step at the most.
      forcing_power: CG solves to the relative residual ``min(1/2, (|g| / |g_0|)**forcing_power)``.

    Returns:
      The stack of fitted tensors, and `ManyFitsStats`.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample or data are not finite; before any compilation.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (40, N)) for i, N in enumerate(x.shape))
      >>> starts = [t3k.TuckerTensorTrain.randn(jax.random.key(s), x.shape, (1, 1), (1, 1, 1)) for s in range(3)]
      >>> stack = jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *starts)
      >>> x_fit, stats = t3k.fit_many(t3k.MANIFOLD, "probe", ww, x.probe(ww), stack)
      >>> x_fit.stack_shape, stats.statuses
      ((3,), ('converged', 'converged', 'converged'))
    """
    axes = _checked_axes(in_axes, sample, data, x0)
    objectives: set[Objective] = set()

    def prepare(sample: Any, data: Any, x0: TuckerTensorTrain) -> Any:
        settings = {"weight": weight, "sample_weight": None, "regularizer": regularizer, "chunk_size": chunk_size}
        problem = fit_problem(geometry, kind, sample, data, x0, order=order, **settings)
        objectives.add(problem.objective)
        return problem.sample, problem.data, x0.cores

    prepared = jax.vmap(prepare, in_axes=axes, out_axes=axes)(sample, data, x0)
    for name, tree in zip(("sample", "data", "x0"), prepared, strict=True):
        floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        validate.require_finite(name, floats, "position")
    (objective,) = objectives
    tolerance = default_tolerance(x0.dtype) if gradient_tolerance is None else gradient_tolerance
    tolerances = Tolerances(
        validate.as_tolerance("gradient_tolerance", tolerance), validate.as_tolerance("loss_tolerance", loss_tolerance)
    )
    options = NewtonOptions(max_cg=max_cg, forcing_power=forcing_power, tolerances=tolerances)
    (steps,), (lanes,) = (
        validate.as_ranks(name, (value,))
        for name, value in (("max_iterations", max_iterations), ("fits_at_once", fits_at_once))
    )
    states, losses = compiled.optimize_many(newton, objective, options, steps, lanes, axes, *prepared)
    stats = ManyFitsStats(
        _statuses(states, objective, axes[:2], *prepared[:2]), *map(np.asarray, (states.iteration, losses))
    )
    return TuckerTensorTrain(tuple(states.x.tucker), tuple(states.x.tt)), stats


def _statuses(states: Any, objective: Objective, axes: Any, sample: Any, data: Any) -> tuple[str, ...]:
    reasons = np.asarray(states.status)
    if np.any(reasons == Reason.NO_DECREASE):
        floor = np.asarray(compiled.rounding_of_many(objective, axes, states.x, sample, data))
        rounded = (reasons == Reason.NO_DECREASE) & (np.asarray(states.model.loss) <= floor)
        reasons = np.where(rounded, Reason.WITHIN_ROUNDING, reasons)
    named = map(Reason, reasons.tolist())
    return tuple(words(reason, iteration=0, fall=0, decrease=0)[0] if reason else "max_iterations" for reason in named)


def _checked_axes(in_axes: Any, *trees: Any) -> tuple[int | None, ...]:
    """`in_axes` as a tuple, if it names a stack and all arrays of the stacked arguments have as many fits."""
    axes = tuple(in_axes) if isinstance(in_axes, tuple | list) else ()
    if len(axes) != 3 or any(axis not in (0, None) for axis in axes) or axes == (None,) * 3:
        raise ValueError(f"in_axes must be 0 or None for sample, data and x0, not all None; got {in_axes!r}")
    stacked = [leaf for axis, tree in zip(axes, trees, strict=True) if axis == 0 for leaf in jax.tree.leaves(tree)]
    counts = {np.shape(leaf)[:1] for leaf in stacked}
    if len(counts) != 1 or () in counts:
        raise ValueError(f"all arrays with in_axes 0 must have the same leading axis of fits; got {sorted(counts)}")
    return axes
