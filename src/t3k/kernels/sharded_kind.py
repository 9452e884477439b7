"""Kinds of measurement whose samples are spread over devices."""

from dataclasses import dataclass
from typing import Any

from jax.sharding import NamedSharding

from t3k.kernels.reducers import add
from t3k.kernels.sharded import over_shards
from t3k.kernels.types import Array, Cores, Frame, Variations

__all__ = ["ShardedKind"]


@dataclass(frozen=True)
class ShardedKind:
    """Another kind, each device taking its own rows; one all-reduce for a misfit or a product."""

    kind: Any
    sharding: NamedSharding

    @property
    def order(self) -> int:
        """The highest derivative that is measured."""
        return self.kind.order

    @property
    def chunk_size(self) -> int | None:
        """The samples that a device takes at a time."""
        return self.kind.chunk_size

    @property
    def sample_axes(self) -> Any:
        """The axis of the rows in every array of a sample."""
        return self.kind.sample_axes

    @property
    def data_axes(self) -> Any:
        """The axis of the rows in every array of the data."""
        return self.kind.data_axes

    def misfit(
        self, sample: Any, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def local(xs: Any) -> tuple[Array, Variations | None]:
            return self.kind.misfit(*xs, gradient=gradient)

        axes = (self.sample_axes, self.data_axes, None, None)
        return over_shards(local, (sample, data, point, frame), add, sharding=self.sharding, axes=axes)

    def gauss_newton(self, sample: Any, variations: Variations, frame: Frame) -> Variations:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def local(xs: Any) -> Variations:
            return self.kind.gauss_newton(*xs)

        axes = (self.sample_axes, None, None)
        return over_shards(local, (sample, variations, frame), add, sharding=self.sharding, axes=axes)

    def squares(self, sample: Any, data: Any, point: Cores, frame: Frame) -> Any:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def local(xs: Any) -> Any:
            return self.kind.squares(*xs)

        axes = (self.sample_axes, self.data_axes, None, None)
        return over_shards(local, (sample, data, point, frame), add, sharding=self.sharding, axes=axes)
