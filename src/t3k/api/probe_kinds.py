"""The kinds ``"probe"`` and ``"probe_derivatives"``: every mode is left free in turn."""

from dataclasses import dataclass, replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.api.kind import Kind, Measurements, mask_rows, row_weights
from t3k.api.stacks import merge_axes, probe_axes
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.measurements import ProbeKind
from t3k.kernels.probe_maps import Probes
from t3k.kernels.sharded import n_shards, row_sharding

__all__ = ["ProbeDerivatives", "probe_derivatives_kind", "probe_kind", "split_sample"]


def split_sample(name: str, order: int, plain: bool, sample: Any) -> tuple[Any, Any]:
    """``(at, pp)`` from a sample, which is `at` alone where the kind is `plain`.

    Raises:
      TypeError: if it is no pair.
    """
    if plain:
        return sample, None
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise TypeError(f"sample must be ({name}, pp), {name} and directions; got {type(sample).__name__}")
    return sample[0], sample[1] if order else None


@dataclass(frozen=True)
class ProbeDerivatives(Kind):
    """Probes and their derivatives up to an order; see `probe_derivatives_kind`.

    It hashes and compares by value. With `plain`, samples are ``ww`` and data ``W + (N_i,)``, without an order axis.
    """

    order: int
    weight: tuple[tuple[float, ...], ...] | None = None
    plain: bool = False

    def measure(self, x: TuckerTensorTrain, sample: Any) -> Any:
        """The probes of x, in the layout of the data."""
        if self.plain:
            return x.probe(sample, self.chunk_size)
        ww, pp = sample
        return x.probe_derivatives(ww, pp, self.order, self.chunk_size)

    def with_settings(self, weight: Any, chunk_size: Any, memory: Any = None) -> Self:
        """See `Kind.with_settings`."""
        kind = super().with_settings(None, chunk_size, memory)
        return kind if weight is None else replace(kind, weight=_frozen_weight(weight, self.order))

    def prepare(
        self, x: TuckerTensorTrain, sample: Any, data: Any, sample_weight: Any = None, batch_size: int | None = None
    ) -> Measurements:
        """See `Kind.prepare`."""
        ww, pp = split_sample("ww", self.order, self.plain, sample)
        ww = validate.require_probes("sample: ww", ww, x.shape, x.dtype)
        pp = validate.require_probes("sample: pp", pp, x.shape, x.dtype, like=ww) if self.order else None
        probes = probe_axes(ww)
        data = self._data(data, probes, x)
        rows = row_weights(sample_weight, probes, x.dtype)
        ww, data = merge_axes(ww, 0, len(probes)), merge_axes(data, 1, len(probes))
        pp = None if pp is None else merge_axes(pp, 0, len(probes))
        if ww[0].shape[0] == 0:
            raise ValueError("sample must hold at least one probe; got none")
        data = mask_rows(data, rows, 1)
        for name, train in (("sample: ww", ww), ("sample: pp", pp or ()), ("data", data)):
            validate.require_finite(name, train)
        taken = max(1, (batch_size or ww[0].shape[0]) // n_shards(row_sharding(ww[0])))
        chunk = self._chunk(x, self.order, taken, "probe")
        weights = self._squared_weights(x.d, x.dtype)
        return Measurements(ProbeKind(self.order, chunk), Probes(ww, pp, weights, rows), data)

    def _data(self, data: Any, probes: tuple[int, ...], x: TuckerTensorTrain) -> tuple[Any, ...]:
        data = validate.as_rows("data", data, 1 + len(probes), x.dtype)
        data = tuple(z[None] for z in data) if self.plain else data
        data = validate.require_residuals("data", data, self.order, probes, x.shape, x.dtype)
        if data[0].ndim != 2 + len(probes):
            raise ValueError(f"data[0] must have shape {(self.order + 1, *probes, x.shape[0])}; got {data[0].shape}")
        return data

    def _squared_weights(self, d: int, dtype: Any) -> Any:
        if self.weight is None:
            return None
        weight = np.asarray(self.weight, dtype=np.float64)
        if weight.shape != (d, self.order + 1):
            raise ValueError(
                f"weight must have a row for each of the {d} modes and a column for each of the {self.order + 1} "
                f"orders; got shape {weight.shape}"
            )
        return jnp.asarray(weight**2, dtype)


def _frozen_weight(weight: Any, order: int) -> tuple[tuple[float, ...], ...] | None:
    """The weight as nested tuples, so that the kind hashes by value; one value per mode counts for every order."""
    if weight is None:
        return None
    array = np.asarray(weight, dtype=np.float64)
    if array.ndim == 1:
        array = np.repeat(array[:, None], order + 1, axis=1)
    if array.ndim != 2 or not np.all(np.isfinite(array)):
        raise ValueError(f"weight must hold finite numbers, one row per mode; got shape {array.shape}")
    return tuple(tuple(map(float, row)) for row in array)


def probe_derivatives_kind(
    order: int, weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> ProbeDerivatives:
    """The kind ``"probe_derivatives"``: probes and their derivatives along ``w_i + s p_i``.

    A sample is ``(ww, pp)`` with ``W + (N_i,)`` per mode; data are ``(order+1,) + W + (N_i,)`` per mode.

    Args:
      order: the highest derivative.
      weight: multiplies the residuals, one row per mode and one column per order (or one number per mode).
      chunk_size: probes at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.

    Raises:
      TypeError, ValueError: for an order, weight or chunk size that does not fit.

    Example:
      >>> import t3k
      >>> t3k.probe_derivatives_kind(2) == t3k.probe_derivatives_kind(2)
      True
    """
    order = validate.as_order(order)
    return ProbeDerivatives(order, _frozen_weight(weight, order), chunk_size=chunk_size, memory=memory)


def probe_kind(
    weight: Any = None, chunk_size: int | str | None = "auto", *, memory: int | str | None = None
) -> ProbeDerivatives:
    """The kind ``"probe"``: a sample is ``ww`` with ``W + (N_i,)`` per mode, and data have the same shapes.

    Arguments as in `probe_derivatives_kind`.
    """
    return ProbeDerivatives(0, _frozen_weight(weight, 0), plain=True, chunk_size=chunk_size, memory=memory)
