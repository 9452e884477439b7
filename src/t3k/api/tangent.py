"""Tangent vectors as objects: `T3Tangent`."""

from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.files import Saved
from t3k.api.frame import T3Frame, T3Variations, as_frame, as_variations
from t3k.api.pytrees import pytree
from t3k.api.stacks import merge_axes, split_axis
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent_samples import TangentSamples
from t3k.kernels.types import Array, T3Cores

__all__ = ["T3Tangent"]


@pytree
@dataclass(frozen=True, eq=False, init=False)
class T3Tangent(TangentSamples, Saved):
    """A tangent vector: coordinates (V, H) in a frame (U, O, L, R).

    ::

        v = sum_i  [U..U ; L_0..L_{i-1}, H_i, R_{i+1}..]  +  sum_i [U..V_i..U ; L_0..L_{i-1}, O_i, R_{i+1}..]

    It is a pytree. Coordinates with leading axes V are a stack of tangents in one frame; a frame with leading axes C
    is a stack of base points. Sums and multiples stay in the frame; metric, projection and retraction belong to the
    geometry (`t3k.MANIFOLD`, `t3k.COREWISE`).

    Args:
      frame: `T3Frame` or ``(up, down, left, right)``.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.

    Raises:
      TypeError, ValueError: if they do not fit together.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Appendix A.3, equation (47).
    """

    frame: T3Frame
    variations: T3Variations

    def __init__(self, frame: Any, variations: Any) -> None:
        checked = as_frame(frame)
        object.__setattr__(self, "frame", checked)
        object.__setattr__(self, "variations", as_variations(variations, checked))

    def _trains(self) -> dict[str, tuple[Array, ...]]:
        return dict(zip(self._train_names(), (*self.frame, *self.variations), strict=True))

    @classmethod
    def _train_names(cls) -> tuple[str, ...]:
        return "up", "down", "left", "right", "tucker", "tt"

    @classmethod
    def _from_trains(cls, *trains: tuple[Array, ...]) -> Self:
        return cls(trains[:4], trains[4:])

    @property
    def shape(self) -> tuple[int, ...]:
        """The mode sizes (N_0, .., N_{d-1})."""
        return self.frame.shape

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """All stack axes, V + C."""
        return self.variations.tucker[0].shape[:-2]

    @property
    def tangent_stack_shape(self) -> tuple[int, ...]:
        """The stack axes V of tangents that share a frame."""
        return self.stack_shape[: len(self.stack_shape) - len(self.frame.stack_shape)]

    @property
    def dtype(self) -> Any:
        """The dtype of the cores."""
        return self.frame.dtype

    def __repr__(self) -> str:
        """One line: sizes, ranks and stacks."""
        try:
            return (
                f"T3Tangent(shape {self.shape}, Tucker ranks {self.frame.tucker_ranks}, TT ranks "
                f"{self.frame.tt_ranks}, stack {self.stack_shape}, {jnp.dtype(self.dtype).name})"
            )
        except (AttributeError, IndexError, TypeError):
            return f"T3Tangent({self.frame!r}, {self.variations!r})"

    # Arithmetic within the tangent space

    #: Numpy's scalars leave products to `__rmul__`, instead of looking for an array in here.
    __array_ufunc__ = None

    def _combine(self, fun: Any, *others: "T3Tangent") -> "T3Tangent":
        coordinates = jax.tree.map(fun, self.variations.cores, *(other.variations.cores for other in others))
        return T3Tangent(self.frame, T3Variations(*coordinates))

    def __add__(self, other: Any) -> "T3Tangent":
        """The sum with a tangent in the same frame (which is not compared)."""
        return self._combine(jnp.add, other) if isinstance(other, T3Tangent) else NotImplemented

    def __sub__(self, other: Any) -> "T3Tangent":
        """The difference to a tangent in the same frame (which is not compared)."""
        return self._combine(jnp.subtract, other) if isinstance(other, T3Tangent) else NotImplemented

    def __mul__(self, factor: Any) -> "T3Tangent":
        """The tangent times a scalar."""
        if jnp.ndim(factor) != 0:
            return NotImplemented
        factor = validate.as_array("factor", factor).astype(self.dtype)
        return self._combine(lambda x: x * factor)

    __rmul__ = __mul__

    def __neg__(self) -> "T3Tangent":
        """The negative."""
        return self._combine(jnp.negative)

    def __truediv__(self, divisor: Any) -> "T3Tangent":
        """The tangent divided by a scalar."""
        if jnp.ndim(divisor) != 0:
            return NotImplemented
        return self * (1 / validate.as_array("divisor", divisor).astype(self.dtype))

    # As a tensor

    def to_t3(self, include_point: bool = False) -> TuckerTensorTrain:
        """The tangent (or, with `include_point`, the base point plus the tangent) as a T3 of twice the ranks."""
        cores = self.map_stack(lambda f, v: compiled.tangent_to_t3(f, v, include_point=include_point))
        return TuckerTensorTrain(*cores)

    def to_dense(self) -> Array:
        """The tangent as a dense tensor, ``V + C + (N_0, .., N_{d-1})``."""
        return self.map_stack(lambda f, v: compiled.to_dense(T3Cores(*compiled.tangent_to_t3(f, v))))

    def map_stack(self, kernel: Any) -> Any:
        """Runs ``kernel(frame, variations)`` for each tangent of the stack; V + C come back as leading axes."""
        points, tangents = self.frame.stack_shape, self.tangent_stack_shape
        frame, coordinates = self.frame.cores, self.variations.cores
        if points:
            kernel = jax.vmap(kernel)
            frame = merge_axes(frame, 0, len(points))
            coordinates = merge_axes(coordinates, len(tangents), len(points))
        if tangents:
            kernel = jax.vmap(kernel, in_axes=(None, 0))
            coordinates = merge_axes(coordinates, 0, len(tangents))
        result = kernel(frame, coordinates)
        if points:
            result = split_axis(result, 1 if tangents else 0, points)
        return split_axis(result, 0, tangents) if tangents else result
