"""Shape contracts of the kernels, the only place that imports chex.

A kernel opens by binding its shapes to the letters of `t3k.kernels.types`. A shape that does not fit fails while
tracing, in those letters; the checks cost nothing at run time. Messages for people who call the library are raised
in `t3k.api`; these are for people who call kernels.

In a string of letters, ``W`` stands for any number of probe axes, the same ones wherever it occurs.
"""

from collections.abc import Sequence
from typing import Any

import chex
import jax
import numpy as np

from t3k.kernels.types import Array, Cores

__all__ = [
    "bind",
    "check_bonds",
    "check_frame",
    "check_order",
    "check_probes",
    "check_same_length",
    "check_samples",
    "check_t3",
    "check_trains",
    "check_variations",
    "check_weights",
]

#: Letters that mean the same at every mode: orders and probe axes. All others start afresh.
_SHARED = "tswW"


def _spell(letters: str, n_axes: int) -> tuple[str, ...]:
    """One name per axis of an array of `n_axes` axes, where ``W`` becomes W0, W1, ... as many as are left."""
    before, has_probes, after = letters.partition("W")
    n_probe = n_axes - len(before) - len(after)
    return (*before, *(f"W{j}" for j in range(n_probe if has_probes else 0)), *after)


def bind(dims: dict[str, int], name: str, array: Any, letters: str) -> dict[str, int]:
    """Asserts that `array` has one axis per letter, with the sizes in `dims`; new letters are added to it.

    Args:
      dims: sizes known so far, by letter, and by ``W`` the number of probe axes; updated in place and returned.
      name: what to call the array in the message.
      array: anything with a shape.
      letters: one letter per axis, such as ``"akb"``; ``"tWa"`` is an order, any number of probe axes, and a rank.

    Example:
      >>> bind({"t": 3}, "mu_jets[0]", np.zeros((3, 7, 2)), "tWa")
      {'t': 3, 'W': 1, 'W0': 7, 'a': 2}
    """
    shape = np.shape(array)
    if "W" in letters:
        dims.setdefault("W", max(0, len(shape) + 1 - len(letters)))
    n_axes = len(letters) + (dims["W"] - 1 if "W" in letters else 0)
    chex.assert_rank(array, n_axes, custom_message=f"{name} has axes {letters!r}, got shape {shape}, with {dims}")
    axes = _spell(letters, n_axes)
    for axis, size in zip(axes, shape, strict=True):
        dims.setdefault(axis, size)
    expected = tuple(dims[axis] for axis in axes)
    chex.assert_shape(array, expected, custom_message=f"{name} has axes {letters!r}, of sizes {dims}")
    return dims


def _shapes(train: Cores) -> list[Any]:
    """The train as shapes, without slicing a stacked one."""
    if isinstance(train, jax.Array | np.ndarray):
        return [jax.ShapeDtypeStruct(train.shape[1:], np.float32)] * len(train)
    return list(train)


def check_same_length(**trains: Sequence[Array] | Array) -> int:
    """Asserts that all trains have the same number of modes, at least one, and returns it."""
    lengths = {name: len(train) for name, train in trains.items()}
    d = max(1, next(iter(lengths.values())))
    for name, length in lengths.items():
        chex.assert_equal(length, d, custom_message=f"{name} has {length} modes, expected {d} (all: {lengths})")
    return d


def check_order(order: int) -> dict[str, int]:
    """Asserts that the highest derivative `order` is no less than 0; returns ``{"t": order + 1}``."""
    chex.assert_scalar_non_negative(order, custom_message=f"order is the highest derivative, got {order}")
    return {"t": order + 1}


def check_trains(dims: dict[str, int], **trains: tuple[Cores, str]) -> int:
    """Binds the letters of several trains mode by mode; returns the number of modes.

    The orders t and s and the probe axes w and W have the same sizes at every mode, other letters at one mode only.

    Args:
      dims: sizes of those shared letters that are known beforehand.
      **trains: by name, the train and the letters of its arrays.
    """
    d = check_same_length(**{name: train for name, (train, _) in trains.items()})
    columns = {name: (_shapes(train), letters) for name, (train, letters) in trains.items()}
    for i in range(d):
        dims = {axis: size for axis, size in dims.items() if axis[0] in _SHARED}
        for name, (arrays, letters) in columns.items():
            bind(dims, f"{name}[{i}]", arrays[i], letters)
    return d


