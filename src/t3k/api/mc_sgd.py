"""The optimizer `mc_sgd`."""

from collections.abc import Callable
from typing import Any

import jax

from t3k.api import compiled
from t3k.api.fit_loop import FitLoop, Step
from t3k.api.fit_stats import FitInfo, FitStats
from t3k.api.fitting import LoopSettings, fit_problem
from t3k.api.geometry import Geometry
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels import mc_sgd as kernels
from t3k.kernels.mc_sgd import McSgdOptions
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.types import Array

__all__ = ["mc_sgd"]


def mc_sgd(
    geometry: Geometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    batch_size: int,
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
    damping: float = 1.0,
    checkpoint: Any = None,
    checkpoint_every: int = 1,
    resume: bool = False,
) -> tuple[TuckerTensorTrain, FitStats]:
    """Fits a T3 to measurements by stochastic gradient descent with the Cauchy step of each minibatch.

    An iteration draws `batch_size` samples, with replacement, and moves along their negative gradient by the length
    ``|g|^2 / |J g|^2`` that their Gauss-Newton model asks for, so there is no learning rate. Meant for `t3k.MANIFOLD`;
    on `t3k.COREWISE` prefer `adam`.

    Args:
      geometry: `t3k.MANIFOLD` or `t3k.COREWISE`.
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      x0: where to start.
      batch_size: samples in a minibatch. It must be well above the number of parameters that a sample sees, or the
        steps fit each minibatch instead of all of them; a smaller `damping` helps too.
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
      damping: factor on the step.
      checkpoint: a file to write the state of the fit to, atomically.
      checkpoint_every: checks between two writes.
      resume: go on from that file if it exists; a fit that was killed then ends as if it had not been, bit for bit.

    Returns:
      The fitted tensor, and `FitStats`.

    Raises:
      TypeError, ValueError: if an argument does not fit, or sample or data are not finite; before any compilation.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 5.3.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> x0 = t3k.TuckerTensorTrain.randn(jax.random.key(9), x.shape, (1, 1), (1, 1, 1))
      >>> x_fit, stats = t3k.mc_sgd(t3k.MANIFOLD, "probe", ww, x.probe(ww), x0, batch_size=20, max_iterations=50)
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
    batches, options = problem.on_batches_of(batch_size), McSgdOptions(batch_size, damping)
    program = compiled.optimizer_round(kernels.update, problem.is_small(max_iterations, batch_size))
    key = jax.random.key(0) if key is None else key
    state = compiled.optimizer_init(kernels.init, problem.objective, x0.cores, key)
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
        mark=options,
    )
    return FitLoop(
        "mc_sgd", problem, settings, Step(program, batches.objective, options, problem, counted=True), state
    ).run()
