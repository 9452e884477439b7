"""The methods of a tangent that sample it: probes, applies and entries, their derivatives and their transposes."""

from abc import ABC, abstractmethod
from typing import Any, Self

from t3k.api import probing, sampling, validate
from t3k.api.frame import T3Frame, T3Variations, as_frame
from t3k.kernels.types import Array

__all__ = ["TangentSamples"]


class TangentSamples(ABC):
    """What `t3k.T3Tangent` inherits: samples of ``(frame, variations)``, for stacks V of tangents and C of frames.

    The transposes are functions of residuals and a frame. Each is the bare transpose: `MANIFOLD.project` makes the
    Riemannian gradient of it. With `sum_over_probes` the samples' gradients are summed (J^T r, the gradient of a fit);
    else their axes W stand before the stack of tangents.
    """

    frame: T3Frame
    variations: T3Variations

    @abstractmethod
    def __init__(self, frame: Any, variations: Any) -> None: ...

    # Probes

    def probe(self, ww: Any, chunk_size: int | str | None = "auto") -> tuple[Array, ...]:
        """The probes of the tangent: one array ``W + V + C + (N_i,)`` per mode, from ``W + (N_i,)``."""
        return tuple(z[0] for z in self.probe_derivatives(ww, None, 0, chunk_size))

    def probe_derivatives(
        self, ww: Any, pp: Any, order: int, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
    ) -> tuple[Array, ...]:
        """The derivatives of the probes along ``w_i + s p_i``; see `t3k.tv_probe_derivatives`.

        Args:
          ww: probe vectors, one array ``W + (N_i,)`` per mode.
          pp: directions, of the same shapes.
          order: the highest derivative.
          chunk_size: probes at a time, None for all at once, or ``"auto"``.
          memory: with ``"auto"``, the scratch allowed besides inputs and outputs: ``"2GB"``, or bytes.

        Returns:
          One array ``(order+1,) + W + V + C + (N_i,)`` per mode.
        """
        return probing.tv_probe_derivatives(ww, pp, self.variations, self.frame, order, chunk_size, memory=memory)

    @classmethod
    def probe_transpose(
        cls, r: Any, ww: Any, frame: Any, sum_over_probes: bool = False, chunk_size: int | str | None = "auto"
    ) -> Self:
        """The transpose of `probe`: residuals ``W + V + C + (N_i,)`` to a tangent in `frame`."""
        r = tuple(x[None] for x in validate.as_train("r", r, 1))
        return cls.probe_derivatives_transpose(r, ww, None, frame, 0, sum_over_probes, chunk_size)

    @classmethod
    def probe_derivatives_transpose(
        cls,
        r: Any,
        ww: Any,
        pp: Any,
        frame: Any,
        order: int,
        sum_over_probes: bool = False,
        chunk_size: int | str | None = "auto",
        *,
        memory: int | str | None = None,
    ) -> Self:
        """The transpose of `probe_derivatives`, streamed over the probes; see `t3k.tv_probe_derivatives_transpose`.

        Args:
          r: residual jets, one array ``(order+1,) + W + V + C + (N_i,)`` per mode.
          ww: probe vectors, one array ``W + (N_i,)`` per mode.
          pp: directions, of the same shapes.
          frame: `T3Frame` or ``(up, down, left, right)``.
          order: the highest derivative.
          sum_over_probes: sum over W, or keep W in front of the tangent stack.
          chunk_size: probes at a time, None for all at once, or ``"auto"``; bounds the memory of the whole pipeline.
          memory: with ``"auto"``, the scratch allowed besides inputs and outputs: ``"2GB"``, or bytes.

        Returns:
          A tangent in `frame`.

        Example:
          >>> import jax, jax.numpy as jnp, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
          >>> r = (jnp.ones((2, 3, 4)), jnp.ones((2, 3, 5)))
          >>> t3k.T3Tangent.probe_derivatives_transpose(r, ww, ww, x.frame(), 1).stack_shape
          (3,)
        """
        frame = as_frame(frame)
        gradient = probing.tv_probe_derivatives_transpose(
            r, ww, pp, frame, order, sum_over_probes, chunk_size, memory=memory
        )
        return cls(frame, tuple(gradient))

    # Applies

    def apply(self, ww: Any, chunk_size: int | str | None = "auto") -> Array:
        """The tangent contracted with a vector in every mode: ``W + V + C``, from ``W + (N_i,)`` per mode."""
        return self.apply_derivatives(ww, None, 0, chunk_size)[0]

    def apply_derivatives(
        self, ww: Any, pp: Any, order: int, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
    ) -> Array:
        """The derivatives of `apply` along ``w_i + s p_i``, ``(order+1,) + W + V + C``; see `tv_apply_derivatives`."""
        return sampling.tv_apply_derivatives(ww, pp, self.variations, self.frame, order, chunk_size, memory=memory)

    @classmethod
    def apply_transpose(
        cls, r: Any, ww: Any, frame: Any, sum_over_probes: bool = False, chunk_size: int | str | None = "auto"
    ) -> Self:
        """The transpose of `apply`: residuals ``W + V + C`` to a tangent in `frame`."""
        r = validate.as_array("r", r)[None]
        return cls.apply_derivatives_transpose(r, ww, None, frame, 0, sum_over_probes, chunk_size)

    @classmethod
    def apply_derivatives_transpose(
        cls,
        r: Any,
        ww: Any,
        pp: Any,
        frame: Any,
        order: int,
        sum_over_probes: bool = False,
        chunk_size: int | str | None = "auto",
        *,
        memory: int | str | None = None,
    ) -> Self:
        """The transpose of `apply_derivatives`, from ``(order+1,) + W + V + C``.

        See `t3k.tv_apply_derivatives_transpose`.
        """
        frame = as_frame(frame)
        gradient = sampling.tv_apply_derivatives_transpose(
            r, ww, pp, frame, order, sum_over_probes, chunk_size, memory=memory
        )
        return cls(frame, tuple(gradient))

    # Entries

    def entries(self, index: Any, chunk_size: int | str | None = "auto") -> Array:
        """Entries of the tangent: ``W + V + C``, from one array of integers W per mode."""
        return self.entries_derivatives(index, None, 0, chunk_size)[0]

    def entries_derivatives(
        self, index: Any, pp: Any, order: int, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
    ) -> Array:
        """The derivatives of `entries` as unit vectors move along ``p_i``; see `t3k.tv_entries_derivatives`."""
        return sampling.tv_entries_derivatives(index, pp, self.variations, self.frame, order, chunk_size, memory=memory)

    @classmethod
    def entries_transpose(
        cls, r: Any, index: Any, frame: Any, sum_over_probes: bool = False, chunk_size: int | str | None = "auto"
    ) -> Self:
        """The transpose of `entries`: residuals ``W + V + C`` to a tangent in `frame`."""
        r = validate.as_array("r", r)[None]
        return cls.entries_derivatives_transpose(r, index, None, frame, 0, sum_over_probes, chunk_size)

    @classmethod
    def entries_derivatives_transpose(
        cls,
        r: Any,
        index: Any,
        pp: Any,
        frame: Any,
        order: int,
        sum_over_probes: bool = False,
        chunk_size: int | str | None = "auto",
        *,
        memory: int | str | None = None,
    ) -> Self:
        """The transpose of `entries_derivatives`; see `t3k.tv_entries_derivatives_transpose`."""
        frame = as_frame(frame)
        gradient = sampling.tv_entries_derivatives_transpose(
            r, index, pp, frame, order, sum_over_probes, chunk_size, memory=memory
        )
        return cls(frame, tuple(gradient))
