"""The methods of a T3 that sample it: probes, applies and entries, and their derivatives along X + s P."""

from abc import ABC, abstractmethod
from typing import Any

from t3k.api import point_sampling
from t3k.kernels.types import Array, T3Cores

__all__ = ["PointSamples"]


class PointSamples(ABC):
    """What `t3k.TuckerTensorTrain` inherits: samples of ``self.cores``, for stacks of tensors as well."""

    @property
    @abstractmethod
    def cores(self) -> T3Cores:
        """The cores as the kernels take them."""

    def probe(self, ww: Any, chunk_size: int | str | None = "auto") -> tuple[Array, ...]:
        """The tensor contracted with a vector in every mode but one, for each mode in turn.

        Args:
          ww: probe vectors, one array ``W + (N_i,)`` per mode.
          chunk_size: probes at a time, None for all at once, or ``"auto"``.

        Returns:
          One array ``W + C + (N_i,)`` per mode.

        Raises:
          TypeError, ValueError: for probes or a chunk size that do not fit.

        Example:
          >>> import jax, jax.numpy as jnp, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> [z.shape for z in x.probe((jnp.ones((7, 4)), jnp.ones((7, 5))))]
          [(7, 4), (7, 5)]
        """
        return tuple(z[0] for z in point_sampling.probe_derivatives(self.cores, ww, None, 0, chunk_size))

    def probe_derivatives(
        self, ww: Any, pp: Any, order: int, chunk_size: int | str | None = "auto"
    ) -> tuple[Array, ...]:
        """The derivatives of the probes as ``w_i`` moves along ``p_i``, orders 0 to `order`.

        Args:
          ww: probe vectors, one array ``W + (N_i,)`` per mode.
          pp: directions, of the same shapes.
          order: the highest derivative.
          chunk_size: probes at a time, None for all at once, or ``"auto"``.

        Returns:
          One array ``(order+1,) + W + C + (N_i,)`` per mode.

        Raises:
          TypeError, ValueError: for probes, an order or a chunk size that do not fit.
        """
        return point_sampling.probe_derivatives(self.cores, ww, pp, order, chunk_size)

    def apply(self, ww: Any, chunk_size: int | str | None = "auto") -> Array:
        """The tensor contracted with a vector in every mode: ``W + C``, from one array ``W + (N_i,)`` per mode."""
        return point_sampling.apply_derivatives(self.cores, ww, None, 0, chunk_size)[0]

    def apply_derivatives(self, ww: Any, pp: Any, order: int, chunk_size: int | str | None = "auto") -> Array:
        """The derivatives of `apply` as ``w_i`` moves along ``p_i``: ``(order+1,) + W + C``."""
        return point_sampling.apply_derivatives(self.cores, ww, pp, order, chunk_size)

    def entries(self, index: Any, chunk_size: int | str | None = "auto") -> Array:
        """Entries of the tensor: ``W + C``, from one array of integers W per mode.

        Raises:
          TypeError: if indices are no integers.
          IndexError: if one is out of range (checked where it is concrete); negative ones count from the end.

        Example:
          >>> import t3k
          >>> t3k.TuckerTensorTrain.from_dense([[1., 2.], [3., 4.]]).entries(([0, 1], [1, -1])).round(4).tolist()
          [2.0, 4.0]
        """
        return point_sampling.entries_derivatives(self.cores, index, None, 0, chunk_size)[0]

    def entries_derivatives(self, index: Any, pp: Any, order: int, chunk_size: int | str | None = "auto") -> Array:
        """The derivatives of `entries` as unit vectors move along ``p_i``: ``(order+1,) + W + C``."""
        return point_sampling.entries_derivatives(self.cores, index, pp, order, chunk_size)
