"""A T3 from a function that gives its entries: `from_function`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.cross import CrossStats, cross_train
from t3k.kernels.truncation import truncate_tolerance
from t3k.kernels.types import Array

__all__ = ["from_function"]


def from_function(
    function: Callable[[tuple[Any, ...]], Any],
    shape: Sequence[int],
    rtol: float = 1e-6,
    tucker_ranks: Sequence[int] | None = None,
    tt_ranks: Sequence[int] | None = None,
    *,
    max_sweeps: int = 20,
    batch_size: int | None = None,
    key: Array | None = None,
) -> tuple[TuckerTensorTrain, CrossStats]:
    """A T3 of a tensor that only a function knows, from a small part of its entries (cross approximation).

    Ranks adapt to the tolerance. What a function does in a small corner of a large tensor may be missed: the error is
    that at random entries.

    Args:
      function: vectorised; takes one array (m,) of integers per mode, in a tuple as `TuckerTensorTrain.entries` does,
        and returns the m entries. It is called on the host and may be anything.
      shape: mode sizes (N_0, .., N_{d-1}).
      rtol: the error wanted, relative, in the root mean square over all entries.
      tucker_ranks: the largest Tucker ranks wanted, one per mode.
      tt_ranks: the largest bonds wanted, (r_0, .., r_d).
      max_sweeps: passes over the modes, at most.
      batch_size: call the function with exactly so many points, so that a jitted one compiles once; as many as there
        are if None.
      key: of the random entries, from `jax.random.key`; a fixed one if None.

    Returns:
      The tensor, in the dtype of the function's values, and how it went: ``status`` (``converged``, ``max_ranks`` or
      ``max_sweeps``), ``evaluations``, ``sweeps`` and ``error``.

    Raises:
      TypeError, ValueError: if an argument does not fit, or the function returns no m finite real numbers.

    References:
      I. Oseledets, E. Tyrtyshnikov, "TT-cross approximation for multidimensional arrays", Linear Algebra Appl. 432
      (2010); see `t3k.kernels.cross`.

    Example:
      >>> import numpy as np, t3k
      >>> x, stats = t3k.from_function(lambda index: 1 / (1.0 + sum(index)), (20, 20, 20), rtol=1e-6)
      >>> stats.status, stats.evaluations < 8000, bool(abs(x[1, 2, 3] - 1 / 7) < 1e-5)
      ('converged', True, True)
    """
    sizes = validate.as_ranks("shape", shape)
    if not sizes:
        raise ValueError("shape must have at least one mode; got ()")
    d = len(sizes)
    n = None if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, d)
    r = None if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, d + 1)
    tolerance = validate.as_tolerance("rtol", rtol)
    (sweeps,) = validate.as_ranks("max_sweeps", (max_sweeps,))
    black_box = _BlackBox(function, None if batch_size is None else validate.as_ranks("batch_size", (batch_size,))[0])
    generator = np.random.default_rng(np.asarray(jax.random.key_data(jax.random.key(0) if key is None else key)))
    caps = r or (2**31,) * (d + 1)
    # Half of the tolerance for the train, and half for what its truncation loses.
    cores, stats = cross_train(black_box, sizes, caps, tolerance / 2, sweeps, generator)
    train = compiled.from_tt(tuple(jnp.asarray(core, black_box.dtype) for core in cores))
    return TuckerTensorTrain(*truncate_tolerance(train, tolerance / 2, 0.0, n, r)), stats


class _BlackBox:
    """Values (m,) in float64 at points (m, d), checked; and the dtype that they came in."""

    def __init__(self, function: Any, batch_size: int | None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable; got {type(function).__name__}")
        self.function, self.batch_size, self.dtype = function, batch_size, jnp.result_type(float)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        size = self.batch_size or len(points)
        starts = range(0, len(points), size)
        return np.concatenate([self._values(points[i : i + size], size) for i in starts])

    def _values(self, points: np.ndarray, size: int) -> np.ndarray:
        filled = np.concatenate([points, np.repeat(points[-1:], size - len(points), axis=0)])
        values = validate.as_array("the values of function", self.function(tuple(filled.T)))
        if values.shape != (size,):
            raise ValueError(f"function must return an array of shape ({size},) for {size} points; got {values.shape}")
        self.dtype = values.dtype
        found = np.asarray(values, np.float64)[: len(points)]
        if not np.isfinite(found).all():
            bad = tuple(int(j) for j in points[int(np.argmin(np.isfinite(found)))])
            raise ValueError(f"function must return finite numbers; got {found[~np.isfinite(found)][0]} at {bad}")
        return found