def check_bonds(**trains: Cores) -> None:
    """Asserts of every train of cores ``(a, k, b)`` that each right bond is the next core's left bond."""
    for name, train in trains.items():
        cores = _shapes(train)
        for i, (core, following) in enumerate(zip(cores[:-1], cores[1:], strict=True)):
            message = f"right bond of {name}[{i}] {core.shape} and left bond of {name}[{i + 1}] {following.shape}"
            chex.assert_equal(core.shape[2], following.shape[0], custom_message=message)


def check_t3(tucker_cores: Cores, tt_cores: Cores) -> int:
    """Asserts U_i (k, o), G_i (a, k, b) and matching bonds; returns the number of modes."""
    d = check_trains({}, tucker_cores=(tucker_cores, "ko"), tt_cores=(tt_cores, "akb"))
    check_bonds(tt_cores=tt_cores)
    return d


def check_frame(up: Cores, down: Cores, left: Cores, right: Cores) -> int:
    """Asserts U (k,o), L (a,k,B), R (A,k,b), O (a,m,b) and matching bonds; returns the number of modes.

    Capital letters are the bonds that a sweep from the other side has: L's right bond, R's left bond.
    """
    d = check_trains({}, up=(up, "ko"), left=(left, "akB"), right=(right, "Akb"), down=(down, "amb"))
    check_bonds(left=left, right=right)
    return d


def check_variations(tucker: Cores, tt: Cores, frame: Sequence[Cores]) -> int:
    """Asserts V (m,o) and H (a,k,b) against the frame ``(up, down, left, right)``; returns the number of modes."""
    up, down, left, right = frame
    check_frame(up, down, left, right)
    # Letters in pairs: the frame's sizes first, so that a message speaks of the variation that does not fit.
    frame_sizes = {"up": (up, "ko"), "down": (down, "amb")}
    return check_trains({}, **frame_sizes, **{"variations.tucker": (tucker, "mo"), "variations.tt": (tt, "akb")})


def check_probes(order: int, ww: Cores, pp: Cores | None, up: Cores, **zz: Cores) -> int:
    """Asserts ww and pp (w,o), pp only left out at order 0, and jets `zz` (t,w,o); returns the number of modes."""
    dims = check_order(order)
    trains = {"up": (up, "ko"), "ww": (ww, "wo"), **{name: (jets, "two") for name, jets in zz.items()}}
    if pp is None:
        chex.assert_equal(order, 0, custom_message=f"pp must be given at order {order}: derivatives go along it")
    else:
        trains["pp"] = (pp, "wo")
    return check_trains(dims, **trains)


def check_samples(order: int, at: Cores, pp: Cores | None, up: Cores) -> int:
    """Asserts vectors (w,o) or indices (w,), and directions as `check_probes` does; returns the number of modes."""
    if np.ndim(_shapes(at)[0]) == 2:
        return check_probes(order, at, pp, up)
    if pp is not None:
        check_trains({}, at=(at, "w"), pp=(pp, "wo"), up=(up, "ko"))
        return check_probes(order, pp, pp, up)
    chex.assert_equal(order, 0, custom_message=f"pp must be given at order {order}: derivatives go along it")
    return check_trains({}, at=(at, "w"), up=(up, "ko"))


def check_weights(order: int, ww: Cores, weights: Any = None, rows: Any = None) -> None:
    """Asserts weights (i,t) for each mode and order, and rows (w,) for each probe, where they are given."""
    dims = {"i": len(ww), "t": order + 1, "w": _shapes(ww)[0].shape[0]}
    for name, array, letters in (("weights", weights, "it"), ("rows", rows, "w")):
        if array is not None:
            bind(dims, name, array, letters)
