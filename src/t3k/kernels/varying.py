"""Mesh axes that a value varies over, inside `jax.shard_map`; outside of it there are none.

A loop's carry must begin with the varying axes that it ends with, and a tangent must have its primal's.
"""

from collections.abc import Iterable
from typing import Any

import jax

from t3k.kernels.types import Array

__all__ = ["vary_like", "vary_over", "varying_axes"]


def varying_axes(kind: Any) -> frozenset[Any]:
    """The mesh axes that an array, or what describes one, varies over."""
    if isinstance(kind, jax.Array):
        kind = jax.typeof(kind)
    manual = getattr(kind, "manual_axis_type", None)  # jax 0.10; an attribute `vma` before
    return frozenset(getattr(kind, "vma", None) or getattr(manual, "varying", None) or ())


def vary_over(array: Array, names: Iterable[Any]) -> Array:
    """`array`, varying over these mesh axes too."""
    missing = frozenset(names) - varying_axes(array)
    return jax.lax.pcast(array, tuple(missing), to="varying") if missing else array


def vary_like(array: Array, *likes: Any) -> Array:
    """`array`, varying over all mesh axes that `likes` vary over."""
    return vary_over(array, frozenset().union(*map(varying_axes, likes)))
