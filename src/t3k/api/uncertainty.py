"""Whether to believe a fit: `error_bars`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.fitting import FitProblem, fit_problem
from t3k.api.geometry import COREWISE, Geometry
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import Array, T3Cores
from t3k.kernels.uncertainty import CGOptions

__all__ = ["ErrorBars", "error_bars"]


@dataclass(frozen=True)
class ErrorBars:
    """What the measurements leave open; `print` shows it.

    `values` are those of the quantity at the fit, an array, and `standard_errors` one standard deviation of each. Where
    `converged` is False, CG ended early, because the measurements hardly determine the quantity or iterations ran out,
    and the standard error is larger than the one given. Without a quantity, all three are None. `noise` is one standard
    deviation of a weighted residual. `total` is the root mean square of the error of the whole tensor (its Frobenius
    norm), and `total_spread` one standard deviation of that estimate.
    """

    noise: float
    values: Any = None
    standard_errors: Any = None
    converged: Any = None
    total: float | None = None
    total_spread: float | None = None

    def __str__(self) -> str:
        """A few lines."""
        lines = [f"noise of a residual {self.noise:.2e}"]
        if self.total is not None:
            lines.append(f"error of the whole tensor {self.total:.2e} (+- {self.total_spread:.0e})")
        if self.values is not None:
            bars = zip(*map(np.ravel, (self.values, self.standard_errors, self.converged)), strict=True)
            lines += [
                f"{value:.6g} +- {error:.1e}" + ("" if ended else " or more") for value, error, ended in list(bars)[:10]
            ]
            if np.size(self.values) > 10:
                lines.append(f"... and {np.size(self.values) - 10} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class _OfCores:
    """A quantity of a tensor as a function of cores; it hashes and compares as the quantity does."""

    quantity: Callable[[TuckerTensorTrain], Array]

    def __call__(self, x: T3Cores) -> Array:
        return jnp.asarray(self.quantity(TuckerTensorTrain(*x)))


def error_bars(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x: TuckerTensorTrain,
    quantity: Callable[[TuckerTensorTrain], Array] | None = None,
    *,
    order: int | None = None,
    weight: Any = None,
    sample_weight: Any = None,
    regularizer: Regularizer | None = None,
    noise: float | None = None,
    n_draws: int = 20,
    key: Array | None = None,
    tolerance: float = 1e-6,
    max_cg: int = 1000,
    chunk_size: int | str | None = "auto",
    memory: int | str | None = None,
) -> ErrorBars:
    """Standard errors of a fit, and of anything computed from it, by the covariance ``s^2 (J^T J)^{-1}``.

    They tell what noise in the data does to a fit that has converged, to first order. They do not tell of errors that
    the data cannot show, such as a rank that is too low. Each number of the quantity takes one solve by CG; everything
    is streamed over the samples, as in a fit.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: as all that follow, what the fit was called with; see `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      x: the fitted tensor.
      quantity: differentiable function of a tensor that returns an array, such as ``lambda x: x.entries(index)``.
      order: the highest derivative.
      weight: factors of the residuals.
      sample_weight: factors of each sample's residuals.
      regularizer: adds its Hessian: the covariance is then that of the posterior whose prior it stands for.
      noise: one standard deviation of a weighted residual; None estimates it by the residuals of the fit.
      n_draws: random tangents that estimate the error of the whole tensor, on a manifold; 0 leaves it out.
      key: of these, from `jax.random.key`.
      tolerance: relative residual of the solves.
      max_cg: iterations of a solve at the most.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.

    Returns:
      `ErrorBars`.

    Raises:
      ValueError: if `noise` is None and there are no more equations than free parameters, by which it is estimated.
      TypeError, ValueError: if another argument does not fit; before any compilation.

    References:
      D. M. Bates, D. G. Watts, "Nonlinear Regression Analysis and Its Applications", Wiley (1988), Section 2.2.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> data = x.apply(ww) + 0.1 * jax.random.normal(jax.random.key(7), (60,))
      >>> x_fit, _ = t3k.newton_cg(t3k.MANIFOLD, "apply", ww, data, x)
      >>> bars = t3k.error_bars(t3k.MANIFOLD, "apply", ww, data, x_fit, lambda x: x.entries(([0, 1], [2, 3])))
      >>> 0.05 < bars.noise < 0.2, bars.standard_errors.shape
      (True, (2,))
    """
    problem = fit_problem(
        geometry,
        kind,
        sample,
        data,
        x,
        order=order,
        weight=weight,
        sample_weight=sample_weight,
        regularizer=regularizer,
        chunk_size=chunk_size,
        memory=memory,
    )
    options = CGOptions(validate.as_tolerance("tolerance", tolerance), *validate.as_ranks("max_cg", (max_cg,)))
    draws = 0 if geometry == COREWISE else validate.as_count("n_draws", n_draws)
    key = jax.random.key(0) if key is None else key
    with reading(*problem.arrays):
        s = _estimated_noise(problem) if noise is None else validate.as_tolerance("noise", noise)
        return ErrorBars(s, *_of_quantity(problem, quantity, options, s), *_of_all(problem, options, draws, key, s))


def _estimated_noise(problem: FitProblem) -> float:
    """The root of the sum of squared residuals for each degree of freedom that is left."""
    equations, free = problem.equations, problem.free_parameters
    if equations <= free:
        raise ValueError(
            f"noise must be given where there are no more equations ({equations}) than parameters ({free})"
        )
    bare = problem.without_regularizer()
    loss = float(compiled.objective_value(bare.objective, bare.x0.cores, bare.sample, bare.data))
    return float(np.sqrt(2 * loss / (equations - free)))


def _of_quantity(problem: FitProblem, quantity: Any, options: CGOptions, noise: float) -> tuple[Any, Any, Any]:
    if quantity is None:
        return None, None, None
    values, unit = compiled.quantity_variances(
        problem.objective, _OfCores(quantity), options, problem.x0.cores, problem.sample
    )
    return values, noise * jnp.sqrt(unit.variances), unit.converged


def _of_all(problem: FitProblem, options: CGOptions, draws: int, key: Array, noise: float) -> tuple[Any, Any]:
    """Root mean square and its spread, that of the mean of the draws carried over to the root."""
    if not draws:
        return None, None
    unit = compiled.total_variances(problem.objective, options, draws, problem.x0.cores, problem.sample, key)
    trace = np.asarray(unit.variances, np.float64)
    total = noise * np.sqrt(trace.mean())
    spread = noise * trace.std() / np.sqrt(draws) / max(2 * np.sqrt(trace.mean()), np.finfo(float).tiny)
    return float(total), float(spread)
