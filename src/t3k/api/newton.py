"""The optimizer `newton_cg`: a host loop around one compiled Newton step."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.geometry import Geometry
from t3k.api.kinds import as_kind
from t3k.api.progress import Progress, progress_for
from t3k.api.sharding import spread_kind
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.newton import NewtonOptions, NewtonStep
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import T3Cores

__all__ = ["FitInfo", "FitStats", "newton_cg"]

#: Floating-point operations of a Gauss-Newton product below which compiling takes longer than all that is run.
_SMALL_WORK = 2e7


class FitInfo(NamedTuple):
    """What a callback sees after each iteration; `loss` and `x` are those of the new point."""

    iteration: int
    x: TuckerTensorTrain
    loss: float
    gradient_norm: float
    cg_iterations: int
    step_size: float


@dataclass
class FitStats:
    """How a fit went.

    `status` is ``"converged"``, ``"max_iterations"``, ``"line_search_failed"``, ``"non_finite"`` or ``"stopped"`` (by
    the callback), and `message` says it in words. `losses` begins with the start's and ends with that of the point
    returned; the other lists have one entry per iteration.
    """

    status: str = "max_iterations"
    message: str = ""
    iterations: int = 0
    losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    cg_iterations: list[int] = field(default_factory=list)
    step_sizes: list[float] = field(default_factory=list)
    seconds: float = 0.0
    chunk_size: int | None = None

    def __str__(self) -> str:
        """One line."""
        loss = f"loss {self.losses[0]:.3e} -> {self.losses[-1]:.3e}" if self.losses else "no loss"
        return f"{self.status} after {self.iterations} iterations, {loss}, {self.seconds:.2f} s. {self.message}"


def newton_cg(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    order: int | None = None,
    weight: Any = None,
    chunk_size: int | str | None = "auto",
    callback: Callable[[FitInfo], bool | None] | None = None,
    verbose: bool | str = False,
    max_iterations: int = 50,
    gradient_tolerance: float | None = None,
    loss_tolerance: float = 0.0,
    max_cg: int = 200,
    forcing_power: float = 0.5,
) -> tuple[TuckerTensorTrain, FitStats]:
    """Fits a T3 to measurements by the Gauss-Newton method, with CG inside and Armijo's line search.

    Minimizes ``1/2 sum (weight (measure(x) - data))^2`` over tensors of the ranks of `x0`. One iteration is one
    compiled function, streamed over the samples, so that its memory does not grow with their number; a second fit
    with data of the same shapes compiles nothing.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: ``"probe"``, ``"probe_derivatives"``, or a kind object.
      sample: for ``"probe"``, one array ``W + (N_i,)`` per mode; for ``"probe_derivatives"``, ``(ww, pp)``.
      data: ``W + (N_i,)`` or ``(order+1,) + W + (N_i,)`` per mode.
      x0: where to start, without a stack; it gives ranks and dtype. On the manifold `TuckerTensorTrain.zeros` will do.
      order: the highest derivative, where the kind is a name and has them.
      weight: multiplies the residuals, one row per mode and one column per order (or one number per mode).
      chunk_size: probes at a time, None for all at once, or ``"auto"``.
      callback: called with a `FitInfo` after each iteration; the fit stops where it returns True.
      verbose: True prints a line per iteration, ``"bar"`` shows a progress bar (extra ``progress``).
      max_iterations: iterations at the most.
      gradient_tolerance: the fit has converged where the gradient's norm has fallen by this factor; by default
        ``eps**0.6`` of the dtype, which is 4e-10 in float64.
      loss_tolerance: it has also converged where an iteration lowers the loss by less than this fraction of it; for
        data that no tensor of these ranks fits exactly, 1e-3 or so.
      max_cg: CG iterations in one step at the most.
      forcing_power: CG solves to the relative residual ``min(1/2, (|g| / |g_0|)**forcing_power)``.

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
    _check(geometry, x0, max_iterations)
    kind = as_kind(kind, order, weight, chunk_size)
    kernel_kind, sample, data = kind.prepare(x0, sample, data)
    kernel_kind = spread_kind(kernel_kind, sample)
    validate.require_finite("x0: tucker_cores", x0.tucker_cores, "row")
    validate.require_finite("x0: tt_cores", x0.tt_cores, "position")
    tolerance = float(jnp.finfo(x0.dtype).eps) ** 0.6 if gradient_tolerance is None else gradient_tolerance
    options = NewtonOptions(max_cg=max_cg, forcing_power=forcing_power)
    step = partial(
        compiled.newton_step(_work(x0, kernel_kind, data) < _SMALL_WORK), geometry.kernel, kernel_kind, options
    )
    with progress_for(verbose, max_iterations) as progress, reading(sample, data):
        return _iterate(
            lambda x, norm: step(x, sample, data, jnp.asarray(norm, x0.dtype)),
            x0,
            FitStats(chunk_size=kernel_kind.chunk_size),
            progress,
            callback,
            max_iterations,
            (tolerance, validate.as_tolerance("loss_tolerance", loss_tolerance)),
        )


