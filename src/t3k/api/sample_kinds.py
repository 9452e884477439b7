"""The kinds ``"apply"`` and ``"entries"`` and their derivatives: no mode is left free."""

from dataclasses import dataclass, replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.api.indices import flat_indices
from t3k.api.kind import Kind, Measurements, mask_rows, row_weights
from t3k.api.probe_kinds import split_sample
from t3k.api.probe_vectors import flat_vectors
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.measurements import SampleKind
from t3k.kernels.sample_maps import Samples
from t3k.kernels.sharded import n_shards, row_sharding
from t3k.kernels.types import Array

__all__ = ["SampleDerivatives", "apply_derivatives_kind", "apply_kind", "entries_derivatives_kind", "entries_kind"]


@dataclass(frozen=True)
class SampleDerivatives(Kind):
    """Applies or (`by_index`) entries and their derivatives up to an order; see `apply_derivatives_kind`.

    It hashes and compares by value. With `plain`, samples are vectors or indices alone, and data have no order axis.
    """

    order: int
    weight: tuple[float, ...] | None = None
    by_index: bool = False
    plain: bool = False

    def measure(self, x: TuckerTensorTrain, sample: Any) -> Any:
        """The samples of x, in the layout of the data."""
        at, pp = split_sample("ww", self.order, self.plain, sample)
        method = x.entries_derivatives if self.by_index else x.apply_derivatives
        derivatives = method(at, pp, self.order, self.chunk_size)
        return derivatives[0] if self.plain else derivatives

    def with_settings(self, weight: Any, chunk_size: Any, memory: Any = None) -> Self:
        """See `Kind.with_settings`."""
        kind = super().with_settings(None, chunk_size, memory)
        return kind if weight is None else replace(kind, weight=_frozen_weight(weight, self.order))

    def prepare(
        self, x: TuckerTensorTrain, sample: Any, data: Any, sample_weight: Any = None, batch_size: int | None = None
    ) -> Measurements:
        """See `Kind.prepare`."""
        at, pp = split_sample("index" if self.by_index else "ww", self.order, self.plain, sample)
        flatten = flat_indices if self.by_index else flat_vectors
        probes, at, pp = flatten(at, pp, x.shape, x.dtype, self.order)
        data = self._data(data, probes, x)
        if at[0].shape[0] == 0:
            raise ValueError("sample must hold at least one sample; got none")
        rows = row_weights(sample_weight, probes, x.dtype)
        data = mask_rows(data.reshape(self.order + 1, -1), rows, 1)
        vectors = () if self.by_index else at
        for name, train in (("sample: ww", vectors), ("sample: pp", pp or ()), ("data", (data,))):
            validate.require_finite(name, train, "sample")
        taken = max(1, (batch_size or at[0].shape[0]) // n_shards(row_sharding(at[0])))
        chunk = self._chunk(x, self.order, taken, "entries" if self.by_index else "apply")
        weights = None if self.weight is None else jnp.asarray(np.square(self.weight), x.dtype)
        return Measurements(SampleKind(self.order, chunk, self.by_index), Samples(at, pp, weights, rows), data)

    def _data(self, data: Any, probes: tuple[int, ...], x: TuckerTensorTrain) -> Array:
        array = validate.as_array("data", data, x.dtype).astype(x.dtype)
        expected = probes if self.plain else (self.order + 1, *probes)
        if array.shape != expected:
            what = f"sample axes {probes}" if self.plain else f"order+1 = {self.order + 1}, sample axes {probes}"
            raise ValueError(f"data must have shape {expected} ({what}); got {array.shape}")
        return array


def _frozen_weight(weight: Any, order: int) -> tuple[float, ...] | None:
    if weight is None:
        return None
    array = np.asarray(weight, dtype=np.float64)
    array = np.full(order + 1, array) if array.ndim == 0 else array
    if array.shape != (order + 1,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"weight must hold a finite number for each of the {order + 1} orders; got shape {array.shape}"
        )
    return tuple(map(float, array))


def apply_derivatives_kind(
    order: int, weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> SampleDerivatives:
    """The kind ``"apply_derivatives"``: contractions with a vector in every mode, and their derivatives.

    A sample is ``(ww, pp)`` with ``W + (N_i,)`` per mode; data are ``(order+1,) + W``.

    Args:
      order: the highest derivative.
      weight: multiplies the residuals, one number for each order, or one for all.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.

    Raises:
      TypeError, ValueError: for an order, weight or chunk size that does not fit.

    Example:
      >>> import t3k
      >>> t3k.apply_derivatives_kind(1, weight=[1, 0.1]).weight
      (1.0, 0.1)
    """
    order = validate.as_order(order)
    return SampleDerivatives(order, _frozen_weight(weight, order), chunk_size=chunk_size, memory=memory)


def apply_kind(
    weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> SampleDerivatives:
    """The kind ``"apply"``: a sample is ``ww`` with ``W + (N_i,)`` per mode, and data have the shape W.

    Arguments as in `apply_derivatives_kind`.
    """
    return SampleDerivatives(0, _frozen_weight(weight, 0), plain=True, chunk_size=chunk_size, memory=memory)


def entries_derivatives_kind(
    order: int, weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> SampleDerivatives:
    """The kind ``"entries_derivatives"``: entries, and their derivatives as unit vectors move along ``p_i``.

    A sample is ``(index, pp)`` with integers W and directions ``W + (N_i,)`` per mode; data are ``(order+1,) + W``.
    Arguments as in `apply_derivatives_kind`.
    """
    order = validate.as_order(order)
    return SampleDerivatives(order, _frozen_weight(weight, order), by_index=True, chunk_size=chunk_size, memory=memory)


def entries_kind(
    weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> SampleDerivatives:
    """The kind ``"entries"``: a sample is ``index`` with integers W per mode, and data have the shape W.

    Arguments as in `apply_derivatives_kind`.
    """
    return SampleDerivatives(
        0, _frozen_weight(weight, 0), by_index=True, plain=True, chunk_size=chunk_size, memory=memory
    )
