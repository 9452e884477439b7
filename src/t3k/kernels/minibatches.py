"""Minibatches drawn by a key, and what a step on one of them can tell."""

from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.measurements import MeasurementKind, take_rows
from t3k.kernels.reducers import concat
from t3k.kernels.row_axes import leaf_axes
from t3k.kernels.sharded import mesh_axes, n_shards, over_shards
from t3k.kernels.sharded_kind import ShardedKind
from t3k.kernels.status import Reason
from t3k.kernels.stored_arrays import flatten_stored
from t3k.kernels.types import Array

__all__ = ["count_rows", "draw_rows", "judge_batch"]


def count_rows(kind: MeasurementKind, data: Any) -> int:
    """The number of rows in the data of a kind."""
    axis, leaf = jax.tree.leaves(kind.data_axes)[0], flatten_stored(data)[0][0]
    return leaf.shape[axis]


def draw_rows(kind: MeasurementKind, key: Array, batch_size: int | None, sample: Any, data: Any) -> tuple[Any, Any]:
    """The sample and data of `batch_size` rows, drawn independently with replacement; None takes all as they are.

    Where rows are spread over devices, each draws its share of the batch among its own rows, and keeps it.
    """
    if batch_size is None:
        return sample, data
    if isinstance(kind, ShardedKind):
        return _draw_on_devices(kind, key, batch_size, sample, data)
    rows = jax.random.randint(key, (batch_size,), 0, count_rows(kind, data), jnp.int32)
    return take_rows(kind, sample, data, rows)


def _draw_on_devices(kind: ShardedKind, key: Array, batch_size: int, sample: Any, data: Any) -> tuple[Any, Any]:
    """No row leaves its device; what all rows share is not passed through, since it is on every device."""
    leaves, structure = jax.tree.flatten((sample, data))
    axes = leaf_axes((kind.sample_axes, kind.data_axes), (sample, data))
    spread = [(i, axis) for i, axis in enumerate(axes) if axis is not None]

    def local(shard: tuple[list[Array], Array]) -> list[Array]:
        own, key_data = shard
        own_key = jax.random.fold_in(jax.random.wrap_key_data(key_data), jax.lax.axis_index(mesh_axes(kind.sharding)))
        count, share = own[0].shape[spread[0][1]], batch_size // n_shards(kind.sharding)
        rows = jax.random.randint(own_key, (share,), 0, count, jnp.int32)
        return [jnp.take(x, rows, axis=axis) for x, (_, axis) in zip(own, spread, strict=True)]

    xs, xs_axes = ([leaves[i] for i, _ in spread], jax.random.key_data(key)), ([axis for _, axis in spread], None)
    reducers = [concat(axis) for _, axis in spread]
    drawn = over_shards(local, xs, reducers, sharding=kind.sharding, axes=xs_axes)
    for (i, _), x in zip(spread, drawn, strict=True):
        leaves[i] = x
    return jax.tree.unflatten(structure, leaves)


def judge_batch(loss: Array, gradient_norm: Array, iteration: Array) -> Array:
    """A `Reason` from what a batch shows: numbers that are not finite, or a start where the gradient vanishes."""
    finite = jnp.isfinite(loss) & jnp.isfinite(gradient_norm)
    saddle = (gradient_norm == 0) & (loss != 0) & (iteration == 0)
    codes = [jnp.int32(Reason.NON_FINITE), jnp.int32(Reason.SADDLE)]
    return jnp.select([~finite, saddle], codes, jnp.int32(Reason.RUNNING))
