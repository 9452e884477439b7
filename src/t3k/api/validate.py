"""Checks of what people pass in: each raises an error that names the argument, what came and what was expected.

Only structure is looked at (types, shapes, dtypes, ranks), so that everything works on tracers as well; values are
looked at where they are concrete, for indices out of range and for NaN and infinity in measurements.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels.chunking import check_chunk_size
from t3k.kernels.stored_arrays import StoredArray, is_stored
from t3k.kernels.types import Array, Cores

__all__ = [
    "as_array",
    "as_count",
    "as_order",
    "as_ranks",
    "as_rows",
    "as_tolerance",
    "as_train",
    "cast_train",
    "check_chunk_size",
    "common_dtype",
    "is_concrete",
    "require_choice",
    "require_cores",
    "require_finite",
    "require_frame",
    "require_probes",
    "require_residuals",
    "require_single",
    "require_structure",
    "require_variations",
]


def is_concrete(x: Any) -> bool:
    """Whether the values of an array can be looked at now; to look at those in a file would be to read all of it."""
    return not isinstance(x, jax.core.Tracer | StoredArray)


def as_array(name: str, x: Any, dtype: Any = None) -> Array:
    """`x` as a real floating-point JAX array: integers and lists become `dtype` or the default float.

    Raises:
      TypeError: for what is no array, and for complex numbers.
    """
    try:
        kind = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
        if not (jnp.issubdtype(kind, jnp.number) or kind == np.dtype(bool)):
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of real numbers; got {type(x).__name__}: {x!r:.60}") from None
    if jnp.issubdtype(kind, jnp.complexfloating):
        raise TypeError(f"{name} must be real; got dtype {kind} (pass the real and imaginary parts one by one)")
    if jnp.issubdtype(kind, jnp.floating):
        return jnp.asarray(x)
    return jnp.asarray(x, dtype or jnp.result_type(float))


def as_train(name: str, cores: Any, ndim: int | None = None, dtype: Any = None) -> tuple[Array, ...]:
    """One array per mode, from a sequence or from one stacked array.

    Raises:
      TypeError: if it is neither.
      ValueError: if it is empty, or an array has fewer than `ndim` axes.
    """
    if isinstance(cores, str | bytes | dict) or not hasattr(cores, "__len__"):
        raise TypeError(f"{name} must be a sequence with one array per mode; got {type(cores).__name__}")
    if len(cores) == 0:
        raise ValueError(f"{name} must have at least one mode; got an empty sequence")
    arrays = tuple(as_array(f"{name}[{i}]", core, dtype) for i, core in enumerate(cores))
    for i, array in enumerate(arrays):
        if ndim is not None and array.ndim < ndim:
            raise ValueError(f"{name}[{i}] must have at least {ndim} axes; got shape {array.shape}")
    return arrays


def common_dtype(*trains: Sequence[Array]) -> Any:
    """The dtype that arrays of different floats meet in."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*(array.dtype for train in trains for array in train))


def cast_train(train: Sequence[Array], dtype: Any) -> tuple[Array, ...]:
    """The train in another dtype."""
    return tuple(array.astype(dtype) for array in train)


def as_rows(name: str, train: Any, ndim: int, dtype: Any) -> tuple[Any, ...]:
    """One array per mode in `dtype`, where those in files stay there, to be read by the loop over probes.

    Raises:
      TypeError, ValueError: see `as_train`.
    """
    if isinstance(train, np.memmap):
        train = tuple(train)
    if is_stored(train):
        raise ValueError(f"{name} must have one array per mode where it is in files; got one of shape {train.shape}")
    if isinstance(train, tuple | list) and any(map(is_stored, train)):
        return tuple(_as_row_array(f"{name}[{i}]", x, dtype) for i, x in enumerate(train))
    return cast_train(as_train(name, train, ndim, dtype), dtype)


def _as_row_array(name: str, x: Any, dtype: Any) -> Any:
    if not is_stored(x):
        return as_array(name, x, dtype).astype(dtype)
    if not jnp.issubdtype(x.dtype, jnp.number) or jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise TypeError(f"{name} must be an array of real numbers; got dtype {x.dtype}")
    if not isinstance(x, StoredArray):
        return StoredArray(x, dtype)
    return x if x.dtype == dtype else StoredArray(x.source, dtype)


def require_choice(name: str, word: Any, choices: Sequence[str]) -> str:
    """`word`, if it is one of the choices.

    Raises:
      ValueError: if it is not.

    Example:
      >>> require_choice("kind", "probe", ("probe", "apply"))
      'probe'
    """
    if word not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {word!r}")
    return word


