"""Minibatches drawn by a key, and what a step on one of them can tell."""

from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.measurements import MeasurementKind, take_rows
from t3k.kernels.status import Reason
from t3k.kernels.stored_arrays import flatten_stored
from t3k.kernels.types import Array

__all__ = ["count_rows", "draw_rows", "judge_batch"]


def count_rows(kind: MeasurementKind, data: Any) -> int:
    """The number of rows in the data of a kind."""
    axis, leaf = jax.tree.leaves(kind.data_axes)[0], flatten_stored(data)[0][0]
    return leaf.shape[axis]


def draw_rows(kind: MeasurementKind, key: Array, batch_size: int | None, sample: Any, data: Any) -> tuple[Any, Any]:
    """The sample and data of `batch_size` rows, drawn independently with replacement; None takes all as they are."""
    if batch_size is None:
        return sample, data
    rows = jax.random.randint(key, (batch_size,), 0, count_rows(kind, data), jnp.int32)
    return take_rows(kind, sample, data, rows)


def judge_batch(loss: Array, gradient_norm: Array, iteration: Array) -> Array:
    """A `Reason` from what a batch shows: numbers that are not finite, or a start where the gradient vanishes."""
    finite = jnp.isfinite(loss) & jnp.isfinite(gradient_norm)
    saddle = (gradient_norm == 0) & (loss != 0) & (iteration == 0)
    codes = [jnp.int32(Reason.NON_FINITE), jnp.int32(Reason.SADDLE)]
    return jnp.select([~finite, saddle], codes, jnp.int32(Reason.RUNNING))
