"""Regularizers: what is added to the misfit, as values that hash and compare alike.

A regularizer gives its value; its gradient and Hessian product follow along ``X + v``, which is linear in the
coordinates v of any frame. So both are right on both geometries, up to the curvature of the manifold, which a
Gauss-Newton model leaves out of the misfit too. A class may bring faster formulas of its own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax

from t3k.kernels.products import inner
from t3k.kernels.tangents import tangent_to_t3
from t3k.kernels.types import Array, Frame, T3Cores, Variations
from t3k.kernels.variations import zero_variations

__all__ = ["Regularizer", "Tikhonov"]


class Regularizer(ABC):
    """The base of all regularizers: a frozen dataclass with a method `value` is one."""

    @abstractmethod
    def value(self, x: T3Cores) -> Array:
        """The value at a T3, a scalar that JAX can differentiate twice."""

    def gradient(self, frame: Frame) -> Variations:
        """The bare gradient at the base point: the derivative by the coordinates of ``X + v`` at v = 0."""
        return self._gradient_at(frame, zero_variations(frame))

    def hessian_product(self, frame: Frame, v: Variations) -> Variations:
        """The second derivative along v."""
        return jax.jvp(lambda u: self._gradient_at(frame, u), (zero_variations(frame),), (v,))[1]

    def _gradient_at(self, frame: Frame, v: Variations) -> Variations:
        return jax.grad(lambda v: self.value(tangent_to_t3(frame, v, include_point=True)))(v)


@dataclass(frozen=True)
class Tikhonov(Regularizer):
    """``strength / 2 |X|^2``, with the Hilbert-Schmidt norm of the tensor whatever its cores.

    Args:
      strength: at least 0.

    Example:
      >>> import jax.numpy as jnp
      >>> x = T3Cores((jnp.ones((1, 4)),), (jnp.ones((1, 1, 1)),))
      >>> Tikhonov(0.5).value(x).item()
      1.0
    """

    strength: float

    def __post_init__(self) -> None:
        if not 0 <= self.strength < float("inf"):
            raise ValueError(f"strength must be a finite number >= 0; got {self.strength!r}")

    def value(self, x: T3Cores) -> Array:
        """Half the squared norm, times the strength."""
        return 0.5 * self.strength * inner(x, x)
