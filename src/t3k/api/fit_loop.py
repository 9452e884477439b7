"""The host loop around the compiled steps of every optimizer: it reads scalars and decides, and computes nothing."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled
from t3k.api.checkpoints import fingerprint, load_fit, save_fit
from t3k.api.fit_stats import FitInfo, FitStats, words
from t3k.api.fitting import FitProblem, LoopSettings
from t3k.api.progress import progress_for
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.status import Reason
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import T3Cores

__all__ = ["FitLoop", "Step"]

#: Checks in a row that must not lower the loss before it is taken to have settled.
_PLATEAU = 10


@dataclass(frozen=True)
class Step:
    """A compiled step, or round of steps, of an optimizer on all that it needs besides its state.

    Args:
      program: from `compiled.optimizer_step`, or `compiled.optimizer_round` where it takes a number of steps.
      objective: what is minimized.
      options: of the optimizer.
      problem: gives sample and data.
      counted: whether the program takes a number of steps.
    """

    program: Any
    objective: Any
    options: Any
    problem: FitProblem
    counted: bool = False

    def _arguments(self, state: Any, steps: Any) -> tuple[Any, ...]:
        given = self.objective, self.options, state, self.problem.sample, self.problem.data
        return (*given, steps) if self.counted else given

    def __call__(self, state: Any, steps: Any) -> tuple[Any, Any]:
        """The next state, and an info."""
        return self.program(*self._arguments(state, steps))

    def scratch_bytes(self, state: Any, steps: Any) -> int | None:
        """What the program takes besides its arguments and results; it is not compiled again where it has run."""
        analysis = self.program.lower(*self._arguments(state, steps)).compile().memory_analysis()
        return None if analysis is None else int(analysis.temp_size_in_bytes)


class FitLoop:
    """Runs one fit.

    Optimizers whose infos have no `new_loss` take `check_every` steps at a time, and the loss of all data is computed
    after each such round.

    Args:
      name: of the optimizer, for the progress bar.
      problem: what is fitted.
      settings: of the loop.
      step: of the optimizer.
      state: the optimizer's, at the start.
    """

    def __init__(self, name: str, problem: FitProblem, settings: LoopSettings, step: Step, state: Any) -> None:
        self.name, self.problem, self.settings, self.step, self.state = name, problem, settings, step, state
        self.stats = FitStats(chunk_size=problem.chunk_size)
        self.x = problem.x0
        self.reference_norm = 0.0
        self.ended: tuple[str, str] | None = None
        #: The point of the lowest validation loss, and the length of the history there.
        self.best: tuple[Any, int] = state.x, 0

    def run(self) -> tuple[TuckerTensorTrain, FitStats]:
        """The fitted tensor and how it went."""
        started = time.perf_counter()
        self._resume()
        started -= self.stats.seconds
        showing = progress_for(self.settings.verbose, self.settings.max_iterations, self.name)
        with showing as self.progress, reading(*self.problem.arrays):
            while self.ended is None and self.stats.iterations < self.settings.max_iterations:
                self._advance()
                self.stats.seconds = time.perf_counter() - started
                self._save()
        self._finish()
        return self.x, self.stats

    def _advance(self) -> None:
        """One step or round of steps, and what follows from it."""
        done, settings = self.stats.iterations, self.settings
        steps = min(settings.check_every, settings.max_iterations - done)
        state, info = self.step(self.state, np.int32(steps))
        if self.stats.scratch_bytes is None:
            self.stats.scratch_bytes = self.step.scratch_bytes(self.state, np.int32(steps))
        info = jax.device_get(info)
        reason = self._reason(state)
        if not self.stats.losses:
            self.reference_norm = float(getattr(info, "new_gradient_norm", info.gradient_norm))
            self._begin(info)
        if reason != Reason.RUNNING:
            self.ended = self._words(reason, info)
        if not info.accepted:
            return
        if int(state.iteration) == 0:  # the start has been measured, and no step taken
            self.state = state
            return
        loss = float(info.new_loss) if hasattr(info, "new_loss") else self._loss(state)
        if not math.isfinite(loss):
            self.ended = self._words(Reason.NON_FINITE, info)
            return
        self.state = state
        self._record(done + steps, loss, info)
        self._decide()

    def _reason(self, state: Any) -> Reason:
        """The state's; a loss that falls no further may be what rounding leaves, for which the data are read again."""
        reason = Reason(int(state.status))
        if reason != Reason.NO_DECREASE:
            return reason
        problem = self.problem
        floor = compiled.objective_rounding(problem.objective, state.x, problem.sample, problem.data)
        return Reason.WITHIN_ROUNDING if state.model.loss <= floor else reason

    def _resume(self) -> None:
        """Goes back to where the checkpoint was written, if there is one."""
        settings = self.settings
        if settings.checkpoint is None:
            return
        problem = self.problem
        self.mark = fingerprint(self.name, settings.mark, problem.objective, problem.sample, problem.data, problem.x0)
        if settings.resume and Path(settings.checkpoint).exists():
            kept, self.stats = load_fit(settings.checkpoint, self.mark, self._kept())
            self.state, point, length, reference_norm = kept
            self.best, self.reference_norm = (point, int(length)), float(reference_norm)
            self.x = _tensor(self.state.x)

    def _kept(self) -> Any:
        """All that the loop goes on from, besides the history."""
        point, length = self.best
        return self.state, point, jnp.int32(length), jnp.asarray(self.reference_norm)

    def _save(self) -> None:
        checks, settings = len(self.stats.losses) - 1, self.settings
        if settings.checkpoint is not None and (checks % settings.checkpoint_every == 0 or self.ended):
            save_fit(settings.checkpoint, self.mark, self._kept(), self.stats)

    def _begin(self, info: Any) -> None:
        """The losses of the start."""
        start = float(info.new_loss) if hasattr(info, "new_loss") else self._loss(self.state)
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
        if loss < min([*self.stats.validation_losses[:-1], float("inf")]):
            self.best = state.x, len(self.stats.losses)

    def _record(self, iteration: int, loss: float, info: Any) -> None:
        stats = self.stats
        self.x = _tensor(self.state.x)
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
            if len(stats.losses) - self.best[1] >= settings.patience:
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
        fall = float(getattr(info, "new_gradient_norm", info.gradient_norm)) / (self.reference_norm or 1.0)
        decrease = 1 - float(getattr(info, "new_loss", info.loss)) / (float(info.loss) or 1.0)
        return words(reason, iteration=self.stats.iterations + 1, fall=fall, decrease=decrease)

    def _finish(self) -> None:
        """Status and message; with patience, back to the point that validated best."""
        stats = self.stats
        limit = f"max_iterations = {self.settings.max_iterations} was reached first."
        stats.status, stats.message = self.ended or ("max_iterations", limit)
        if self.settings.patience is not None and stats.validation_losses and self.best[1] < len(stats.losses):
            point, length = self.best
            self.x = _tensor(point)
            stats.cut(length)
            stats.message = f"{stats.message.rstrip('.')}; the point of iteration {stats.iterations} validated best."
        stats.message += self.problem.note()


def _tensor(x: T3Cores) -> TuckerTensorTrain:
    return TuckerTensorTrain(tuple(x.tucker), tuple(x.tt))
