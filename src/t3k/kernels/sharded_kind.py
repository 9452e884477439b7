"""Kinds of measurement whose samples are spread over devices."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
        """The rows that a device takes at a time."""
        return self.kind.chunk_size

    @property
    def sample_axes(self) -> Any:
        """See `t3k.kernels.measurements.MeasurementKind`."""
        return self.kind.sample_axes

    @property
    def data_axes(self) -> Any:
        """See `t3k.kernels.measurements.MeasurementKind`."""
        return self.kind.data_axes

    def misfit(
        self, sample: Any, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """See `t3k.kernels.measurements.MeasurementKind`."""
        return self._sum(partial(self.kind.misfit, gradient=gradient), sample, data, point, frame)

    def gauss_newton(self, sample: Any, variations: Variations, frame: Frame) -> Variations:
        """See `t3k.kernels.measurements.MeasurementKind`."""

        def product(sample: Any, data: None, variations: Variations, frame: Frame) -> Variations:
            del data
            return self.kind.gauss_newton(sample, variations, frame)

        return self._sum(product, sample, None, variations, frame)

    def squares(self, sample: Any, data: Any, point: Cores, frame: Frame) -> Any:
        """See `t3k.kernels.measurements.MeasurementKind`."""
        return self._sum(self.kind.squares, sample, data, point, frame)

    def _sum(self, fun: Callable[..., Any], *xs: Any) -> Any:
        """Sums ``fun(sample, data, *fixed)`` over the devices."""
        axes = (self.sample_axes, None if xs[1] is None else self.data_axes, *(None,) * len(xs[2:]))
        return over_shards(lambda local: fun(*local), xs, add, sharding=self.sharding, axes=axes)
