"""What a kind of measurement is to people: the base class of all kinds, and of a user's own."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import validate
from t3k.api.point_sampling import resolve_chunk
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.function_kind import FunctionKind, WeightedRows
from t3k.kernels.measurements import MeasurementKind
from t3k.kernels.scratch import check_memory
from t3k.kernels.stored_arrays import StoredArray
from t3k.kernels.types import Array, T3Cores

__all__ = ["Kind", "Measurements", "mask_rows", "row_weights"]


class Measurements(NamedTuple):
    """A kind, a sample and data as the kernels take them: checked, in one dtype, on one axis of rows."""

    kind: MeasurementKind
    sample: Any
    data: Any


@dataclass(frozen=True)
class _Measure:
    """A kind's `measure` as a function of cores; it hashes and compares as the kind does."""

    kind: "Kind"

    def __call__(self, x: T3Cores, sample: Any) -> Any:
        return self.kind.measure(TuckerTensorTrain(*x), sample)


@dataclass(frozen=True)
class Kind:
    """A kind of measurement; make your own by a frozen dataclass with a method `measure`.

    Kinds hash and compare by value, so that a second fit with an equal kind compiles nothing. Samples and data are
    pytrees of arrays with one row for each sample on the first axis; gradients and Gauss-Newton products are derived,
    and taken `chunk_size` rows at a time.

    Args:
      chunk_size: rows at a time, None for all at once, or ``"auto"``; a keyword.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes; a keyword.

    Example:
      >>> import jax, t3k
      >>> from dataclasses import dataclass
      >>> @dataclass(frozen=True)
      ... class SquaredEntries(t3k.Kind):
      ...     def measure(self, x, sample):
      ...         return x.entries(sample) ** 2
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (3, 3), (1, 1), (1, 1, 1))
      >>> SquaredEntries().measure(x, ([0, 1], [2, 0])).shape
      (2,)
    """

    chunk_size: int | str | None = field(default="auto", kw_only=True)
    memory: int | str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_memory(self.memory, validate.check_chunk_size(self.chunk_size, auto=True))

    def measure(self, x: TuckerTensorTrain, sample: Any) -> Any:
        """What a tensor would give: a differentiable function of x, row by row of the sample."""
        raise NotImplementedError(f"{type(self).__name__} must define measure(self, x, sample)")

    def with_settings(self, weight: Any, chunk_size: Any, memory: Any = None) -> Self:
        """The kind with the settings that a fit was called with; None and ``"auto"`` leave it as it is."""
        if weight is not None:
            raise ValueError(f"weight must be None for {type(self).__name__}, which has none; scale what it measures")
        if memory is None and isinstance(chunk_size, str) and chunk_size == "auto":
            return self
        return replace(self, chunk_size=chunk_size, memory=memory)

    def prepare(
        self, x: TuckerTensorTrain, sample: Any, data: Any, sample_weight: Any = None, batch_size: int | None = None
    ) -> Measurements:
        """Kind, sample and data as the kernels take them.

        Args:
          x: gives shape, ranks and dtype.
          sample: where x is measured.
          data: what was measured.
          sample_weight: multiplies the residuals of each sample; a sample of weight 0 does not count at all.
          batch_size: rows that a step will take, where it does not take all.

        Raises:
          TypeError, ValueError: for a sample, data or weight that do not fit x, or that are not finite.
        """
        sample = jax.tree.map(lambda leaf: _in_dtype(leaf, x.dtype), sample)
        data = jax.tree.map(lambda leaf: validate.as_array("data", leaf, x.dtype).astype(x.dtype), data)
        n_rows = _count_rows(sample, data)
        expected = jax.eval_shape(self.measure, x, sample)
        if jax.tree.map(jnp.shape, expected) != jax.tree.map(jnp.shape, data):
            raise ValueError(
                f"data must be as {type(self).__name__}.measure gives them, {jax.tree.map(jnp.shape, expected)}; "
                f"got {jax.tree.map(jnp.shape, data)}"
            )
        rows = row_weights(sample_weight, (n_rows,), x.dtype)
        data = mask_rows(data, rows, 0)
        for name, tree in (("sample", sample), ("data", data)):
            floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
            validate.require_finite(name, floats, "row")
        taken = batch_size or n_rows
        chunk = self._chunk(x, 0, taken, "probe")
        return Measurements(FunctionKind(_Measure(self), chunk), WeightedRows(sample, rows), data)

    def _chunk(self, x: TuckerTensorTrain, order: int, n_rows: int, kind: str) -> int | None:
        """The rows that a step takes at a time."""
        return resolve_chunk(
            self.chunk_size, x.tucker_cores, x.tt_cores, order, n_rows, 1, "gauss_newton", kind=kind, memory=self.memory
        )


def _in_dtype(leaf: Any, dtype: Any) -> Array:
    """Floats in the dtype of the fit, integers as they are."""
    array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
    if jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool:
        return jnp.asarray(array)
    return validate.as_array("sample", leaf, dtype).astype(dtype)


def _count_rows(sample: Any, data: Any) -> int:
    leaves = jax.tree.leaves((sample, data))
    counts = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
    if len(counts) != 1 or None in counts:
        shapes = [leaf.shape for leaf in leaves]
        raise ValueError(f"sample and data must have as many rows, on the first axis of every array; got {shapes}")
    (n_rows,) = counts
    if n_rows == 0:
        raise ValueError("sample must hold at least one row; got none")
    return int(n_rows)  # type: ignore[arg-type]


def row_weights(sample_weight: Any, probes: tuple[int, ...], dtype: Any) -> Array | None:
    """Weights of the squared residuals, one for each row, from factors of the residuals W.

    Raises:
      ValueError: if they have not the shape W, or are not finite.
    """
    if sample_weight is None:
        return None
    weight = validate.as_array("sample_weight", sample_weight, dtype).astype(dtype)
    if weight.shape != probes:
        raise ValueError(f"sample_weight must have shape {probes}, one number for each sample; got {weight.shape}")
    if validate.is_concrete(weight) and not bool(jnp.all(jnp.isfinite(weight))):
        raise ValueError("sample_weight must be finite")
    return weight.reshape(-1) ** 2


def mask_rows(data: Any, rows: Array | None, axis: int) -> Any:
    """The data with zeros in the rows of weight 0, which may hold anything, NaN included; but not those in files."""
    if rows is None:
        return data

    def mask(leaf: Any) -> Any:
        if isinstance(leaf, StoredArray):
            return leaf
        shape = [1] * leaf.ndim
        shape[axis] = -1
        return jnp.where(rows.reshape(shape) == 0, 0, leaf)

    return jax.tree.map(mask, data, is_leaf=lambda leaf: isinstance(leaf, StoredArray))
