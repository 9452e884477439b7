"""Kinds of measurement: what a fit needs to know of the map from a T3 to data.

A kind is a frozen value that hashes and compares by its fields, so that a compiled step is found again. It answers
with a misfit (and gradient), with Gauss-Newton products and with the squares that errors are made of, all streamed
over the samples; and it says which axis of its samples and data the rows are on, so that minibatches can be drawn.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from t3k.kernels import probe_maps, sample_maps
from t3k.kernels.types import Array, Cores, Frame, Variations
from t3k.kernels.varying import vary_like

__all__ = ["MeasurementKind", "ProbeKind", "SampleKind", "take_rows"]


class MeasurementKind(Protocol):
    """What the optimizers ask of a kind; the axes are tree prefixes of a sample and of its data."""

    @property
    def sample_axes(self) -> Any:
        """The axis of the rows in every array of a sample, None for what all rows share."""

    @property
    def data_axes(self) -> Any:
        """The axis of the rows in every array of the data."""

    def misfit(
        self, sample: Any, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """Half the weighted sum of squared residuals at the base point, and its bare gradient."""

    def gauss_newton(self, sample: Any, variations: Variations, frame: Frame) -> Variations:
        """``J^T (weights J v)``."""

    def squares(self, sample: Any, data: Any, point: Cores, frame: Frame) -> Any:
        """The sums over rows of the squared residuals at the base point, for each part of the data apart."""


def take_rows(kind: MeasurementKind, sample: Any, data: Any, rows: Array) -> tuple[Any, Any]:
    """The sample and data of some rows, in their order; a row may come more than once."""

    def take(axis: int | None, tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf if axis is None else jnp.take(leaf, rows, axis=axis), tree)

    axes = kind.sample_axes, kind.data_axes
    sample, data = jax.tree.map(take, axes, (sample, data), is_leaf=lambda axis: axis is None)
    return sample, data


def _unit_squares(kind: Any, weights: Array, sample: Any, data: Any, point: Cores, frame: Frame) -> Array:
    """A misfit is linear in its weights, so twice its gradient by them holds the sums of squares that they weigh."""

    def value(weights: Array) -> Array:
        return kind.misfit(sample._replace(weights=weights), data, point, frame, gradient=False)[0]

    return 2 * jax.grad(value)(vary_like(weights, *jax.tree.leaves(point)))


@dataclass(frozen=True)
class ProbeKind:
    """Probes and their derivatives up to `order`, taken `chunk_size` at a time; samples are `probe_maps.Probes`."""

    order: int
    chunk_size: int | None

    sample_axes = probe_maps.Probes(-2, -2, None, 0)  # type: ignore[arg-type]
    data_axes = -2

    def misfit(
        self, sample: probe_maps.Probes, data: Cores, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `probe_maps.misfit`."""
        return probe_maps.misfit(sample, data, point, frame, self.order, chunk_size=self.chunk_size, gradient=gradient)

    def gauss_newton(self, sample: probe_maps.Probes, variations: Variations, frame: Frame) -> Variations:
        """See `probe_maps.gauss_newton_product`."""
        return probe_maps.gauss_newton_product(sample, variations, frame, self.order, chunk_size=self.chunk_size)

    def squares(self, sample: probe_maps.Probes, data: Cores, point: Cores, frame: Frame) -> Array:
        """One number for each mode and order, ``(d, t)``."""
        weights = jnp.ones((len(frame.up), self.order + 1), frame.up[0].dtype)
        return _unit_squares(self, weights, sample, data, point, frame)


@dataclass(frozen=True)
class SampleKind:
    """Applies or (`by_index`) entries and their derivatives up to `order`; samples are `sample_maps.Samples`."""

    order: int
    chunk_size: int | None
    by_index: bool = False

    data_axes = 1

    @property
    def sample_axes(self) -> Any:
        """Indices have the rows last, vectors last but one."""
        return sample_maps.Samples(-1 if self.by_index else -2, -2, None, 0)  # type: ignore[arg-type]

    def misfit(
        self, sample: sample_maps.Samples, data: Array, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `sample_maps.sample_misfit`."""
        del point
        return sample_maps.sample_misfit(sample, data, frame, self.order, chunk_size=self.chunk_size, gradient=gradient)

    def gauss_newton(self, sample: sample_maps.Samples, variations: Variations, frame: Frame) -> Variations:
        """See `sample_maps.sample_gauss_newton`."""
        return sample_maps.sample_gauss_newton(sample, variations, frame, self.order, chunk_size=self.chunk_size)

    def squares(self, sample: sample_maps.Samples, data: Array, point: Cores, frame: Frame) -> Array:
        """One number for each order, ``(t,)``."""
        weights = jnp.ones(self.order + 1, frame.up[0].dtype)
        return _unit_squares(self, weights, sample, data, point, frame)
