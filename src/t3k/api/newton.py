"""The optimizer `newton_cg`."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.fit_loop import FitLoop, Step
from t3k.api.fit_stats import FitInfo, FitStats
from t3k.api.fitting import FitProblem, LoopSettings, fit_problem
from t3k.api.geometry import Geometry
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels import newton
from t3k.kernels.newton import NewtonOptions
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.status import Tolerances

__all__ = ["default_tolerance", "descend", "newton_cg"]


def default_tolerance(dtype: Any) -> float:
    """The fall of the gradient's norm with which a fit has converged where nothing else is said: ``eps**0.6``."""
    return float(jnp.finfo(dtype).eps) ** 0.6


def newton_cg(
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
    max_iterations: int = 50,
    gradient_tolerance: float | None = None,
    loss_tolerance: float = 0.0,
    max_cg: int = 200,
    forcing_power: float = 0.5,
    checkpoint: Any = None,
    checkpoint_every: int = 1,
    resume: bool = False,
) -> tuple[TuckerTensorTrain, FitStats]:
    """Fits a T3 to measurements by the Gauss-Newton method, with CG inside and Armijo's line search.

    Minimizes ``1/2 sum (weight (measure(x) - data))^2 + regularizer(x)`` over tensors of the ranks of `x0`. One
    iteration is one compiled function, streamed over the samples, so that its memory does not grow with their number;
    a second fit with data of the same shapes compiles nothing.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: ``"probe"``, ``"apply"``, ``"entries"``, one of these with ``"_derivatives"``, or a kind object.
      sample: where the tensor was measured: vectors ``ww`` with ``W + (N_i,)`` per mode, or for entries integers W per
        mode; with derivatives a pair of that and directions ``pp``.
      data: what was measured: ``W + (N_i,)`` per mode for probes, W for the others; derivatives have ``(order+1,)`` in
        front.
      x0: where to start, without a stack; it gives ranks and dtype. On the manifold `TuckerTensorTrain.zeros` will do.
      order: the highest derivative, where the kind is a name and has them.
      weight: multiplies the residuals: for probes one row per mode and one column per order (or one number per mode),
        else one number per order.
      sample_weight: multiplies the residuals of each sample, shape W; what has weight 0 does not count.
      regularizer: added to the misfit, such as `t3k.Tikhonov`.
      validation: ``(sample, data)`` that are not fitted; their loss goes into ``stats.validation_losses``.
      patience: end where the validation loss has not fallen for so many iterations, and return the point at which it
        was lowest.
      chunk_size: probes at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.
      callback: called with a `FitInfo` after each iteration; the fit stops where it returns True.
      verbose: True prints a line per iteration, ``"bar"`` shows a progress bar (extra ``progress``).
      max_iterations: iterations at the most.
      gradient_tolerance: the fit has converged where the gradient's norm has fallen by this factor; by default
        ``eps**0.6`` of the dtype, which is 4e-10 in float64.
      loss_tolerance: it has also converged where an iteration lowers the loss by less than this fraction of it; for
        data that no tensor of these ranks fits exactly, 1e-3 or so.
      max_cg: CG iterations in one step at the most.
      forcing_power: CG solves to the relative residual ``min(1/2, (|g| / |g_0|)**forcing_power)``.
      checkpoint: a file to write the state of the fit to, atomically.
      checkpoint_every: iterations between two writes.
      resume: go on from that file if it exists; a fit that was killed then ends as if it had not been, bit for bit.

    Returns:
      The fitted tensor (minimal ranks and orthogonal cores on the manifold), and `FitStats`. A fit that does not
      converge says so in ``stats.status``; it returns the last point at which everything was finite.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample or data are not finite; before any compilation.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 6.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6, 7), (2, 2, 2), (1, 2, 2, 1))
      >>> keys = jax.random.split(jax.random.key(1), 3)
      >>> ww = tuple(jax.random.normal(k, (60, N)) for k, N in zip(keys, x.shape))
      >>> x0 = t3k.TuckerTensorTrain.zeros(x.shape, x.tucker_ranks, x.tt_ranks)
      >>> x_fit, stats = t3k.newton_cg(t3k.MANIFOLD, "probe", ww, x.probe(ww), x0)
      >>> stats.status, bool((x_fit - x).norm() < 1e-6 * x.norm())
      ('converged', True)
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
    options = NewtonOptions(max_cg=max_cg, forcing_power=forcing_power, tolerances=tolerances)
    settings = LoopSettings(
        callback,
        verbose,
        max_iterations,
        patience,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        mark=options,
    )
    return descend("newton_cg", newton, options, problem, settings)


#: Gauss-Newton products of a fit, of which most take a few tens.
_PRODUCTS = 60


def descend(
    name: str, method: Any, options: Any, problem: FitProblem, settings: LoopSettings
) -> tuple[TuckerTensorTrain, FitStats]:
    """Runs an optimizer whose every step lowers the loss of all data; `method` is its module of kernels."""
    program = compiled.optimizer_step(method.update, problem.is_small(_PRODUCTS))
    state = compiled.optimizer_init(method.init, problem.objective, problem.x0.cores)
    return FitLoop(name, problem, settings, Step(program, problem.objective, options, problem), state).run()
