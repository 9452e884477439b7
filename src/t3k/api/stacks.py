"""Stacks of points, tangents and probes around kernels that know one of each.

Axis order, outermost first: derivative order t, probes W, tangents V, base points C. Each group is flattened to one
axis, the kernel is mapped over V and C with `jax.vmap`, and the axes are restored.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels.stored_arrays import StoredArray, flatten_stored
from t3k.kernels.types import Array

__all__ = ["merge_axes", "over_broadcast_points", "over_points", "probe_axes", "split_axis"]


def merge_axes(tree: Any, start: int, count: int) -> Any:
    """Merges `count` axes from `start` on into one, in every leaf."""
    if count == 1:
        return tree
    if any(isinstance(x, StoredArray) for x in flatten_stored(tree)[0]):
        raise ValueError(f"arrays in files must have one axis for the probes, to be read along it; got {count} axes")

    def merge(x: Array) -> Array:
        return x.reshape(*x.shape[:start], math.prod(x.shape[start : start + count]), *x.shape[start + count :])

    return jax.tree.map(merge, tree)


def split_axis(tree: Any, axis: int, shape: Sequence[int]) -> Any:
    """The inverse of `merge_axes`."""
    if len(shape) == 1:
        return tree
    return jax.tree.map(lambda x: x.reshape(*x.shape[:axis], *shape, *x.shape[axis + 1 :]), tree)


def probe_axes(ww: Sequence[Array]) -> tuple[int, ...]:
    """The probe axes W of probe vectors ``W + (N_i,)``."""
    return ww[0].shape[:-1]


def over_points(fun: Callable[..., Any], stack_shape: Sequence[int], *trees: Any, out_axis: int = 0) -> Any:
    """Maps `fun` over the leading stack axes C of the trees; they come back at `out_axis` of every output."""
    if not stack_shape:
        return fun(*trees)
    merged = merge_axes(trees, 0, len(stack_shape))
    return split_axis(jax.vmap(fun, out_axes=out_axis)(*merged), out_axis, stack_shape)


def over_broadcast_points(fun: Callable[..., Any], *points: tuple[Any, tuple[int, ...]]) -> Any:
    """Maps `fun` over several trees, each given with its stack axes, which are broadcast against each other.

    A tree without stack axes is shared, and not copied.
    """
    common = jnp.broadcast_shapes(*(stack for _, stack in points))
    if not common:
        return fun(*(tree for tree, _ in points))

    def spread(tree: Any, stack: tuple[int, ...]) -> Any:
        new = range(len(common) - len(stack))
        return jax.tree.map(
            lambda x: jnp.broadcast_to(jnp.expand_dims(x, new), (*common, *x.shape[len(stack) :])), tree
        )

    trees = [merge_axes(spread(tree, stack), 0, len(common)) if stack else tree for tree, stack in points]
    mapped = jax.vmap(fun, in_axes=tuple(0 if stack else None for _, stack in points))
    return split_axis(mapped(*trees), 0, common)
