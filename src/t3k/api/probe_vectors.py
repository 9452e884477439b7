"""Probe vectors and directions as people pass them, made into what the kernels take."""

from collections.abc import Sequence
from typing import Any

from t3k.api import validate
from t3k.api.stacks import merge_axes, probe_axes
from t3k.kernels.types import Array

__all__ = ["flat_vectors"]

_Train = tuple[Array, ...]


def flat_vectors(
    ww: Any, pp: Any, shape: Sequence[int], dtype: Any, order: int
) -> tuple[tuple[int, ...], _Train, _Train | None]:
    """Checked vectors and directions with one flat probe axis, and the probe axes W that it stands for.

    Args:
      ww: one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; not looked at where `order` is 0.
      shape: (N_0, .., N_{d-1}).
      dtype: that the vectors get.
      order: the highest derivative.

    Raises:
      TypeError, ValueError: if they do not fit, or directions are needed and missing.
    """
    ww = validate.require_probes("ww", ww, shape, dtype)
    probes = probe_axes(ww)
    flat = merge_axes(ww, 0, len(probes))
    if order == 0:
        return probes, flat, None
    if pp is None:
        raise ValueError(f"pp must be given where order is above 0; got None with order {order}")
    pp = validate.require_probes("pp", pp, shape, dtype, like=ww)
    return probes, flat, merge_axes(pp, 0, len(probes))
