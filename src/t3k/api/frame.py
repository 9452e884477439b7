"""Frames and variations as objects: the base of a tangent space, and coordinates in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from t3k.api import validate
from t3k.api.files import Saved
from t3k.api.pytrees import pytree
from t3k.kernels.types import Array, Frame, Variations

__all__ = ["T3Frame", "T3Variations", "as_frame", "as_variations"]


@pytree
@dataclass(frozen=True, eq=False, init=False)
class T3Frame(Saved):
    """The frame (U, O, L, R) of a tangent space, as `MANIFOLD.frame` and `COREWISE.frame` make it.

    It unpacks into its four trains: ``up, down, left, right = frame``. Leading axes C are a stack of frames.

    Args:
      up: ``C + (n_i, N_i)``, U; orthonormal rows on the manifold.
      down: ``C + (rL_i, m_i, rR_{i+1})``, O; orthonormal on the Tucker index.
      left: ``C + (rL_i, n_i, rL_{i+1})``, L; left orthogonal but for the last.
      right: ``C + (rR_i, n_i, rR_{i+1})``, R; right orthogonal but for the first.

    Raises:
      TypeError, ValueError: if the trains are no arrays or do not fit together.
    """

    up: tuple[Array, ...]
    down: tuple[Array, ...]
    left: tuple[Array, ...]
    right: tuple[Array, ...]

    def __init__(self, up: Any, down: Any, left: Any, right: Any) -> None:
        given = {"up": up, "down": down, "left": left, "right": right}
        trains = {name: validate.as_train(name, train, 2 if name == "up" else 3) for name, train in given.items()}
        validate.require_frame(**trains)
        dtype = validate.common_dtype(*trains.values())
        for name, train in trains.items():
            object.__setattr__(self, name, validate.cast_train(train, dtype))

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        return iter((self.up, self.down, self.left, self.right))

    def _trains(self) -> dict[str, tuple[Array, ...]]:
        return dict(zip(self._train_names(), self, strict=True))

    @classmethod
    def _train_names(cls) -> tuple[str, ...]:
        return "up", "down", "left", "right"

    @property
    def cores(self) -> Frame:
        """The trains as the kernels take them."""
        return Frame(self.up, self.down, self.left, self.right)

    @property
    def shape(self) -> tuple[int, ...]:
        """The mode sizes (N_0, .., N_{d-1})."""
        return tuple(core.shape[-1] for core in self.up)

    @property
    def tucker_ranks(self) -> tuple[int, ...]:
        """The Tucker ranks (n_0, .., n_{d-1})."""
        return tuple(core.shape[-2] for core in self.up)

    @property
    def tt_ranks(self) -> tuple[int, ...]:
        """The bonds of the left cores (r_0, .., r_d); on the manifold the right cores have the same."""
        return (self.left[0].shape[-3], *(core.shape[-1] for core in self.left))

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """The stack axes C; empty for one frame."""
        return self.up[0].shape[:-2]

    @property
    def dtype(self) -> Any:
        """The dtype of the cores."""
        return self.up[0].dtype

    def __repr__(self) -> str:
        """One line: sizes, ranks and dtype."""
        try:
            return (
                f"T3Frame(shape {self.shape}, Tucker ranks {self.tucker_ranks}, TT ranks {self.tt_ranks}, "
                f"stack {self.stack_shape}, {jnp.dtype(self.dtype).name})"
            )
        except (AttributeError, IndexError, TypeError):
            return f"T3Frame({self.up!r}, {self.down!r}, {self.left!r}, {self.right!r})"


def as_frame(frame: Any) -> T3Frame:
    """A `T3Frame` from itself or from the four trains ``(up, down, left, right)``.

    Raises:
      TypeError: if it is neither.
    """
    if isinstance(frame, T3Frame):
        return frame
    if not isinstance(frame, tuple | list) or len(frame) != 4:
        raise TypeError(f"frame must be a T3Frame or (up, down, left, right); got {type(frame).__name__}")
    return T3Frame(*frame)


@pytree
@dataclass(frozen=True, eq=False, init=False)
class T3Variations(Saved):
    """Coordinates (V, H) of a tangent in a frame; leading axes V + C are stacks of tangents and of frames.

    Args:
      tucker: ``V + C + (m_i, N_i)`` per mode.
      tt: ``V + C + (rL_i, n_i, rR_{i+1})`` per mode.
    """

    tucker: tuple[Array, ...]
    tt: tuple[Array, ...]

    def __init__(self, tucker: Any, tt: Any) -> None:
        tucker = validate.as_train("tucker", tucker, 2)
        tt = validate.as_train("tt", tt, 3)
        if len(tucker) != len(tt):
            raise ValueError(f"variations must have as many tt as tucker cores ({len(tucker)}); got {len(tt)}")
        dtype = validate.common_dtype(tucker, tt)
        object.__setattr__(self, "tucker", validate.cast_train(tucker, dtype))
        object.__setattr__(self, "tt", validate.cast_train(tt, dtype))

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        return iter((self.tucker, self.tt))

    def _trains(self) -> dict[str, tuple[Array, ...]]:
        return dict(zip(self._train_names(), self, strict=True))

    @classmethod
    def _train_names(cls) -> tuple[str, ...]:
        return "tucker", "tt"

    @property
    def cores(self) -> Variations:
        """The coordinates as the kernels take them."""
        return Variations(self.tucker, self.tt)


def as_variations(variations: Any, frame: T3Frame) -> T3Variations:
    """`T3Variations` that fit the frame, from themselves or from ``(tucker, tt)``, in the frame's dtype.

    Raises:
      TypeError: if they are neither.
      ValueError: naming the core that does not fit.
    """
    if not isinstance(variations, T3Variations):
        if not isinstance(variations, tuple | list) or len(variations) != 2:
            raise TypeError(f"variations must be T3Variations or (tucker, tt); got {type(variations).__name__}")
        variations = T3Variations(*variations)
    validate.require_variations(variations.tucker, variations.tt, frame)
    cast = validate.cast_train(variations.tucker, frame.dtype), validate.cast_train(variations.tt, frame.dtype)
    return T3Variations(*cast)
