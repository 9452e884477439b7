"""Samples of a T3 and of stacks of them: probes, applies and entries, and their derivatives along X + s P."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.chunk_size import ProblemShape, auto_chunk
from t3k.api.probe_vectors import flat_vectors
from t3k.api.stacks import merge_axes, over_points, split_axis
from t3k.kernels.chunking import check_chunk_size
from t3k.kernels.frames import corewise_frame
from t3k.kernels.sharded import n_shards, row_sharding
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import Array, T3Cores

__all__ = ["apply_derivatives", "entries_derivatives", "probe_derivatives", "resolve_chunk"]


def resolve_chunk(
    chunk_size: Any, up: Any, tt: Any, order: int, n_probes: int, n_tangent: int = 1, operation: str = "transpose"
) -> int | None:
    """The chunk that `chunk_size` stands for, from the shapes of ``up`` and TT cores (with their stack axes).

    Raises:
      TypeError, ValueError: see `check_chunk_size`.
    """
    checked = check_chunk_size(chunk_size, auto=True)
    if n_probes == 0 or not isinstance(checked, str):
        return None if n_probes == 0 or checked is None else int(checked)
    stacked = n_tangent * int(np.prod(up[0].shape[:-2]))
    sizes = tuple(U.shape[-1] for U in up), tuple(U.shape[-2] for U in up)
    bonds = (tt[0].shape[-3], *(G.shape[-1] for G in tt))
    return auto_chunk(ProblemShape(*sizes, bonds, order, n_probes, stacked, jnp.dtype(up[0].dtype)), operation)


def probe_derivatives(cores: T3Cores, ww: Any, pp: Any, order: Any, chunk_size: Any) -> tuple[Array, ...]:
    """``(order+1,) + W + C + (N_i,)`` per mode; see `TuckerTensorTrain.probe_derivatives`."""
    order = validate.as_order(order)
    shape, dtype = tuple(U.shape[-1] for U in cores.tucker), cores.tucker[0].dtype
    probes, ww, pp = flat_vectors(ww, pp, shape, dtype, order)
    sharding = row_sharding(ww[0])
    n_probes = ww[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(chunk_size, cores.tucker, cores.tt, order, n_probes, operation="jacobian")

    def kernel(cores: T3Cores) -> tuple[Array, ...]:
        frame, point = corewise_frame(cores)
        return tuple(compiled.point_probes(ww, pp, point, frame, order, chunk_size=chunk, sharding=sharding))

    with reading(ww, pp) as wait:
        zz = wait(over_points(kernel, cores.tucker[0].shape[:-2], cores, out_axis=2))
    return split_axis(zz, 1, probes)


def apply_derivatives(cores: T3Cores, ww: Any, pp: Any, order: Any, chunk_size: Any) -> Array:
    """``(order+1,) + W + C``; see `TuckerTensorTrain.apply_derivatives`."""
    order, chunk = validate.as_order(order), check_chunk_size(chunk_size)
    shape, dtype = tuple(U.shape[-1] for U in cores.tucker), cores.tucker[0].dtype
    probes, ww, pp = flat_vectors(ww, pp, shape, dtype, order)

    def kernel(cores: T3Cores) -> Array:
        return compiled.apply_derivatives(cores, ww, pp, order, chunk_size=chunk)

    return split_axis(over_points(kernel, cores.tucker[0].shape[:-2], cores, out_axis=2), 1, probes)


def _indices(index: Any, shape: tuple[int, ...]) -> tuple[Array, ...]:
    if not hasattr(index, "__len__") or len(index) != len(shape):
        raise ValueError(f"index must have one array of integers for each of the {len(shape)} modes; got {index!r:.80}")
    arrays = [x if isinstance(x, jax.Array) else np.asarray(x) for x in index]
    for i, (x, size) in enumerate(zip(arrays, shape, strict=True)):
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise TypeError(f"index[{i}] must hold integers; got dtype {x.dtype}")
        if x.shape != arrays[0].shape:
            raise ValueError(f"index[{i}] must have the shape of index[0], {arrays[0].shape}; got {x.shape}")
        if validate.is_concrete(x) and x.size and (x.min() < -size or x.max() >= size):
            raise IndexError(f"index[{i}] must be in [{-size}, {size}); got values from {x.min()} to {x.max()}")
    return tuple(jnp.asarray(x, jnp.int32) for x in arrays)


def entries_derivatives(cores: T3Cores, index: Any, pp: Any, order: Any, chunk_size: Any) -> Array:
    """``(order+1,) + W + C``; see `TuckerTensorTrain.entries_derivatives`."""
    order, chunk = validate.as_order(order), check_chunk_size(chunk_size)
    shape, dtype = tuple(U.shape[-1] for U in cores.tucker), cores.tucker[0].dtype
    index = _indices(index, shape)
    probes = index[0].shape
    if order == 0:
        pp = None
    elif pp is None:
        raise ValueError(f"pp must be given where order is above 0; got None with order {order}")
    else:
        pp = validate.require_probes("pp", pp, shape, dtype, like=tuple(x[..., None] for x in index))
        pp = merge_axes(pp, 0, len(probes))
    index = tuple(x.reshape(-1) for x in index)

    def kernel(cores: T3Cores) -> Array:
        return compiled.entries_derivatives(cores, index, pp, order, chunk_size=chunk)

    return split_axis(over_points(kernel, cores.tucker[0].shape[:-2], cores, out_axis=2), 1, probes)
