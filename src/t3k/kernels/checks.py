"""Shape contracts of the kernels, the only place that imports chex.

A kernel opens by binding its shapes to the letters of `t3k.kernels.types`. A shape that does not fit fails while
tracing, in those letters; the checks cost nothing at run time. Messages for people who call the library are raised
in `t3k.api`; these are for people who call kernels.
"""

from collections.abc import Sequence

import chex

from t3k.kernels.types import Array

__all__ = ["bind", "check_frame", "check_t3", "check_same_length", "check_variations"]


def bind(dims: dict[str, int], name: str, array: Array, letters: str) -> dict[str, int]:
    """Asserts that `array` has one axis per letter, with the sizes in `dims`; new letters are added to it.

    Args:
      dims: sizes known so far, by letter; updated in place and returned.
      name: what to call the array in the message.
      array: anything with a shape.
      letters: one letter per axis, such as ``"akb"``.
    """
    chex.assert_rank(array, len(letters), custom_message=f"{name} has axes {letters!r}, got shape {array.shape}")
    for letter, size in zip(letters, array.shape, strict=True):
        dims.setdefault(letter, size)
    expected = tuple(dims[letter] for letter in letters)
    chex.assert_shape(array, expected, custom_message=f"{name} has axes {letters!r}, of sizes {dims}")
    return dims


def check_same_length(**trains: Sequence[Array] | Array) -> int:
    """Asserts that all trains have the same number of modes, and returns it."""
    lengths = {name: len(train) for name, train in trains.items()}
    d = next(iter(lengths.values()))
    for name, length in lengths.items():
        chex.assert_equal(length, d, custom_message=f"{name} has {length} modes, expected {d} (all: {lengths})")
    return d


def _check_bonds(name: str, cores: Sequence[Array]) -> None:
    for i, (core, following) in enumerate(zip(cores[:-1], cores[1:], strict=True)):
        message = f"right bond of {name}[{i}] {core.shape} and left bond of {name}[{i + 1}] {following.shape}"
        chex.assert_equal(core.shape[2], following.shape[0], custom_message=message)


def check_t3(tucker_cores: Sequence[Array], tt_cores: Sequence[Array]) -> int:
    """Asserts U_i (k, o), G_i (a, k, b) and matching bonds; returns the number of modes."""
    d = check_same_length(tucker_cores=tucker_cores, tt_cores=tt_cores)
    for i in range(d):
        dims = bind({}, f"tucker_cores[{i}]", tucker_cores[i], "ko")
        bind(dims, f"tt_cores[{i}]", tt_cores[i], "akb")
    _check_bonds("tt_cores", tt_cores)
    return d


def check_frame(up: Sequence[Array], down: Sequence[Array], left: Sequence[Array], right: Sequence[Array]) -> int:
    """Asserts U (k,o), L (a,k,B), R (A,k,b), O (a,m,b) and matching bonds; returns the number of modes.

    Capital letters are the bonds that a sweep from the other side has: L's right bond, R's left bond.
    """
    d = check_same_length(up=up, down=down, left=left, right=right)
    for i in range(d):
        dims = bind({}, f"up[{i}]", up[i], "ko")
        bind(dims, f"left[{i}]", left[i], "akB")
        bind(dims, f"right[{i}]", right[i], "Akb")
        bind(dims, f"down[{i}]", down[i], "amb")
    _check_bonds("left", left)
    _check_bonds("right", right)
    return d


def check_variations(tucker: Sequence[Array], tt: Sequence[Array], frame: Sequence[Sequence[Array]]) -> int:
    """Asserts V (m,o) and H (a,k,b) against the frame ``(up, down, left, right)``; returns the number of modes."""
    up, down, left, right = frame
    d = check_frame(up, down, left, right)
    check_same_length(up=up, tucker=tucker, tt=tt)
    for i in range(d):
        dims = bind({}, f"up[{i}]", up[i], "ko")
        bind(dims, f"down[{i}]", down[i], "amb")
        bind(dims, f"variations.tucker[{i}]", tucker[i], "mo")
        bind(dims, f"variations.tt[{i}]", tt[i], "akb")
    return d
