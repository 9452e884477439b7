"""A kind of measurement made of a function: any differentiable map from a T3 to data, one row for each sample.

With T(v) the T3 ``X + v`` of doubled ranks, which is linear in the coordinates v, ::

    J v = d measure(T(v)) [v]  at v = 0,            J^T r by reverse mode,            Gauss-Newton: J^T (rows J v)

so that a function is all that a kind needs, on both geometries. It costs a few times what formulas made for it would.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.jets import total
from t3k.kernels.reducers import add
from t3k.kernels.tangents import tangent_to_t3
from t3k.kernels.types import Array, Cores, Frame, T3Cores, Variations
from t3k.kernels.variations import zero_variations
from t3k.kernels.varying import vary_like

__all__ = ["FunctionKind", "WeightedRows"]


class WeightedRows(NamedTuple):
    """A sample, any pytree with the rows on the first axis of every array, and the weights of the squared residuals.

    ``rows (w,)``; None counts all alike.
    """

    sample: Any
    rows: Array | None = None


def _weigh(residual: Any, rows: Array | None) -> Any:
    if rows is None:
        return residual
    return jax.tree.map(lambda r: r * rows.reshape(-1, *(1,) * (r.ndim - 1)), residual)


def _half_square(weighted: Any, residual: Any) -> Array:
    pairs = zip(jax.tree.leaves(weighted), jax.tree.leaves(residual), strict=True)
    return 0.5 * total(jnp.vdot(x, y) for x, y in pairs)


def _origin(frame: Frame) -> Variations:
    """The zero tangent, known to belong to one device where the frame does: derivatives by it are not summed then."""
    return jax.tree.map(lambda zero: vary_like(zero, *jax.tree.leaves(frame)), zero_variations(frame))


@dataclass(frozen=True)
class FunctionKind:
    """Measurements by ``measure(T3Cores, sample)``, a pytree of arrays with rows on the first axis.

    `measure` is a function of one block of rows that treats rows independently; it must hash and compare by value.
    """

    measure: Callable[[T3Cores, Any], Any]
    chunk_size: int | None

    sample_axes = 0
    data_axes = 0

    def misfit(
        self, sample: WeightedRows, data: Any, point: Cores, frame: Frame, *, gradient: bool
    ) -> tuple[Array, Variations | None]:
        """Half the weighted sum of squared residuals, and its gradient by reverse mode."""
        del point

        def block(sample: Any, data: Any, rows: Array | None) -> tuple[Array, Variations | None]:
            if gradient:
                found, pull = jax.vjp(lambda v: self._along(frame, v, sample), _origin(frame))
            else:
                found, pull = self.measure(T3Cores(frame.up, frame.left), sample), None
            residual = jax.tree.map(jnp.subtract, found, data)
            weighted = _weigh(residual, rows)
            return _half_square(weighted, residual), None if pull is None else pull(weighted)[0]

        return self._stream(block, frame, sample, data)

    def gauss_newton(self, sample: WeightedRows, variations: Variations, frame: Frame) -> Variations:
        """Forward mode and reverse mode, block by block."""

        def block(sample: Any, data: None, rows: Array | None) -> Variations:
            del data
            moved, pull = jax.vjp(lambda v: self._along(frame, v, sample), _origin(frame))
            del moved
            change = jax.jvp(lambda v: self._along(frame, v, sample), (_origin(frame),), (variations,))[1]
            return pull(_weigh(change, rows))[0]

        return self._stream(block, frame, sample, None)

    def squares(self, sample: WeightedRows, data: Any, point: Cores, frame: Frame) -> Any:
        """One number for each array of the data."""
        del point

        def block(sample: Any, data: Any, rows: Array | None) -> Any:
            found = self.measure(T3Cores(frame.up, frame.left), sample)
            residual = jax.tree.map(jnp.subtract, found, data)
            return jax.tree.map(jnp.vdot, _weigh(residual, rows), residual)

        return self._stream(block, frame, sample, data)

    def _along(self, frame: Frame, v: Variations, sample: Any) -> Any:
        return self.measure(tangent_to_t3(frame, v, include_point=True), sample)

    def _stream(self, block: Any, frame: Frame, sample: WeightedRows, data: Any) -> Any:
        n_rows = jax.tree.leaves(sample.sample)[0].shape[0]

        def masked(xs: Any, valid: Array | None) -> Any:
            sample, data, rows = xs
            if valid is not None:
                rows = jnp.where(valid, jnp.ones_like(valid, frame.up[0].dtype) if rows is None else rows, 0)
            return block(sample, data, rows)

        xs = sample.sample, data, sample.rows
        return chunk_reduce(masked, xs, add, chunk_size=self.chunk_size, n_rows=n_rows)