def _work(x: TuckerTensorTrain, kind: Any, data: Any) -> float:
    """Roughly the floating-point operations of one Gauss-Newton product."""
    cores = sum(G.size for G in x.tt_cores) + sum(U.size for U in x.tucker_cores)
    return 40.0 * (kind.order + 1) * cores * data[0].shape[1]


def _check(geometry: Any, x0: Any, max_iterations: Any) -> None:
    if not isinstance(geometry, Geometry):
        raise TypeError(f"geometry must be t3k.MANIFOLD or t3k.COREWISE; got {geometry!r:.60}")
    if not isinstance(x0, TuckerTensorTrain):
        raise TypeError(f"x0 must be a TuckerTensorTrain; got {type(x0).__name__}")
    if x0.stack_shape:
        raise ValueError(f"x0 must be a single tensor; got a stack of shape {x0.stack_shape}")
    validate.as_ranks("max_iterations", (max_iterations,))


def _iterate(
    step: Callable[[T3Cores, float], NewtonStep],
    x0: TuckerTensorTrain,
    stats: FitStats,
    progress: Progress,
    callback: Callable[[FitInfo], bool | None] | None,
    max_iterations: int,
    tolerances: tuple[float, float],
) -> tuple[TuckerTensorTrain, FitStats]:
    """The host loop: it reads scalars and decides; all arithmetic is in `step`."""
    started, x, first = time.perf_counter(), x0, math.inf
    stats.message = f"The gradient had not fallen by {tolerances[0]:.1e} when max_iterations was reached."
    for iteration in range(1, max_iterations + 1):
        result = step(x.cores, first)
        scalars = jax.device_get(NewtonStep(T3Cores((), ()), *result[1:]))
        if iteration == 1:
            first = float(scalars.gradient_norm)
            stats.losses.append(float(scalars.loss))
        verdict = _verdict(scalars, first, tolerances, iteration, float(jnp.finfo(x0.dtype).eps))
        if verdict is not None and not scalars.accepted:
            stats.status, stats.message = verdict
            break
        x = TuckerTensorTrain(tuple(result.x.tucker), tuple(result.x.tt))
        stats.iterations = iteration
        stats.losses.append(float(scalars.new_loss))
        stats.gradient_norms.append(float(scalars.gradient_norm))
        stats.cg_iterations.append(int(scalars.cg_iterations))
        stats.step_sizes.append(float(scalars.step_size))
        progress.show(iteration, stats)
        info = FitInfo(
            iteration, x, stats.losses[-1], stats.gradient_norms[-1], stats.cg_iterations[-1], stats.step_sizes[-1]
        )
        if callback is not None and callback(info):
            stats.status, stats.message = "stopped", f"The callback stopped the fit after iteration {iteration}."
            break
        if verdict is not None:
            stats.status, stats.message = verdict
            break
    stats.seconds = time.perf_counter() - started
    return x, stats


def _verdict(
    step: Any, first: float, tolerances: tuple[float, float], iteration: int, eps: float
) -> tuple[str, str] | None:
    """Why the fit ends with this step, or None; a start is never converged unless nothing is left to fit."""
    norm, loss = float(step.gradient_norm), float(step.loss)
    if not (math.isfinite(norm) and math.isfinite(loss)):
        where = "at the start" if iteration == 1 else f"at iteration {iteration}"
        return "non_finite", f"The loss or its gradient was not finite {where}; the last finite point is returned."
    if loss == 0:
        return "converged", "The loss is zero."
    if norm == 0 and iteration == 1:
        return "line_search_failed", (
            "The gradient vanishes at the start, although the loss does not: x0 is a saddle, as zero cores are on "
            "t3k.COREWISE. Start from TuckerTensorTrain.randn, or fit on t3k.MANIFOLD."
        )
    if iteration > 1 and norm <= tolerances[0] * first:
        return "converged", f"The gradient has fallen by {norm / first:.1e}."
    if not step.accepted:
        if float(step.predicted_decrease) <= 100 * eps * loss:
            return "converged", "No further decrease is possible within rounding."
        return "line_search_failed", f"No step decreased the loss at iteration {iteration}."
    decrease = (loss - float(step.new_loss)) / loss
    if decrease < tolerances[1]:
        return "converged", f"The last iteration lowered the loss by a fraction of {decrease:.1e}."
    return None
