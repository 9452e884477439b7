"""The geometries as objects: `MANIFOLD` and `COREWISE`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.frame import T3Frame, T3Variations, as_frame
from t3k.api.stacks import over_broadcast_points, over_points
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent import T3Tangent
from t3k.kernels import geometry as kernels
from t3k.kernels import variations
from t3k.kernels.jets import total
from t3k.kernels.linalg import root
from t3k.kernels.ranks import manifold_dimension
from t3k.kernels.types import Array

__all__ = ["COREWISE", "MANIFOLD", "CorewiseGeometry", "Geometry", "ManifoldGeometry"]


@dataclass(frozen=True)
class Geometry:
    """What both geometries share; they hash and compare by value."""

    @property
    def kernel(self) -> Any:
        """The geometry as the kernels take it: static, compared by value."""
        raise NotImplementedError

    def frame(self, x: TuckerTensorTrain) -> T3Frame:
        """The frame at a point or at a stack of points."""
        return T3Frame(*over_points(lambda cores: compiled.geometry_frame(self.kernel, cores), x.stack_shape, x.cores))

    def zeros(self, frame: Any) -> T3Tangent:
        """The zero tangent in a frame."""
        frame = as_frame(frame)
        zero = over_points(lambda f: variations.zero_variations(f), frame.stack_shape, frame.cores)
        return T3Tangent(frame, T3Variations(*zero))

    def randn(self, key: Array, frame: Any, stack_shape: Sequence[int] = ()) -> T3Tangent:
        """A standard normal tangent in a frame, or a stack V of them.

        Args:
          key: from `jax.random.key`.
          frame: `T3Frame` or ``(up, down, left, right)``.
          stack_shape: V.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> t3k.MANIFOLD.randn(jax.random.key(1), x.frame(), (7,)).stack_shape
          (7,)
        """
        zero = self.zeros(frame)
        leaves, structure = jax.tree.flatten(zero.variations.cores)
        keys = jax.random.split(key, len(leaves))
        drawn = [jax.random.normal(keys[i], (*stack_shape, *leaf.shape), leaf.dtype) for i, leaf in enumerate(leaves)]
        return self.project(T3Tangent(zero.frame, T3Variations(*jax.tree.unflatten(structure, drawn))))

    def project(self, v: T3Tangent) -> T3Tangent:
        """The gradient that a bare transpose stands for in this geometry."""
        gauged = v.map_stack(lambda f, c: compiled.geometry_project(self.kernel, f, c))
        return T3Tangent(v.frame, T3Variations(*gauged))

    def inner(self, v: T3Tangent, w: T3Tangent) -> Array:
        """The inner product of two tangents in the same frame, shape V + C."""
        axes = len(v.stack_shape)
        pairs = zip(jax.tree.leaves(v.variations), jax.tree.leaves(w.variations), strict=True)
        return total((x * y).sum(axis=tuple(range(axes, x.ndim))) for x, y in pairs)

    def norm(self, v: T3Tangent) -> Array:
        """The norm of a tangent, shape V + C."""
        return root(self.inner(v, v))

    def distance(self, v: T3Tangent, w: T3Tangent) -> Array:
        """The norm of the difference of two tangents in the same frame, shape V + C."""
        return self.norm(v - w)

    def unit(self, v: T3Tangent) -> T3Tangent:
        """The tangent divided by its norm; 0 stays 0."""
        size = self.norm(v)
        inverse = 1 / jnp.where(size > 0, size, jnp.ones_like(size))
        scaled = jax.tree.map(lambda x: x * inverse.reshape(*size.shape, *(1,) * (x.ndim - size.ndim)), v.variations)
        return T3Tangent(v.frame, scaled)

    def random_unit(self, key: Array, frame: Any, stack_shape: Sequence[int] = ()) -> T3Tangent:
        """A tangent of norm 1 in a frame, or a stack V of them, uniformly distributed over directions.

        Example:
          >>> import jax, t3k
          >>> x = t3k.MANIFOLD.random_point(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> v = t3k.MANIFOLD.random_unit(jax.random.key(1), x.frame())
          >>> float(t3k.MANIFOLD.norm(v).round(4))
          1.0
        """
        return self.unit(self.randn(key, frame, stack_shape))

    def retract(self, v: T3Tangent) -> TuckerTensorTrain:
        """The point that a tangent leads to."""
        return TuckerTensorTrain(*v.map_stack(lambda f, c: compiled.geometry_retract(self.kernel, f, c)))


@dataclass(frozen=True)
class ManifoldGeometry(Geometry):
    """Tensors of fixed ranks with the Hilbert-Schmidt metric; use the instance `t3k.MANIFOLD`.

    A point is a `TuckerTensorTrain` of minimal ranks; a tangent is a `T3Tangent` in an orthogonal frame; the ambient
    space is that of all tensors. Projection is the orthogonal gauge projection, in whose range `inner` and `norm` are
    those of the tensors. Retraction is the truncation of X + v to the ranks of X; it is of second order.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 6 and Appendix A.3.
    """

    @property
    def kernel(self) -> Any:
        """The geometry as the kernels take it."""
        return kernels.Manifold()

    def random_point(
        self, key: Array, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: Any = None
    ) -> TuckerTensorTrain:
        """A tensor of norm 1, of the minimal ranks below those given, whose orthonormal cores are uniform.

        Args:
          key: from `jax.random.key`.
          shape: mode sizes (N_0, .., N_{d-1}).
          tucker_ranks: (n_0, .., n_{d-1}).
          tt_ranks: (r_0, .., r_d); the ends become 1.
          dtype: of the cores; the default float if None.

        Raises:
          TypeError, ValueError: if sizes or ranks are no positive ints, or not d, d and d+1 of them.
        """
        sizes = validate.require_structure(shape, tucker_ranks, tt_ranks)
        return TuckerTensorTrain(*compiled.random_point(key, *sizes, jnp.dtype(dtype or jnp.result_type(float))))

    def project_tensor(self, tensor: Any, frame: Any) -> T3Tangent:
        """The orthogonal projection of a tensor, a T3 or a dense array, onto a tangent space.

        Args:
          tensor: `TuckerTensorTrain` of any ranks, or an array ``(N_0, .., N_{d-1})``. The stack of T3s is one of
            tangents V, or it is that of the frame.
          frame: `T3Frame` or ``(up, down, left, right)``, orthogonal.

        Raises:
          TypeError, ValueError: if the tensor is none, or does not have the shape of the frame.

        Example:
          >>> import jax, jax.numpy as jnp, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> v = t3k.MANIFOLD.project_tensor(x, x.frame())  # a point is in its own tangent space
          >>> bool(t3k.MANIFOLD.norm(v) - x.norm() < 1e-4)
          True
        """
        frame = as_frame(frame)
        given: Any = tensor if isinstance(tensor, TuckerTensorTrain) else validate.as_array("tensor", tensor)
        if given.shape != frame.shape:
            raise ValueError(f"tensor must have the shape of the frame, {frame.shape}; got {given.shape}")
        is_t3 = isinstance(tensor, TuckerTensorTrain)
        operand = jax.tree.map(lambda x: x.astype(frame.dtype), given.cores if is_t3 else given)
        kernel, stack = (compiled.project_t3, given.stack_shape) if is_t3 else (compiled.project_dense, ())
        projected = over_broadcast_points(kernel, (frame.cores, frame.stack_shape), (operand, stack))
        return T3Tangent(frame, T3Variations(*projected))

    def tie_ranks(self, ranks: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tucker and TT ranks as points of the manifold have them: the same, but where modes share cores."""
        return ranks

    def n_free(self, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> int:
        """The dimension of the manifold of these ranks."""
        return manifold_dimension(shape, tucker_ranks, tt_ranks)

    def project_oblique(self, v: T3Tangent) -> T3Tangent:
        """The same tangent vector in gauged coordinates, for which `inner` and `norm` are those of the tensors."""
        return T3Tangent(v.frame, T3Variations(*v.map_stack(compiled.oblique_gauge)))

    def transport(self, v: T3Tangent, frame: Any) -> T3Tangent:
        """The orthogonal projection of a tangent (no stack) onto the tangent space of another frame."""
        frame = as_frame(frame)
        return T3Tangent(frame, T3Variations(*compiled.transport(v.frame.cores, v.variations.cores, frame.cores)))


@dataclass(frozen=True)
class CorewiseGeometry(Geometry):
    """Cores with the Euclidean metric; use the instance `t3k.COREWISE`.

    A point is a `TuckerTensorTrain`; a tangent is a `T3Tangent` in the frame (U, G, G, G), whose coordinates are
    changes of the cores. Nothing is projected, and retraction adds.
    """

    @property
    def kernel(self) -> Any:
        """The geometry as the kernels take it."""
        return kernels.Corewise()


#: Tensors of fixed ranks with the Hilbert-Schmidt metric.
MANIFOLD = ManifoldGeometry()
#: Cores with the Euclidean metric.
COREWISE = CorewiseGeometry()
