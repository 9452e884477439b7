"""Kinds of measurement whose samples are spread over devices."""

from dataclasses import dataclass
from typing import Any

from jax.sharding import NamedSharding

from t3k.kernels.reducers import add
from t3k.kernels.sharded import over_shards
from t3k.kernels.types import Array, Cores, Frame, Variations

__all__ = ["ShardedKind"]


def _row_axes(sample: Any) -> Any:
    """The axis of the rows in a sample: the first, but for its `weights`, which belong to modes and orders."""
    return type(sample)(*(None if name == "weights" else 0 for name in sample._fields))


@dataclass(frozen=True)
class ShardedKind:
    """Another kind, each device taking its own rows; one all-reduce for a misfit or a product.

    The sample is a named tuple of arrays that begin with the row axis, but for `weights`; data begin with the order.
    """

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

    def misfit(
        self, sample: Any, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def local(xs: Any) -> tuple[Array, Variations | None]:
            return self.kind.misfit(*xs, gradient=gradient)

        axes = (_row_axes(sample), 1, None, None)
        return over_shards(local, (sample, data, point, frame), add, sharding=self.sharding, axes=axes)

    def gauss_newton(self, sample: Any, variations: Variations, frame: Frame) -> Variations:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def local(xs: Any) -> Variations:
            return self.kind.gauss_newton(*xs)

        axes = (_row_axes(sample), None, None)
        return over_shards(local, (sample, variations, frame), add, sharding=self.sharding, axes=axes)
