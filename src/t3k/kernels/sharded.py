"""Reductions over rows that are spread over devices.

Every device reduces its own rows, and their results meet once, at the end: sums by one all-reduce, rows not at all.
It is `jax.shard_map` around the same loop over chunks as on one device. Left to the compiler alone, slicing chunks out
of rows on several devices would gather all of them on each.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from t3k.kernels.row_axes import leaf_axes
from t3k.kernels.types import Array
from t3k.kernels.varying import vary_over

__all__ = ["mesh_axes", "n_shards", "over_shards", "row_sharding"]


def row_sharding(x: Any, axis: int = 0) -> NamedSharding | None:
    """How the rows of an array are spread over devices: a sharding of that axis alone, or None if they are not.

    Arrays tell where they lie; inside `jax.jit` they do if the mesh axes are of type `jax.sharding.AxisType.Explicit`.

    Example:
      >>> import jax.numpy as jnp
      >>> sharding = NamedSharding(jax.make_mesh((jax.device_count(),), ("w",)), PartitionSpec("w"))
      >>> row_sharding(jnp.zeros(8)) is None, row_sharding(jax.device_put(jnp.zeros(8), sharding)) == sharding
      (True, True)
    """
    sharding = jax.typeof(x).sharding if isinstance(x, jax.core.Tracer) else getattr(x, "sharding", None)
    if not isinstance(sharding, NamedSharding) or len(sharding.spec) <= axis or sharding.spec[axis] is None:
        return None
    rows = NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[axis]))
    return rows if n_shards(rows) > 1 else None


def mesh_axes(sharding: NamedSharding) -> tuple[str, ...]:
    """The mesh axes that rows are split over, the first entry of the partition.

    Example:
      >>> mesh_axes(NamedSharding(jax.make_mesh((1,), ("w",)), PartitionSpec("w")))
      ('w',)
    """
    names = sharding.spec[0]
    return names if isinstance(names, tuple) else (names,)


def n_shards(sharding: NamedSharding | None) -> int:
    """The number of parts that rows are in.

    Example:
      >>> n_shards(None), n_shards(NamedSharding(jax.make_mesh((1,), ("w",)), PartitionSpec("w")))
      (1, 1)
    """
    return 1 if sharding is None else math.prod(sharding.mesh.shape[name] for name in mesh_axes(sharding))


def over_shards(fun: Callable[[Any], Any], xs: Any, reducers: Any, *, sharding: NamedSharding, axes: Any = 0) -> Any:
    """Reduces ``fun(shard)`` over the devices.

    Args:
      fun: function of a pytree like `xs` with one device's rows. Pass in `xs` what it differentiates by.
      xs: pytree of arrays.
      reducers: tree prefix of the outputs of `fun`, with a reducer for each; see `t3k.kernels.reducers`.
      sharding: of the rows alone: its first entry names the mesh axes that they are split over (static).
      axes: tree prefix of `xs`, the axis of the rows, or None for what every device sees whole.

    Returns:
      The reduced outputs: sums on every device, rows split as those of `xs`.

    Raises:
      ValueError: if the rows do not split evenly.

    Example:
      >>> import jax.numpy as jnp
      >>> from t3k.kernels.reducers import add
      >>> sharding = NamedSharding(jax.make_mesh((jax.device_count(),), ("w",)), PartitionSpec("w"))
      >>> int(over_shards(jnp.sum, jnp.arange(8), add, sharding=sharding))
      28
    """
    names, parts = mesh_axes(sharding), n_shards(sharding)
    leaves, structure = jax.tree.flatten(xs)
    specs = []
    for leaf, axis in zip(leaves, leaf_axes(axes, xs), strict=True):
        if axis is not None and leaf.shape[axis] % parts:
            raise ValueError(
                f"the {leaf.shape[axis]} rows must split evenly over {parts} devices; add rows that count nothing "
                "(weight 0, or zero probes), or leave some out"
            )
        specs.append(PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, names))

    def local(*leaves: Array) -> Any:
        # Were they known to be the same everywhere, JAX would sum a derivative by them that `fun` takes, too early.
        outputs = fun(jax.tree.unflatten(structure, [vary_over(x, names) for x in leaves]))
        return jax.tree.map(lambda reducer, x: reducer.across(x, names), jax.tree.broadcast(reducers, outputs), outputs)

    out_specs = jax.tree.map(lambda reducer: reducer.spec(names), reducers)
    if AxisType.Explicit in sharding.mesh.axis_types:  # where nothing is moved without being asked for
        leaves = [jax.reshard(x, NamedSharding(sharding.mesh, spec)) for x, spec in zip(leaves, specs, strict=True)]
    return jax.shard_map(local, mesh=sharding.mesh, in_specs=tuple(specs), out_specs=out_specs)(*leaves)
