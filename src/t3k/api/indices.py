"""Multi-indices as people pass them, made into what the kernels take."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.api.stacks import merge_axes
from t3k.kernels.types import Array

__all__ = ["flat_indices"]

_Train = tuple[Array, ...]


def flat_indices(
    index: Any, pp: Any, shape: Sequence[int], dtype: Any, order: int
) -> tuple[tuple[int, ...], _Train, _Train | None]:
    """Checked indices and directions with one flat sample axis, and the sample axes W that it stands for.

    Args:
      index: integers, one array W per mode, or one array ``(d,) + W``; negative ones count from the end.
      pp: directions ``W + (N_i,)``; not looked at where `order` is 0.
      shape: (N_0, .., N_{d-1}).
      dtype: that the directions get.
      order: the highest derivative.

    Raises:
      TypeError: if indices are no integers.
      ValueError: if shapes do not fit, or directions are needed and missing.
      IndexError: if an index is out of range (checked where it is concrete).
    """
    arrays = _arrays(index, shape)
    probes = arrays[0].shape
    flat = tuple(jnp.asarray(x, jnp.int32).reshape(-1) for x in arrays)
    if order == 0:
        return probes, flat, None
    if pp is None:
        raise ValueError(f"pp must be given where order is above 0; got None with order {order}")
    pp = validate.require_probes("pp", pp, shape, dtype, like=tuple(x[..., None] for x in arrays))
    return probes, flat, merge_axes(pp, 0, len(probes))


def _arrays(index: Any, shape: Sequence[int]) -> list[Any]:
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
    return arrays
