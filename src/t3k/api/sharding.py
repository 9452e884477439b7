"""Samples and data on several devices: `shard_probes`, and what the rest of the api asks about it."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t3k.api.kinds import as_kind
from t3k.kernels.sharded import row_sharding
from t3k.kernels.sharded_kind import ShardedKind
from t3k.kernels.types import Array

__all__ = ["shard_probes", "spread_kind"]


def shard_probes(
    kind: Any, sample: Any, data: Any, devices: Mesh | Sequence[jax.Device] | None = None
) -> tuple[Any, Any]:
    """Spreads a sample and its data over devices, for fits that run on all of them.

    Pass the result on as you would the originals: the optimizers and the probe maps see where arrays lie. Each device
    takes its own probes, chunk by chunk, and only gradients are exchanged.

    If the probes do not divide evenly, zero probes with zero data are added, which change neither loss nor gradient: a
    tensor's probe by zero vectors is zero. A tensor of a single mode is probed by nothing, so there they must divide.

    Args:
      kind: as in `t3k.newton_cg`; it tells whether data have an axis for the order.
      sample: as in `t3k.newton_cg`.
      data: as in `t3k.newton_cg`.
      devices: a mesh, all of whose axes are used, or devices; by default all there are. Where several processes run the
        program, each gives its own part of the sample, of the same size.

    Returns:
      The sample and the data.

    Raises:
      ValueError: if the probes do not divide evenly and cannot be filled up, or if their numbers differ.

    Example:
      >>> import jax, numpy as np, t3k
      >>> ww = (np.ones((6, 4)), np.ones((6, 5)))
      >>> ww, data = t3k.shard_probes("probe", ww, ww, jax.devices()[:1])
      >>> ww[0].sharding.spec
      PartitionSpec('probes',)
    """
    mesh = _as_mesh(devices)
    plain = as_kind(kind, 0 if isinstance(kind, str) else None, None, None).plain
    trains = {"sample": sample} if plain else dict(zip(("sample: ww", "sample: pp"), sample, strict=True))
    vectors = [_arrays(name, train) for name, train in trains.items()]
    measured = _arrays("data", data)
    counts = {x.shape[0] for train in vectors for x in train} | {z.shape[0 if plain else 1] for z in measured}
    if len(counts) != 1:
        raise ValueError(f"sample and data must have equally many probes at every mode; got {sorted(counts)}")
    if len(measured) == 1 and _missing_rows(*counts, mesh):
        raise ValueError(f"probes of a tensor of one mode must divide evenly over the devices; got {counts.pop()}")
    spread = [tuple(_spread(x, 0, mesh) for x in train) for train in vectors]
    return (spread[0] if plain else tuple(spread)), tuple(_spread(z, 0 if plain else 1, mesh) for z in measured)


def spread_kind(kernel_kind: Any, sample: Any) -> Any:
    """A prepared kind, for the devices that its prepared sample lies on."""
    sharding = row_sharding(jax.tree.leaves(sample)[0])
    return kernel_kind if sharding is None else ShardedKind(kernel_kind, sharding)


def _as_mesh(devices: Any) -> Mesh:
    if isinstance(devices, Mesh):
        return devices
    return Mesh(np.asarray(jax.devices() if devices is None else list(devices)), ("probes",))


def _arrays(name: str, train: Any) -> list[np.ndarray]:
    """The arrays of a train, where they can be cut and filled up; a train that is left out has none."""
    arrays = [] if train is None else [np.asarray(x) for x in train]
    for i, x in enumerate(arrays):
        if x.ndim < 2:
            raise ValueError(f"{name}[{i}] must have an axis for the probes and one for the mode; got shape {x.shape}")
    return arrays


def _missing_rows(n_rows: int, mesh: Mesh) -> int:
    """The rows to add for the devices of this process to have equally many."""
    return -n_rows % len(mesh.local_devices)


def _spread(x: np.ndarray, axis: int, mesh: Mesh) -> Array:
    missing = _missing_rows(x.shape[axis], mesh)
    if missing:
        x = np.pad(x, [(0, missing if i == axis else 0) for i in range(x.ndim)])
    sharding = NamedSharding(mesh, PartitionSpec(*(None,) * axis, mesh.axis_names))
    return jax.make_array_from_process_local_data(sharding, x)
