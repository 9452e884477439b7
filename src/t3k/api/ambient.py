"""The transpose of sampling as a map of dense tensors: `ambient_transpose`."""

import math
from collections.abc import Sequence
from typing import Any

from t3k.api import compiled, validate
from t3k.api.indices import flat_indices
from t3k.api.kinds import as_kind
from t3k.api.probe_kinds import ProbeDerivatives, split_sample
from t3k.api.probe_vectors import flat_vectors
from t3k.api.sample_kinds import SampleDerivatives
from t3k.api.stacks import merge_axes
from t3k.kernels.chunking import check_chunk_size
from t3k.kernels.types import Array

__all__ = ["ambient_transpose"]

#: What the samples of one chunk may take for ``"auto"``; each takes as much as a slice of the tensor.
CHUNK_BYTES = 64 * 2**20


def ambient_transpose(
    kind: Any,
    r: Any,
    sample: Any,
    shape: Sequence[int],
    *,
    order: int | None = None,
    chunk_size: int | str | None = "auto",
) -> Array:
    """The dense tensor ``A^T r``, for the map A from a tensor to its samples: ``<A x, r> = <x, A^T r>`` for all x.

    It is the gradient of a loss of samples by the tensor itself, where the transposes of tangents
    (`tv_probe_derivatives_transpose` and its sisters) are gradients by its variations. All of the tensor is formed, so
    it is for tensors that fit in memory; `t3k.MANIFOLD.project_tensor` takes it to a tangent space.

    Args:
      kind: as in `newton_cg`: ``"entries"``, ``"apply"``, ``"probe"`` or their derivatives, or an object of these.
      r: residuals, in the layout of the data of the kind.
      sample: where the tensor is sampled, as in `newton_cg`.
      shape: (N_0, .., N_{d-1}).
      order: the highest derivative, where the kind is a name and has them.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.

    Returns:
      An array of that shape.

    Raises:
      TypeError, ValueError, IndexError: if an argument does not fit; before anything is compiled.

    Example:
      >>> import jax.numpy as jnp, t3k
      >>> t3k.ambient_transpose("entries", jnp.array([2.0, 3.0]), ([0, 1], [1, 0]), (2, 2)).tolist()
      [[0.0, 2.0], [3.0, 0.0]]
    """
    checked, sizes = as_kind(kind, order, None, chunk_size), validate.as_ranks("shape", shape)
    if not isinstance(checked, ProbeDerivatives | SampleDerivatives):
        raise TypeError(
            f"kind must be one of t3k's own; got {type(checked).__name__}: differentiate its measure instead"
        )
    by_index = isinstance(checked, SampleDerivatives) and checked.by_index
    at, pp = split_sample("index" if by_index else "ww", checked.order, checked.plain, sample)
    residuals = _residuals(r, checked)
    flatten = flat_indices if by_index else flat_vectors
    rows, at, pp = flatten(at, pp, sizes, residuals[0].dtype, checked.order)
    for i, (x, size) in enumerate(zip(residuals, sizes, strict=False)):
        expected = (checked.order + 1, *rows, *((size,) if isinstance(checked, ProbeDerivatives) else ()))
        if x.shape != expected:
            raise ValueError(f"r[{i}] must have shape {expected} (an axis of orders first); got {x.shape}")
    flat = merge_axes(residuals, 1, len(rows))
    chunk = _chunk(checked.chunk_size, sizes, flat[0])
    given = flat if isinstance(checked, ProbeDerivatives) else flat[0]
    return compiled.ambient_transpose(given, at, pp, sizes, checked.order, chunk_size=chunk)


def _residuals(r: Any, kind: ProbeDerivatives | SampleDerivatives) -> tuple[Array, ...]:
    """The residuals with an axis of orders in front, one array per mode for probes, else one alone."""
    if isinstance(kind, SampleDerivatives):
        residual = validate.as_array("r", r)
        return (residual[None] if kind.plain else residual,)
    train = validate.as_train("r", r, 1 if kind.plain else 2)
    return tuple(x[None] for x in train) if kind.plain else train


def _chunk(chunk_size: Any, shape: tuple[int, ...], residual: Array) -> int | None:
    checked = check_chunk_size(chunk_size, auto=True)
    if not isinstance(checked, str):
        return checked
    row_bytes = 2 * residual.shape[0] * math.prod(shape) // max(min(shape), 1) * residual.dtype.itemsize
    return max(1, min(residual.shape[1], CHUNK_BYTES // max(row_bytes, 1)))
