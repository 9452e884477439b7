"""Checks of what names modes, their indices and what they are contracted with."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.kernels.types import Array

__all__ = ["as_indices", "as_modes", "as_operands", "as_permutation", "as_weights"]


def as_modes(name: str, modes: Any, d: int) -> tuple[int, ...]:
    """Distinct modes, one or several, as ints from 0 to d - 1; negative ones count from the end.

    Raises:
      TypeError: if one is no integer.
      ValueError: if one is out of range or occurs twice.
    """
    given = (modes,) if isinstance(modes, int | np.integer) else modes
    try:
        values = tuple(given)
    except TypeError:
        raise TypeError(f"{name} must be an int or a sequence of ints; got {modes!r}") from None
    if any(isinstance(v, bool | np.bool_) or not isinstance(v, int | np.integer) for v in values):
        raise TypeError(f"{name} must be an int or a sequence of ints; got {modes!r}")
    if any(not -d <= v < d for v in values):
        raise ValueError(f"{name} must be in [{-d}, {d}) for {d} modes; got {values}")
    found = tuple(int(v) % d for v in values)
    if len(set(found)) != len(found):
        raise ValueError(f"{name} must be distinct; got {values}")
    return found


def as_permutation(name: str, axes: Any, d: int) -> tuple[int, ...]:
    """All d modes in some order.

    Raises:
      TypeError, ValueError: see `as_modes`; also if a mode is missing.
    """
    found = as_modes(name, axes, d)
    if len(found) != d:
        raise ValueError(f"{name} must hold each of the {d} modes once; got {axes!r}")
    return found


def as_operands(operands: Any, modes: Any, shape: Sequence[int], dtype: Any) -> tuple[Array | None, ...]:
    """One vector (N_i,), matrix (p, N_i) or None per mode, from those of some modes.

    Raises:
      TypeError, ValueError: naming the operand that does not fit.
    """
    found = as_modes("modes", range(len(shape)) if modes is None else modes, len(shape))
    one = isinstance(modes, int | np.integer)
    train = validate.as_train("operands", (operands,) if one else operands, 1, dtype) if one or len(operands) else ()
    if len(train) != len(found):
        raise ValueError(f"operands must have one array for each of the {len(found)} modes; got {len(train)}")
    placed: list[Array | None] = [None] * len(shape)
    for j, (mode, array) in enumerate(zip(found, train, strict=True)):
        if array.ndim > 2 or array.shape[-1] != shape[mode] or array.size == 0:
            raise ValueError(
                f"operands[{j}] must have shape ({shape[mode]},) or (p, {shape[mode]}), to be contracted with mode "
                f"{mode}; got {array.shape}"
            )
        placed[mode] = array.astype(dtype)
    return tuple(placed)


def as_weights(name: str, weights: Any, sizes: Sequence[int], dtype: Any) -> tuple[Array | None, ...]:
    """One vector of each size, or None in its place; all None if `weights` is.

    Raises:
      TypeError, ValueError: naming the vector that does not fit.
    """
    given = (None,) * len(sizes) if weights is None else tuple(weights)
    if len(given) != len(sizes):
        raise ValueError(f"{name} must have one array or None for each of {len(sizes)}; got {len(given)}")
    found: list[Array | None] = []
    for i, (array, size) in enumerate(zip(given, sizes, strict=True)):
        found.append(None if array is None else validate.as_array(f"{name}[{i}]", array).astype(dtype))
        if array is not None and np.shape(array) != (size,):
            raise ValueError(f"{name}[{i}] must have shape ({size},); got {np.shape(array)}")
    return tuple(found)


def as_indices(key: Any, shape: Sequence[int]) -> tuple[Array | None, ...]:
    """What ``x[key]`` asks of each mode: None for all of it, an integer, or integers.

    Raises:
      TypeError: for what is no index, and for new axes.
      IndexError: if there are more indices than modes, one is out of range, or two modes have arrays.
    """
    items = _without_ellipsis(key if isinstance(key, tuple) else (key,), len(shape))
    indices = tuple(_index(i, item, size) for i, (item, size) in enumerate(zip(items, shape, strict=True)))
    arrays = [i for i, item in enumerate(items) if not isinstance(item, slice) and np.ndim(item) == 1]
    if len(arrays) > 1:
        raise IndexError(
            f"only one mode may have an array of indices; got arrays for modes {arrays}. For single entries use "
            "x.entries, for a sub-tensor index one mode after the other"
        )
    return indices


def _without_ellipsis(items: tuple[Any, ...], d: int) -> tuple[Any, ...]:
    if any(item is None for item in items):
        raise TypeError("a T3 has no new axes (None, newaxis); index its modes only")
    dots = [j for j, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have one ellipsis (...)")
    given = len(items) - len(dots)
    if given > d:
        raise IndexError(f"too many indices: the tensor has {d} modes; got {given}")
    at = dots[0] if dots else len(items)
    return (*items[:at], *(slice(None),) * (d - given), *items[at + 1 :])


def _index(mode: int, item: Any, size: int) -> Array | None:
    if isinstance(item, slice):
        return None if item == slice(None) else _in_range(mode, np.arange(size)[item], size)
    array = item if isinstance(item, jax.Array) else np.asarray(item)
    if array.dtype == bool and array.shape == (size,) and validate.is_concrete(array):
        return _in_range(mode, np.flatnonzero(array), size)
    if not jnp.issubdtype(array.dtype, jnp.integer) or array.ndim > 1:
        raise TypeError(
            f"the index of mode {mode} must be an int, a slice, integers on one axis or {size} bools; got {item!r:.60}"
        )
    return _in_range(mode, array, size)


def _in_range(mode: int, array: Any, size: int) -> Array:
    if array.size == 0:
        raise IndexError(f"the index of mode {mode} selects nothing; a T3 has no modes of size 0")
    if validate.is_concrete(array) and (array.min() < -size or array.max() >= size):
        raise IndexError(f"the index of mode {mode} must be in [{-size}, {size}); got {array.min()} to {array.max()}")
    return jnp.asarray(array, jnp.int32)
