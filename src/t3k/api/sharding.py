"""Samples and data on several devices: `shard_probes`, and what the rest of the api asks about it."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t3k.api.kind import Kind
from t3k.api.kinds import as_kind
from t3k.api.probe_kinds import ProbeDerivatives
from t3k.api.sample_kinds import SampleDerivatives
from t3k.kernels.row_axes import leaf_axes
from t3k.kernels.sharded import row_sharding
from t3k.kernels.sharded_kind import ShardedKind
from t3k.kernels.stored_arrays import flatten_stored
from t3k.kernels.types import Array

__all__ = ["shard_probes", "spread_kind"]


def shard_probes(
    kind: Any, sample: Any, data: Any, devices: Mesh | Sequence[jax.Device] | None = None
) -> tuple[Any, Any]:
    """Spreads a sample and its data over devices, for fits that run on all of them.

    Pass the result on as you would the originals: the optimizers and the probe maps see where arrays lie. Each device
    takes its own samples, chunk by chunk, and only gradients are exchanged.

    If the samples do not divide evenly, zero vectors with zero data are added, which change neither loss nor gradient,
    since what a tensor gives for them is zero. Indices of entries, probes of a single mode, and samples of a kind of
    your own have no such thing, and must divide.

    Args:
      kind: as in `t3k.newton_cg`; it tells how sample and data are laid out.
      sample: as in `t3k.newton_cg`, in arrays.
      data: as in `t3k.newton_cg`, in arrays.
      devices: a mesh, all of whose axes are used, or devices; by default all there are. Where several processes run the
        program, each gives its own part of the sample, of the same size.

    Returns:
      The sample and the data.

    Raises:
      ValueError: if the samples do not divide evenly and cannot be filled up, or if their numbers differ.

    Example:
      >>> import jax, numpy as np, t3k
      >>> ww = (np.ones((6, 4)), np.ones((6, 5)))
      >>> ww, data = t3k.shard_probes("probe", ww, ww, jax.devices()[:1])
      >>> tuple(ww[0].sharding.spec)
      ('probes',)
    """
    mesh = _as_mesh(devices)
    user_kind = as_kind(kind, 0 if isinstance(kind, str) else None, None, "auto")
    data_axis = 0 if getattr(user_kind, "plain", True) else 1
    sample, data = _in_arrays(sample, data, user_kind)
    arrays = [(x, 0) for x in jax.tree.leaves(sample)] + [(x, data_axis) for x in jax.tree.leaves(data)]
    n_rows = _count_rows(arrays)
    if _missing_rows(n_rows, mesh) and not _zeros_count_nothing(user_kind, data):
        devices_here = len(mesh.local_devices)
        raise ValueError(f"samples of this kind must divide evenly over the {devices_here} devices; got {n_rows}")
    sample = jax.tree.map(lambda x: _spread(x, 0, mesh), sample)
    return sample, jax.tree.map(lambda x: _spread(x, data_axis, mesh), data)


def spread_kind(kernel_kind: Any, sample: Any) -> Any:
    """A prepared kind, for the devices that its prepared sample lies on."""
    leaves = zip(flatten_stored(sample)[0], leaf_axes(kernel_kind.sample_axes, sample), strict=True)
    found = (row_sharding(x, axis) for x, axis in leaves if axis is not None)
    sharding = next((sharding for sharding in found if sharding is not None), None)
    return kernel_kind if sharding is None else ShardedKind(kernel_kind, sharding)


def _as_mesh(devices: Any) -> Mesh:
    if isinstance(devices, Mesh):
        return devices
    return Mesh(np.asarray(jax.devices() if devices is None else list(devices)), ("probes",))


def _in_arrays(sample: Any, data: Any, kind: Kind) -> tuple[Any, Any]:
    """Both as numpy arrays, which can be cut and filled up, with one for each mode where there is one for all."""
    if isinstance(kind, ProbeDerivatives):
        data = tuple(data)
    if isinstance(kind, ProbeDerivatives | SampleDerivatives):
        sample = tuple(sample) if kind.plain else tuple(None if train is None else tuple(train) for train in sample)
    return jax.tree.map(np.asarray, sample), jax.tree.map(np.asarray, data)


def _count_rows(arrays: list[tuple[np.ndarray, int]]) -> int:
    for x, axis in arrays:
        if x.ndim <= axis:
            raise ValueError(f"the arrays of sample and data must have an axis for the samples; got shape {x.shape}")
    counts = {x.shape[axis] for x, axis in arrays}
    if len(counts) != 1:
        raise ValueError(f"sample and data must have equally many samples in every array; got {sorted(counts)}")
    return counts.pop()


def _zeros_count_nothing(kind: Kind, data: Any) -> bool:
    """Whether zeros in the place of a sample and of its data leave loss and gradient as they are."""
    if isinstance(kind, ProbeDerivatives):
        return len(data) > 1
    return isinstance(kind, SampleDerivatives) and not kind.by_index


def _missing_rows(n_rows: int, mesh: Mesh) -> int:
    """The rows to add for the devices of this process to have equally many."""
    return -n_rows % len(mesh.local_devices)


def _spread(x: np.ndarray, axis: int, mesh: Mesh) -> Array:
    missing = _missing_rows(x.shape[axis], mesh)
    if missing:
        x = np.pad(x, [(0, missing if i == axis else 0) for i in range(x.ndim)])
    sharding = NamedSharding(mesh, PartitionSpec(*(None,) * axis, mesh.axis_names))
    return jax.make_array_from_process_local_data(sharding, x)
