"""The host loop around the compiled steps of every optimizer: it reads scalars and decides, and computes nothing."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t3k.api import compiled
from t3k.api.fit_stats import FitInfo, FitStats, words
from t3k.api.fitting import FitProblem, LoopSettings
from t3k.api.progress import progress_for
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.status import Reason
from t3k.kernels.stored_arrays import reading

__all__ = ["FitLoop"]

#: Checks in a row that must not lower the loss before it is taken to have settled.
_PLATEAU = 10


class FitLoop:
    """Runs one fit.

    A step is ``step(state, steps)`` and gives the next state and an info. Optimizers whose infos have no `new_loss`
    take `check_every` steps at a time, and the loss of all data is computed after each such round.

    Args:
      name: of the optimizer, for the progress bar.
      problem: what is fitted.
      settings: of the loop.
      step: compiled.
      state: the optimizer's, at the start.
    """

    def __init__(
        self, name: str, problem: FitProblem, settings: LoopSettings, step: Callable[..., Any], state: Any
    ) -> None:
        self.name, self.problem, self.settings, self.step, self.state = name, problem, settings, step, state
        self.stats = FitStats(chunk_size=problem.chunk_size)
        self.x = problem.x0
        self.reference_norm = 0.0
        self.ended: tuple[str, str] | None = None
        self.best = (float("inf"), problem.x0, 0)

    def run(self) -> tuple[TuckerTensorTrain, FitStats]:
        """The fitted tensor and how it went."""
        started = time.perf_counter()
        progress = progress_for(self.settings.verbose, self.settings.max_iterations, self.name)
        with progress as self.progress, reading(*self.problem.arrays):
            while self.ended is None and self.stats.iterations < self.settings.max_iterations:
                self._advance()
        self._finish()
        self.stats.seconds = time.perf_counter() - started
        return self.x, self.stats

    def _advance(self) -> None:
        """One step or round of steps, and what follows from it."""
        done, settings = self.stats.iterations, self.settings
        steps = min(settings.check_every, settings.max_iterations - done)
        state, info = self.step(self.state, jnp.int32(steps))
        info = jax.device_get(info)
        reason = Reason(int(state.status))
        if not self.stats.losses:
            self.reference_norm = float(info.gradient_norm)
            self._begin(info)
        if reason != Reason.RUNNING:
            self.ended = self._words(reason, info)
        if not info.accepted:
            return
        loss = float(info.new_loss) if hasattr(info, "new_loss") else self._loss(state)
        if not jnp.isfinite(loss):
            self.ended = self._words(Reason.NON_FINITE, info)
            return
        self.state = state
        self._record(done + steps, loss, info)
        self._decide()

    def _begin(self, info: Any) -> None:
        """The losses of the start."""
        start = float(info.loss) if hasattr(info, "new_loss") else self._loss(self.state)
        self.stats.losses.append(start)
        self.stats.steps.append(0)
        if self.problem.validation is not None:
            self._validate(self.state)

    def _loss(self, state: Any) -> float:
        problem = self.problem
        return float(compiled.objective_value(problem.objective, state.x, problem.sample, problem.data))

    def _validate(self, state: Any) -> None:
        validation = self.problem.validation
        assert validation is not None
        loss = float(compiled.objective_value(validation.objective, state.x, validation.sample, validation.data))
        self.stats.validation_losses.append(loss)
        if loss < self.best[0]:
            self.best = (loss, _tensor(state), len(self.stats.losses))

    def _record(self, iteration: int, loss: float, info: Any) -> None:
        stats = self.stats
        self.x = _tensor(self.state)
        stats.iterations = iteration
        stats.losses.append(loss)
        stats.steps.append(iteration)
        stats.gradient_norms.append(float(info.gradient_norm))
        stats.step_sizes.append(float(info.step_size))
        if hasattr(info, "cg_iterations"):
            stats.cg_iterations.append(int(info.cg_iterations))
        if self.problem.validation is not None:
            self._validate(self.state)
        self.progress.show(iteration, stats)

    def _decide(self) -> None:
        """Whether the callback, the validation loss or a plateau ends the fit; what the optimizer says comes last."""
        stats, settings = self.stats, self.settings
        if settings.callback is not None and settings.callback(self._info()):
            self.ended = "stopped", f"The callback stopped the fit after iteration {stats.iterations}."
        elif settings.patience is not None and stats.validation_losses and self.ended is None:
            if len(stats.losses) - self.best[2] >= settings.patience:
                self.ended = "stopped", "The validation loss no longer fell"
        elif settings.loss_tolerance is not None and len(stats.losses) > _PLATEAU:
            before, recent = min(stats.losses[:-_PLATEAU]), min(stats.losses[-_PLATEAU:])
            if recent >= (1 - settings.loss_tolerance) * before:
                self.ended = "converged", f"The loss has not fallen further in the last {_PLATEAU} checks."

    def _info(self) -> FitInfo:
        stats = self.stats
        return FitInfo(
            stats.iterations,
            self.x,
            stats.losses[-1],
            stats.gradient_norms[-1],
            stats.cg_iterations[-1] if stats.cg_iterations else 0,
            stats.step_sizes[-1],
            stats.validation_losses[-1] if stats.validation_losses else None,
        )

    def _words(self, reason: Reason, info: Any) -> tuple[str, str]:
        fall = float(info.gradient_norm) / (self.reference_norm or 1.0)
        decrease = 1 - float(getattr(info, "new_loss", info.loss)) / (float(info.loss) or 1.0)
        return words(reason, iteration=self.stats.iterations + 1, fall=fall, decrease=decrease)

    def _finish(self) -> None:
        """Status and message; with patience, back to the point that validated best."""
        stats = self.stats
        limit = f"max_iterations = {self.settings.max_iterations} was reached first."
        stats.status, stats.message = self.ended or ("max_iterations", limit)
        if self.settings.patience is not None and stats.validation_losses and self.best[2] < len(stats.losses):
            _, self.x, length = self.best
            stats.cut(length)
            stats.message = f"{stats.message.rstrip('.')}; the point of iteration {stats.iterations} validated best."
        stats.message += self.problem.note()


def _tensor(state: Any) -> TuckerTensorTrain:
    return TuckerTensorTrain(tuple(state.x.tucker), tuple(state.x.tt))
