"""The methods of a T3 that calculate with its entries: sums, products, inner products and norms."""

from collections.abc import Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.structure import Structure
from t3k.kernels.types import Array

__all__ = ["Arithmetic"]


def _is_number(x: Any) -> bool:
    return not isinstance(x, Structure | str | bytes) and jnp.ndim(x) == 0


class Arithmetic(Structure):
    """What `t3k.TuckerTensorTrain` inherits: arithmetic with the semantics of dense tensors.

    Stacks of tensors are broadcast against each other as NumPy would broadcast their stack axes.
    """

    def _number(self, name: str, x: Any) -> Array:
        return validate.as_array(name, x).astype(self.dtype)

    def norm(self) -> Array:
        """The Hilbert-Schmidt norm, shape C; accurate to rounding, and differentiable except at 0."""
        return self._each(compiled.norm)

    def inner(self, other: "Arithmetic") -> Array:
        """The Hilbert-Schmidt inner product with a tensor of the same shape."""
        self._require_same_shape(other)
        return self._with(other, compiled.inner)

    def distance(self, other: "Arithmetic") -> Array:
        """The Hilbert-Schmidt norm of the difference to a tensor of the same shape; accurate to rounding."""
        self._require_same_shape(other)
        return self._with(other, compiled.distance)

    def __add__(self, other: Any) -> Self:
        """The sum with a tensor, whose ranks are the sums of the ranks, or with a scalar in every entry."""
        if isinstance(other, Arithmetic):
            self._require_same_shape(other)
            return self._of(self._with(other, compiled.add))
        if not _is_number(other):
            return NotImplemented
        if isinstance(other, int) and other == 0:  # where Python's sum() starts
            return self
        number = self._number("summand", other)
        return self._of(self._each(lambda cores: compiled.add_scalar(cores, number)))

    __radd__ = __add__

    def __neg__(self) -> Self:
        """The negative."""
        return self * -1

    def __sub__(self, other: Any) -> Self:
        """The difference to a tensor, whose ranks are the sums of the ranks, or to a scalar in every entry."""
        if not isinstance(other, Arithmetic) and not _is_number(other):
            return NotImplemented
        return self + (-1 * other)

    def __rsub__(self, other: Any) -> Self:
        """A scalar in every entry less the tensor."""
        return -self + other if _is_number(other) else NotImplemented

    def __mul__(self, factor: Any) -> Self:
        """The tensor times a scalar; or times a tensor, entry by entry, whose ranks are the products of the ranks."""
        if isinstance(factor, Arithmetic):
            return self.multiply(factor)
        if not _is_number(factor):
            return NotImplemented
        number = self._number("factor", factor)
        return self._of(self._each(lambda cores: compiled.scale(cores, number)))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Self:
        """The tensor divided by a scalar."""
        return self * (1 / self._number("divisor", divisor)) if _is_number(divisor) else NotImplemented

    def multiply(
        self,
        other: "Arithmetic",
        tucker_ranks: Sequence[int] | None = None,
        tt_ranks: Sequence[int] | None = None,
        key: Array | None = None,
    ) -> Self:
        """The Hadamard product, entry by entry: exact, or rounded on the way.

        With caps on the ranks the product is found from random sketches, and its exact ranks, which are products of
        ranks, never exist (see `t3k.kernels.sketched_rounding`); it is nearly as good as the truncated exact one.

        Args:
          other: a tensor of the same shape.
          tucker_ranks: the largest Tucker ranks wanted, one per mode.
          tt_ranks: the largest bonds wanted, (r_0, .., r_d).
          key: for the sketches, from `jax.random.key`; a fixed one if None.

        Raises:
          TypeError, ValueError: if the other tensor or ranks do not fit.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 2, 2), (1, 2, 2, 1))
          >>> (x * x).tt_ranks, x.multiply(x, tt_ranks=(1, 3, 3, 1)).tt_ranks
          ((1, 4, 4, 1), (1, 3, 3, 1))
        """
        self._require_same_shape(other)
        if tucker_ranks is None and tt_ranks is None:
            return self._of(self._with(other, compiled.hadamard))
        n = self.shape if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, self.d)
        exact = [a * b for a, b in zip(self.tt_ranks, other.tt_ranks, strict=True)]
        r = tuple(exact) if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, self.d + 1)
        used = jax.random.key(0) if key is None else key
        return self._of(self._with(other, lambda x, y: compiled.hadamard_rounded(x, y, n, r, used)))
