"""The optimizer `adam`, and any other gradient transformation of Optax."""

import functools
from collections.abc import Callable
from typing import Any

import jax

from t3k.api import compiled
from t3k.api.fit_loop import FitLoop, Step
from t3k.api.fit_stats import FitInfo, FitStats
from t3k.api.fitting import LoopSettings, fit_problem
from t3k.api.geometry import Geometry
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels import adam as kernels
from t3k.kernels.adam import AdamOptions
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.types import Array

__all__ = ["adam"]


@functools.cache
def _optax_adam(learning_rate: Any) -> Any:
    """The same object for the same rate, so that a second fit finds the compiled step of the first."""
    try:
        import optax
    except ImportError:
        raise ImportError('adam needs optax: pip install "t3k[optimizers]"') from None
    return optax.adam(learning_rate)


def adam(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    learning_rate: float | Callable[[Any], Any] = 1e-2,
    transformation: Any = None,
    batch_size: int | None = None,
    key: Array | None = None,
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
    max_iterations: int = 1000,
    check_every: int = 25,
    loss_tolerance: float | None = None,
    checkpoint: Any = None,
    checkpoint_every: int = 1,
    resume: bool = False,
) -> tuple[TuckerTensorTrain, FitStats]:
    """Fits a T3 to measurements by Adam, or by any gradient transformation of Optax.

    On `t3k.COREWISE` an iteration is exactly Optax's on the pytree of cores. On `t3k.MANIFOLD` the tangents in the
    transformation's state are carried from one tangent space to the next by projection; running means of squares stay
    with their coordinates.

    Args:
      geometry: `t3k.COREWISE`, for which Adam is meant, or `t3k.MANIFOLD`.
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      x0: where to start; zero cores are a saddle on `t3k.COREWISE`.
      learning_rate: Adam's, a number or a schedule of Optax.
      transformation: of Optax, to take in place of Adam; keep the object for a second fit that compiles nothing.
      batch_size: samples in a minibatch, drawn with replacement; None takes all in every iteration.
      key: of all draws, from `jax.random.key`; ``jax.random.key(0)`` if None.
      order: as all that follow, see `newton_cg`.
      weight: factors of the residuals.
      sample_weight: factors of each sample's residuals.
      regularizer: added to the misfit; each minibatch sees its share of it.
      validation: ``(sample, data)`` that are not fitted.
      patience: checks without a lower validation loss after which to end.
      chunk_size: samples at a time, None for a whole minibatch, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.
      callback: called with a `FitInfo` after each check; the fit stops where it returns True.
      verbose: True prints a line per check, ``"bar"`` shows a progress bar.
      max_iterations: iterations at the most.
      check_every: iterations between two checks, at which the loss of all data is computed.
      loss_tolerance: the fit has converged where ten checks in a row have not lowered the loss by this fraction; None
        goes on to `max_iterations`.
      checkpoint: a file to write the state of the fit to, atomically.
      checkpoint_every: checks between two writes.
      resume: go on from that file if it exists; a fit that was killed then ends as if it had not been, bit for bit.

    Returns:
      The fitted tensor, and `FitStats`.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample or data are not finite; before any compilation.
      ImportError: if Optax is needed and not installed (extra ``optimizers``).

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> x0 = t3k.TuckerTensorTrain.randn(jax.random.key(9), x.shape, (1, 1), (1, 1, 1))
      >>> x_fit, stats = t3k.adam(t3k.COREWISE, "probe", ww, x.probe(ww), x0, learning_rate=0.05, max_iterations=200)
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
        batch_size=batch_size,
    )
    options = AdamOptions(_optax_adam(learning_rate) if transformation is None else transformation, batch_size)
    batches, key = problem.on_batches_of(batch_size), jax.random.key(0) if key is None else key
    program = compiled.optimizer_round(kernels.update, problem.is_small(max_iterations, batch_size))
    state = compiled.adam_init(problem.objective, options, x0.cores, key)
    settings = LoopSettings(
        callback,
        verbose,
        max_iterations,
        patience,
        check_every,
        loss_tolerance,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        mark=(batch_size, learning_rate if transformation is None else "a transformation"),
    )
    return FitLoop(
        "adam", problem, settings, Step(program, batches.objective, options, problem, counted=True), state
    ).run()
