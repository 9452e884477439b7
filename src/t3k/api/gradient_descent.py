"""The optimizer `gradient_descent`."""

from collections.abc import Callable
from typing import Any

from t3k.api import validate
from t3k.api.fit_stats import FitInfo, FitStats
from t3k.api.fitting import LoopSettings, fit_problem
from t3k.api.geometry import Geometry
from t3k.api.newton import default_tolerance, descend
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels import gradient_descent as kernels
from t3k.kernels.gradient_descent import GradientDescentOptions
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.status import Tolerances

__all__ = ["gradient_descent"]


def gradient_descent(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    order: int | None = None,
    weight: Any = None,
    sample_weight: Any = None,
    regularizer: Regularizer | None = None,
    validation: Any = None,
    patience: int | None = None,
    chunk_size: int | str | None = "auto",
    memory: int | str | None = None,
    callback: Callable[[FitInfo], bool | None] | None = None,
    verbose: bool | str = False,
    max_iterations: int = 500,
    gradient_tolerance: float | None = None,
    loss_tolerance: float = 0.0,
    checkpoint: Any = None,
    checkpoint_every: int = 1,
    resume: bool = False,
) -> tuple[TuckerTensorTrain, FitStats]:
    """Fits a T3 to measurements by steepest descent, with the Cauchy step and Armijo's line search.

    It needs many more iterations than `newton_cg`, each as costly as one CG iteration; it is there to compare with, and
    for problems where a rough fit is enough.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      x0: where to start.
      order: as all that follow, see `newton_cg`.
      weight: factors of the residuals.
      sample_weight: factors of each sample's residuals.
      regularizer: added to the misfit.
      validation: ``(sample, data)`` that are not fitted.
      patience: iterations without a lower validation loss after which to end.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.
      callback: called with a `FitInfo` after each iteration; the fit stops where it returns True.
      verbose: True prints a line per iteration, ``"bar"`` shows a progress bar.
      max_iterations: iterations at the most.
      gradient_tolerance: the fit has converged where the gradient's norm has fallen by this factor.
      loss_tolerance: or where an iteration lowers the loss by less than this fraction of it.
      checkpoint: a file to write the state of the fit to, atomically.
      checkpoint_every: iterations between two writes.
      resume: go on from that file if it exists; a fit that was killed then ends as if it had not been, bit for bit.

    Returns:
      The fitted tensor, and `FitStats`.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample or data are not finite; before any compilation.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> x0 = t3k.TuckerTensorTrain.randn(jax.random.key(9), x.shape, (1, 1), (1, 1, 1))
      >>> x_fit, stats = t3k.gradient_descent(t3k.MANIFOLD, "probe", ww, x.probe(ww), x0, max_iterations=20)
      >>> stats.losses[-1] < 1e-3 * stats.losses[0]
      True
    """
    problem = fit_problem(
        geometry,
        kind,
        sample,
        data,
        x0,
        order=order,
        weight=weight,
        sample_weight=sample_weight,
        regularizer=regularizer,
        chunk_size=chunk_size,
        memory=memory,
        validation=validation,
    )
    tolerance = default_tolerance(x0.dtype) if gradient_tolerance is None else gradient_tolerance
    tolerances = Tolerances(
        validate.as_tolerance("gradient_tolerance", tolerance), validate.as_tolerance("loss_tolerance", loss_tolerance)
    )
    settings = LoopSettings(
        callback,
        verbose,
        max_iterations,
        patience,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        mark=(tolerances,),
    )
    return descend("gradient_descent", kernels, GradientDescentOptions(tolerances=tolerances), problem, settings)