def as_count(name: str, value: Any) -> int:
    """A number of something as an int >= 0.

    Raises:
      TypeError: if it is no integer.
      ValueError: if it is negative.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int >= 0; got {value!r} of type {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be an int >= 0; got {value}")
    return int(value)


def as_order(order: Any) -> int:
    """The derivative order as an int >= 0; errors as in `as_count`."""
    return as_count("order", order)


def as_ranks(name: str, ranks: Any, length: int | None = None) -> tuple[int, ...]:
    """Ranks or sizes as a tuple of positive ints.

    Raises:
      TypeError: if an entry is no integer.
      ValueError: if there are not `length` of them, or one is below 1.
    """
    try:
        values = tuple(ranks)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of ints; got {ranks!r}") from None
    if any(isinstance(v, bool | np.bool_) or not isinstance(v, int | np.integer) for v in values):
        raise TypeError(f"{name} must be a sequence of ints; got {values!r}")
    if length is not None and len(values) != length:
        raise ValueError(f"{name} must have {length} entries; got {len(values)}: {values}")
    if any(v < 1 for v in values):
        raise ValueError(f"{name} must be ints >= 1; got {values}")
    return tuple(int(v) for v in values)


def require_probes(
    name: str, ww: Any, shape: Sequence[int], dtype: Any, like: Cores | None = None
) -> tuple[Array, ...]:
    """Probe vectors ``W + (N_i,)``, one array per mode, in `dtype`; `like` gives the probe axes that they must have.

    Raises:
      TypeError: if they are no sequence of real arrays.
      ValueError: if there is not one per mode, a length is not N_i, or the probe axes differ.
    """
    train = as_rows(name, ww, 1, dtype)
    if len(train) != len(shape):
        raise ValueError(f"{name} must have one array for each of the {len(shape)} modes; got {len(train)}")
    probes = (train if like is None else like)[0].shape[:-1]
    for i, (array, size) in enumerate(zip(train, shape, strict=True)):
        if array.shape != (*probes, size):
            raise ValueError(
                f"{name}[{i}] must have shape {(*probes, size)} (probe axes {probes}, mode size {size}); "
                f"got {array.shape}"
            )
    return train


def require_residuals(
    name: str, zz: Any, order: int, probes: tuple[int, ...], shape: Sequence[int], dtype: Any
) -> tuple[Array, ...]:
    """Residual jets ``(order+1,) + W + stacks + (N_i,)``, one array per mode.

    Raises:
      ValueError: if a shape does not fit; see `require_probes` for the rest.
    """
    train = as_rows(name, zz, 2 + len(probes), dtype)
    if len(train) != len(shape):
        raise ValueError(f"{name} must have one array for each of the {len(shape)} modes; got {len(train)}")
    stacks = train[0].shape[1 + len(probes) : -1]
    if stacks and any(map(is_stored, train)):
        raise ValueError(f"{name} must have no axes for stacks where it is in files; got shape {train[0].shape}")
    for i, (array, size) in enumerate(zip(train, shape, strict=True)):
        expected = (order + 1, *probes, *stacks, size)
        if array.shape != expected:
            raise ValueError(
                f"{name}[{i}] must have shape {expected} (order+1 = {order + 1}, probe axes {probes}, "
                f"mode size {size}); got {array.shape}"
            )
    return train


def _all_finite(array: Array) -> bool:
    """Looks at the values where they are: numpy reads those of the CPU in place, and has nothing to compile."""
    on_cpu = next(iter(array.devices())).platform == "cpu" and array.is_fully_addressable
    values = np.asarray(array) if on_cpu and array.dtype != jnp.bfloat16 else None
    return bool(jnp.all(jnp.isfinite(array))) if values is None else bool(np.isfinite(values).all())


def require_finite(name: str, train: Sequence[Array], axes: str = "probe") -> None:
    """Refuses NaN and infinity in arrays whose values can be looked at.

    Raises:
      ValueError: naming the mode, the position and the value.
    """
    for i, array in enumerate(train):
        if not is_concrete(array) or _all_finite(array):
            continue
        position = tuple(int(j) for j in np.argwhere(~np.isfinite(np.asarray(array, dtype=np.float64)))[0])
        value = float(array[position])
        raise ValueError(f"{name} must be finite; mode {i} has {value} at {axes} {position[:-1]}, entry {position[-1]}")


def as_tolerance(name: str, value: Any) -> float:
    """A tolerance as a finite float >= 0.

    Raises:
      ValueError: if it is negative or not finite.
    """
    tolerance = float(value)
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"{name} must be a finite number >= 0; got {value!r}")
    return tolerance


def require_single(name: str, stack_shape: tuple[int, ...], instead: str = "") -> None:
    """Refuses a stack, where the result would not have one shape; `instead` says what to do.

    Raises:
      ValueError: if there are stack axes.
    """
    if stack_shape:
        raise ValueError(f"{name} needs a single tensor; got a stack of shape {stack_shape}. {instead}".strip())


def require_structure(
    shape: Any, tucker_ranks: Any, tt_ranks: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Mode sizes, Tucker ranks and bonds as tuples of ints, of lengths d, d and d + 1."""
    sizes = as_ranks("shape", shape)
    if not sizes:
        raise ValueError("shape must have at least one mode; got ()")
    return sizes, as_ranks("tucker_ranks", tucker_ranks, len(sizes)), as_ranks("tt_ranks", tt_ranks, len(sizes) + 1)


