"""What a fit tells: to a callback as it goes, and about itself when it has ended."""

from dataclasses import dataclass, field
from typing import NamedTuple

from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.status import Reason

__all__ = ["FitInfo", "FitStats", "words"]


class FitInfo(NamedTuple):
    """What a callback sees: `loss`, `validation_loss` and `x` are those of the new point."""

    iteration: int
    x: TuckerTensorTrain
    loss: float
    gradient_norm: float
    cg_iterations: int
    step_size: float
    validation_loss: float | None = None


@dataclass
class FitStats:
    """How a fit went.

    `status` is ``"converged"``, ``"max_iterations"``, ``"line_search_failed"``, ``"non_finite"`` or ``"stopped"`` (by
    the callback, or because the validation loss rose), and `message` says it in words. `losses` begins with the
    start's and ends with that of the point returned, `steps` are the iterations that they were taken after, and
    `validation_losses`, where there is validation data, go with them. The other lists have one entry for each loss
    but the first; `cg_iterations` is empty for optimizers without CG. `scratch_bytes` is what a compiled step takes
    besides the data, the point and the state, on each device; None where the backend does not tell.
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
    steps: list[int] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    scratch_bytes: int | None = None

    def __str__(self) -> str:
        """One line."""
        loss = f"loss {self.losses[0]:.3e} -> {self.losses[-1]:.3e}" if self.losses else "no loss"
        return f"{self.status} after {self.iterations} iterations, {loss}, {self.seconds:.2f} s. {self.message}"

    def cut(self, length: int) -> None:
        """Keeps the history up to its first `length` losses."""
        for values in (self.losses, self.steps, self.validation_losses):
            del values[length:]
        for others in (self.gradient_norms, self.step_sizes, self.cg_iterations):
            del others[max(length - 1, 0) :]
        self.iterations = self.steps[-1] if self.steps else 0


#: Status and sentence for each way in which an optimizer itself ends.
_WORDS = {
    Reason.ZERO_LOSS: ("converged", "The loss is zero."),
    Reason.SMALL_GRADIENT: ("converged", "The gradient has fallen by {fall:.1e}."),
    Reason.SMALL_DECREASE: ("converged", "The last iteration lowered the loss by a fraction of {decrease:.1e}."),
    Reason.WITHIN_ROUNDING: ("converged", "No further decrease is possible within rounding."),
    Reason.SADDLE: (
        "line_search_failed",
        "The gradient vanishes at the start, although the loss does not: x0 is a saddle, as zero cores are on "
        "t3k.COREWISE. Start from TuckerTensorTrain.randn, or fit on t3k.MANIFOLD.",
    ),
    Reason.NO_DECREASE: ("line_search_failed", "No step decreased the loss at iteration {iteration}."),
    Reason.NON_FINITE: (
        "non_finite",
        "The loss or its gradient was not finite at iteration {iteration}; the last finite point is returned.",
    ),
}


def words(reason: Reason, *, iteration: int, fall: float, decrease: float) -> tuple[str, str]:
    """Status and message of a fit that ended for a reason.

    Example:
      >>> words(Reason.SMALL_GRADIENT, iteration=3, fall=1e-10, decrease=0.5)
      ('converged', 'The gradient has fallen by 1.0e-10.')
    """
    status, sentence = _WORDS[reason]
    return status, sentence.format(iteration=iteration, fall=fall, decrease=decrease)
