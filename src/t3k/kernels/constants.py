"""Constants that fit where they are used.

Inside `jax.shard_map` a loop's initial carry must vary over the same mesh axes as what it becomes, which a plain
`jnp.zeros` does not; outside of it nothing needs to be done.
"""

import jax
import jax.numpy as jnp

from t3k.kernels.types import Array
from t3k.kernels.varying import vary_like

__all__ = ["filled_like"]


def filled_like(like: Array | jax.ShapeDtypeStruct, value: float, shape: tuple[int, ...]) -> Array:
    """An array of `value`, with the dtype and the varying mesh axes of `like` (an array, or what describes one)."""
    return vary_like(jnp.full(shape, value, like.dtype), like)
