"""What a fit minimizes: ``misfit(x) + share * regularizer(x)``, and what the optimizers see of it at a point.

All four optimizers are functions of an `Objective`, a static value, and of a sample and data.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from t3k.kernels.frames import corewise_frame
from t3k.kernels.krylov import tree_axpy, tree_dot
from t3k.kernels.measurements import MeasurementKind
from t3k.kernels.ranks import has_minimal_ranks
from t3k.kernels.regularizers import Regularizer
from t3k.kernels.t3 import ranks_of
from t3k.kernels.types import Array, Frame, T3Cores, Variations

__all__ = ["LocalModel", "Objective", "settle"]


class LocalModel(NamedTuple):
    """The objective near a point: its frame, the value there, and the gradient in the geometry."""

    frame: Frame
    loss: Array
    gradient: Variations


@dataclass(frozen=True)
class Objective:
    """Geometry, kind of measurement and regularizer; `share` is the part of the data that a minibatch is."""

    geometry: Any
    kind: MeasurementKind
    regularizer: Regularizer | None = None
    share: float = 1.0

    def value(self, x: T3Cores, sample: Any, data: Any) -> Array:
        """The value at a T3; no frame is needed for it but its own cores."""
        frame, point = corewise_frame(x)
        value, _ = self.kind.misfit(sample, data, point, frame, gradient=False)
        return value if self.regularizer is None else value + self.share * self.regularizer.value(x)

    def squares(self, x: T3Cores, sample: Any, data: Any) -> Any:
        """The sums of squared residuals at a T3, for each part of the data; see `MeasurementKind.squares`."""
        frame, point = corewise_frame(x)
        return self.kind.squares(sample, data, point, frame)

    def local(self, x: T3Cores, sample: Any, data: Any) -> LocalModel:
        """The model at a point."""
        frame, point = self.geometry.frame(x)
        value, gradient = self.kind.misfit(sample, data, point, frame, gradient=True)
        assert gradient is not None
        if self.regularizer is not None:
            value = value + self.share * self.regularizer.value(x)
            gradient = tree_axpy(self.share, self.regularizer.gradient(frame), gradient)
        return LocalModel(frame, value, self.geometry.project(frame, gradient))

    def hessian(self, frame: Frame, sample: Any, v: Variations) -> Variations:
        """The Gauss-Newton Hessian times a tangent of the geometry, with the regularizer's own Hessian."""
        product = self.kind.gauss_newton(sample, v, frame)
        if self.regularizer is not None:
            product = tree_axpy(self.share, self.regularizer.hessian_product(frame, v), product)
        return self.geometry.project(frame, product)

    def rounding(self, x: T3Cores, sample: Any, data: Any) -> Array:
        """A loss that rounding may leave of these data: a hundred units in the last place of each number.

        The data are measured by the misfit of the zero tensor, streamed as every misfit.
        """
        frame, point = corewise_frame(jax.tree.map(jnp.zeros_like, x))
        unit = 100 * float(jnp.finfo(x.tt[0].dtype).eps)
        return unit**2 * self.kind.misfit(sample, data, point, frame, gradient=False)[0]

    def cauchy_step(self, model: LocalModel, sample: Any) -> Array:
        """The step along the negative gradient that minimizes the Gauss-Newton model; 0 where that has no minimum."""
        square = tree_dot(model.gradient, model.gradient)
        curvature = tree_dot(model.gradient, self.hessian(model.frame, sample, model.gradient))
        bent = curvature > 0
        return jnp.where(bent, square / jnp.where(bent, curvature, 1), 0)


def settle(geometry: Any, x: T3Cores) -> T3Cores:
    """The same point in the shapes that the geometry's retraction gives, so that it can be a loop's carry."""
    shape, tucker_ranks, tt_ranks = ranks_of(x)
    if has_minimal_ranks(shape, tucker_ranks, tt_ranks):
        return x
    frame = geometry.frame(x)[0]
    return T3Cores(frame.up, frame.left)
