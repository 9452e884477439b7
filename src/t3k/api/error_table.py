"""How well a tensor fits measurements: relative errors for each mode and order apart."""

from typing import Any, NamedTuple

import jax
import numpy as np

from t3k.api import compiled
from t3k.api.fitting import fit_problem
from t3k.api.geometry import COREWISE
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.stored_arrays import reading

__all__ = ["ErrorTable", "relative_errors"]


class ErrorTable(NamedTuple):
    """Relative errors ``|measure(x) - data| / |data|``; `print` shows them.

    ``errors`` is ``(d, order+1)`` for probes, ``(order+1,)`` for applies and entries, and has one number for each array
    of the data of a user's own kind. ``total`` is that of all data together.
    """

    errors: Any
    total: float

    def __str__(self) -> str:
        """A line per mode, a column per order."""
        lines = [f"relative error {self.total:.2e}"]
        if isinstance(self.errors, np.ndarray):
            rows = np.atleast_2d(self.errors)
            lines.append(" " * 8 + "".join(f"{f'order {t}':>11}" for t in range(rows.shape[1])))
            named = [f"mode {i}" if self.errors.ndim == 2 else "all" for i in range(len(rows))]
            lines += [
                f"{name:<8}" + "".join(f"{error:>11.2e}" for error in row)
                for name, row in zip(named, rows, strict=True)
            ]
        return "\n".join(lines)


def relative_errors(
    kind: Any,
    sample: Any,
    data: Any,
    x: TuckerTensorTrain,
    *,
    order: int | None = None,
    sample_weight: Any = None,
    chunk_size: int | str | None = "auto",
) -> ErrorTable:
    """The relative errors of a tensor on measurements, for each mode and order; streamed like a fit.

    Args:
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where it was measured: the fitted data, or others to validate by.
      data: what was measured.
      x: the tensor.
      order: the highest derivative, where the kind is a name and has them.
      sample_weight: weights of the samples, shape W.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.

    Returns:
      An `ErrorTable`.

    Raises:
      TypeError, ValueError: if an argument does not fit; before any compilation.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> table = t3k.relative_errors("probe", ww, x.probe(ww), 1.5 * x)
      >>> table.errors.round(3).tolist(), round(table.total, 3)
      ([[0.5], [0.5]], 0.5)
    """
    settings = {"weight": None, "sample_weight": sample_weight, "regularizer": None, "chunk_size": chunk_size}
    problem = fit_problem(COREWISE, kind, sample, data, x, order=order, **settings)
    zero = jax.tree.map(jax.numpy.zeros_like, x.cores)
    with reading(*problem.arrays):
        squares, norms = (
            jax.device_get(compiled.objective_squares(problem.objective, cores, problem.sample, problem.data))
            for cores in (x.cores, zero)
        )
    total = sum(map(np.sum, jax.tree.leaves(squares))) / sum(map(np.sum, jax.tree.leaves(norms)))
    return ErrorTable(jax.tree.map(_ratio, squares, norms), float(np.sqrt(total)))


def _ratio(square: np.ndarray, norm: np.ndarray) -> np.ndarray:
    """The root of the quotient; where the data are all zero it is 0 or infinite, whether they are met or not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((norm == 0) & (square == 0), 0.0, np.sqrt(square / norm))
