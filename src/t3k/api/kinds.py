"""Kinds of measurement, as people name them: how a sample and its data are laid out, checked and weighted."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.api.point_sampling import resolve_chunk
from t3k.api.stacks import merge_axes, probe_axes
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.measurements import ProbeKind
from t3k.kernels.probe_maps import Probes
from t3k.kernels.sharded import n_shards, row_sharding

__all__ = ["ProbeDerivatives", "as_kind", "probe_derivatives_kind", "probe_kind"]


@dataclass(frozen=True)
class ProbeDerivatives:
    """Probes and their derivatives up to an order; see `probe_derivatives_kind`.

    It hashes and compares by value. With `plain`, samples are ``ww`` and data ``W + (N_i,)``, without an order axis.
    """

    order: int
    weight: tuple[tuple[float, ...], ...] | None = None
    chunk_size: int | str | None = "auto"
    plain: bool = False

    def prepare(self, x: TuckerTensorTrain, sample: Any, data: Any) -> tuple[ProbeKind, Probes, Any]:
        """The kernel's kind, and sample and data as it takes them: checked, in the dtype of x, one probe axis.

        Raises:
          TypeError, ValueError: for a sample, data or weight that do not fit x, or that are not finite.
        """
        ww, pp = (sample, None) if self.plain else self._pair(sample)
        shape, dtype = x.shape, x.dtype
        ww = validate.require_probes("sample: ww", ww, shape, dtype)
        pp = validate.require_probes("sample: pp", pp, shape, dtype, like=ww) if self.order else None
        probes = probe_axes(ww)
        data = validate.as_rows("data", data, 1 + len(probes), dtype)
        data = tuple(z[None] for z in data) if self.plain else data
        data = validate.require_residuals("data", data, self.order, probes, shape, dtype)
        if data[0].ndim != 2 + len(probes):
            raise ValueError(f"data[0] must have shape {(self.order + 1, *probes, shape[0])}; got {data[0].shape}")
        for name, train in (("sample: ww", ww), ("sample: pp", pp or ()), ("data", data)):
            validate.require_finite(name, train)
        ww = merge_axes(ww, 0, len(probes))
        if ww[0].shape[0] == 0:
            raise ValueError("sample must hold at least one probe; got none")
        pp = None if pp is None else merge_axes(pp, 0, len(probes))
        data = merge_axes(data, 1, len(probes))
        n_probes = ww[0].shape[0] // n_shards(row_sharding(ww[0]))
        chunk = resolve_chunk(self.chunk_size, x.tucker_cores, x.tt_cores, self.order, n_probes, 1, "gauss_newton")
        return ProbeKind(self.order, chunk), Probes(ww, pp, self._squared_weights(x.d, dtype)), data

    @staticmethod
    def _pair(sample: Any) -> tuple[Any, Any]:
        if not isinstance(sample, tuple | list) or len(sample) != 2:
            raise TypeError(f"sample must be (ww, pp), probe vectors and directions; got {type(sample).__name__}")
        return sample[0], sample[1]

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


def probe_derivatives_kind(order: int, weight: Any = None, chunk_size: int | str | None = "auto") -> ProbeDerivatives:
    """The kind ``"probe_derivatives"``: probes and their derivatives along ``w_i + s p_i``.

    A sample is ``(ww, pp)`` with ``W + (N_i,)`` per mode; data are ``(order+1,) + W + (N_i,)`` per mode.

    Args:
      order: the highest derivative.
      weight: multiplies the residuals, one row per mode and one column per order (or one number per mode).
      chunk_size: probes at a time, None for all at once, or ``"auto"``.

    Raises:
      TypeError, ValueError: for an order, weight or chunk size that does not fit.

    Example:
      >>> import t3k
      >>> t3k.probe_derivatives_kind(2) == t3k.probe_derivatives_kind(2)
      True
    """
    order = validate.as_order(order)
    validate.check_chunk_size(chunk_size, auto=True)
    return ProbeDerivatives(order, _frozen_weight(weight, order), chunk_size)


def probe_kind(weight: Any = None, chunk_size: int | str | None = "auto") -> ProbeDerivatives:
    """The kind ``"probe"``: a sample is ``ww`` with ``W + (N_i,)`` per mode, and data have the same shapes.

    Arguments as in `probe_derivatives_kind`.
    """
    validate.check_chunk_size(chunk_size, auto=True)
    return ProbeDerivatives(0, _frozen_weight(weight, 0), chunk_size, plain=True)


def as_kind(kind: Any, order: Any, weight: Any, chunk_size: Any) -> ProbeDerivatives:
    """A kind object from itself or from its name, with the settings that a fit was called with.

    Raises:
      ValueError: for an unknown name, or an order that is missing or not the kind's.
      TypeError: for anything else.
    """
    if isinstance(kind, ProbeDerivatives):
        if order is not None and validate.as_order(order) != kind.order:
            raise ValueError(f"order must be that of the kind, {kind.order}, or None; got {order}")
        return kind
    if not isinstance(kind, str):
        raise TypeError(f'kind must be "probe", "probe_derivatives" or a kind object; got {type(kind).__name__}')
    if kind == "probe":
        if order not in (None, 0):
            raise ValueError(f'order must be None or 0 for the kind "probe"; got {order}')
        return probe_kind(weight, chunk_size)
    if kind == "probe_derivatives":
        if order is None:
            raise ValueError('order must be given for the kind "probe_derivatives"; got None')
        return probe_derivatives_kind(order, weight, chunk_size)
    raise ValueError(f'kind must be "probe" or "probe_derivatives"; got {kind!r}')
