"""Kinds of measurement: what a fit needs to know of the map from a T3 to data.

A kind is a frozen value that hashes and compares by its fields, so that a compiled step is found again. It answers
with a misfit (and gradient) and with Gauss-Newton products, both streamed over the samples.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from t3k.kernels import probe_maps
from t3k.kernels.types import Array, Cores, Frame, Variations

__all__ = ["MeasurementKind", "ProbeKind"]


class MeasurementKind(Protocol):
    """What the optimizers ask of a kind."""

    def misfit(
        self, sample: Any, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """Half the weighted sum of squared residuals at the base point, and its bare gradient."""

    def gauss_newton(self, sample: Any, variations: Variations, frame: Frame) -> Variations:
        """``J^T (weights J v)``."""


@dataclass(frozen=True)
class ProbeKind:
    """Probes and their derivatives up to `order`, taken `chunk_size` at a time; samples are `probe_maps.Probes`."""

    order: int
    chunk_size: int | None

    def misfit(
        self, sample: probe_maps.Probes, data: Cores, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `probe_maps.misfit`."""
        return probe_maps.misfit(sample, data, point, frame, self.order, chunk_size=self.chunk_size, gradient=gradient)

    def gauss_newton(self, sample: probe_maps.Probes, variations: Variations, frame: Frame) -> Variations:
        """See `probe_maps.gauss_newton_product`."""
        return probe_maps.gauss_newton_product(sample, variations, frame, self.order, chunk_size=self.chunk_size)