def require_cores(tucker: Sequence[Array], tt: Sequence[Array]) -> None:
    """Cores ``C + (n_i, N_i)`` and ``C + (r_i, n_i, r_{i+1})`` that fit together.

    Raises:
      ValueError: naming the core that does not fit, its shape and what it should be.
    """
    if len(tucker) != len(tt):
        raise ValueError(f"there must be as many tt_cores as tucker_cores ({len(tucker)}); got {len(tt)}")
    if not tucker:
        raise ValueError("there must be at least one mode; got none")
    stack = tuple(tucker[0].shape[:-2])
    for i, (U, G) in enumerate(zip(tucker, tt, strict=True)):
        if U.ndim != len(stack) + 2 or tuple(U.shape[:-2]) != stack:
            raise ValueError(f"tucker_cores[{i}] must have shape {stack} + (n, N); got {tuple(U.shape)}")
        left = tt[i - 1].shape[-1] if i else G.shape[-3] if G.ndim > 2 else None
        if G.ndim != len(stack) + 3 or tuple(G.shape[:-2]) != (*stack, left) or G.shape[-2] != U.shape[-2]:
            raise ValueError(
                f"tt_cores[{i}] must have shape {stack} + ({'r' if i == 0 else left}, {U.shape[-2]}, r'), to fit the "
                f"Tucker rank of tucker_cores[{i}] and the bond before it; got {tuple(G.shape)}"
            )
        if 0 in G.shape or 0 in U.shape:
            raise ValueError(
                f"sizes and ranks must be at least 1; core {i} has shapes {tuple(U.shape)} and {tuple(G.shape)}"
            )


def _require_shape(name: str, array: Array, expected: tuple[int, ...], why: str) -> None:
    if tuple(array.shape) != expected:
        raise ValueError(f"{name} must have shape {expected} ({why}); got {tuple(array.shape)}")


def require_frame(up: Sequence[Array], down: Sequence[Array], left: Sequence[Array], right: Sequence[Array]) -> None:
    """The four trains of a frame, with bonds and Tucker ranks that fit together.

    Raises:
      ValueError: naming the core that does not fit.
    """
    for name, train in (("down", down), ("left", left), ("right", right)):
        if len(train) != len(up):
            raise ValueError(f"frame.{name} must have {len(up)} cores, as frame.up has; got {len(train)}")
    stack = tuple(up[0].shape[:-2])
    rL, rR = left[0].shape[-3], right[0].shape[-3]
    for i, (U, O, L, R) in enumerate(zip(up, down, left, right, strict=True)):
        n, N = U.shape[-2:]
        _require_shape(f"frame.up[{i}]", U, (*stack, n, N), "C + (n, N)")
        _require_shape(f"frame.left[{i}]", L, (*stack, rL, n, L.shape[-1]), "C + (rL, n, rL')")
        _require_shape(f"frame.right[{i}]", R, (*stack, rR, n, R.shape[-1]), "C + (rR, n, rR')")
        _require_shape(f"frame.down[{i}]", O, (*stack, rL, O.shape[-2], R.shape[-1]), "C + (rL, m, rR')")
        rL, rR = L.shape[-1], R.shape[-1]


def require_variations(tucker: Sequence[Array], tt: Sequence[Array], frame: Any) -> None:
    """Coordinates ``V + C + ...`` that fit a frame.

    Raises:
      ValueError: naming the core that does not fit.
    """
    if len(tucker) != len(frame.up):
        raise ValueError(f"variations must have {len(frame.up)} modes, as the frame has; got {len(tucker)}")
    stack = tuple(tucker[0].shape[:-2])
    points = frame.stack_shape
    if stack[len(stack) - len(points) :] != points:
        raise ValueError(f"the stack of the variations must end with that of the frame, {points}; got {stack}")
    columns = zip(tucker, tt, frame.up, frame.down, frame.left, frame.right, strict=True)
    for i, (V, H, U, O, L, R) in enumerate(columns):
        _require_shape(f"variations.tucker[{i}]", V, (*stack, O.shape[-2], U.shape[-1]), "V + C + (m, N)")
        _require_shape(f"variations.tt[{i}]", H, (*stack, *L.shape[-3:-1], R.shape[-1]), "V + C + (rL, n, rR')")
