"""How a fit stands: a code that rides in every optimizer's state, so that a compiled fit knows it too.

A state whose code is not `RUNNING` has ended: `update` leaves its point as it is. So a fit may be run in a `lax.scan`
of fixed length or mapped over many starts, each of which ends when it does.
"""

from enum import IntEnum
from typing import NamedTuple

import jax.numpy as jnp

from t3k.kernels.types import Array

__all__ = ["Progress", "Reason", "Tolerances", "judge"]


class Reason(IntEnum):
    """Why a fit ended, or that it has not."""

    RUNNING = 0
    ZERO_LOSS = 1
    SMALL_GRADIENT = 2
    SMALL_DECREASE = 3
    WITHIN_ROUNDING = 4
    SADDLE = 5
    NO_DECREASE = 6
    NON_FINITE = 7


class Tolerances(NamedTuple):
    """When a fit has converged: the gradient's norm has fallen by `gradient`, or a step lowers the loss by `loss`."""

    gradient: float = 0.0
    loss: float = 0.0


class Progress(NamedTuple):
    """What a step found: the loss before it, loss and gradient after it, and what its model had promised."""

    loss: Array
    new_loss: Array
    new_gradient_norm: Array
    predicted_decrease: Array
    accepted: Array


def judge(step: Progress, reference_norm: Array, starting: Array, tolerances: Tolerances) -> Array:
    """The code with which a step leaves the fit; a start is converged only where nothing is left to fit.

    Whether a loss that falls no further is what rounding leaves of the data takes another look at them, see
    `Objective.rounding`.

    Args:
      step: what it found.
      reference_norm: the norm of the first gradient.
      starting: whether it was no step, but the start's measurement.
      tolerances: static.

    Returns:
      A `Reason` as a scalar int32.
    """
    loss, new_loss, norm, predicted, accepted = step
    eps = jnp.finfo(loss.dtype).eps
    rules = (
        ((starting & ~accepted) | ~jnp.isfinite(norm), Reason.NON_FINITE),
        (new_loss == 0, Reason.ZERO_LOSS),
        (starting & (norm == 0), Reason.SADDLE),
        (starting, Reason.RUNNING),
        (~accepted & (predicted <= 100 * eps * loss), Reason.WITHIN_ROUNDING),
        (~accepted, Reason.NO_DECREASE),
        (norm <= tolerances.gradient * reference_norm, Reason.SMALL_GRADIENT),
        (loss - new_loss < tolerances.loss * loss, Reason.SMALL_DECREASE),
    )
    conditions, reasons = zip(*rules, strict=True)
    return jnp.select(conditions, [jnp.int32(reason) for reason in reasons], jnp.int32(Reason.RUNNING))
