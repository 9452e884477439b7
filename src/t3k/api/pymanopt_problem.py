"""Fits by the optimizers of Pymanopt (extra ``pymanopt``), on tensors and tangents of t3k: `pymanopt_problem`."""

import functools
import itertools
import math
from typing import Any

import jax

from t3k.api import compiled
from t3k.api.fitting import FitProblem, fit_problem
from t3k.api.frame import T3Frame
from t3k.api.geometry import ManifoldGeometry
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent import T3Tangent
from t3k.kernels.objective import LocalModel
from t3k.kernels.regularizers import Regularizer

__all__ = ["pymanopt_problem"]


def pymanopt_problem(
    geometry: ManifoldGeometry,
    kind: Any,
    sample: Any,
    data: Any,
    x0: TuckerTensorTrain,
    *,
    order: int | None = None,
    weight: Any = None,
    sample_weight: Any = None,
    regularizer: Regularizer | None = None,
    chunk_size: int | str | None = "auto",
    memory: int | str | None = None,
) -> Any:
    """The fit that `t3k.newton_cg` would run, as a ``pymanopt.Problem`` with gradient and Gauss-Newton Hessian.

    Points are `TuckerTensorTrain`, tangent vectors `T3Tangent`, and the manifold's methods are the geometry's. Losses,
    gradients and Hessians are streamed and compiled as in t3k's own optimizers.

    Args:
      geometry: `t3k.MANIFOLD`, or a `t3k.SharedManifold`.
      kind: as all that follow, see `t3k.newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      x0: a tensor of the shape, ranks and dtype that are fitted; pass it to the optimizer as ``initial_point``, too.
      order: the highest derivative.
      weight: factors of the residuals.
      sample_weight: factors of each sample's residuals.
      regularizer: added to the misfit.
      chunk_size: samples at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch that a Gauss-Newton product may take, ``"2GB"`` or bytes.

    Raises:
      ImportError: if Pymanopt is not installed, naming the extra.
      TypeError, ValueError: if an argument does not fit; before any compilation.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (5, 6), (1, 1), (1, 1, 1))
      >>> ww = tuple(jax.random.normal(jax.random.key(i), (60, N)) for i, N in enumerate(x.shape))
      >>> x0 = t3k.TuckerTensorTrain.randn(jax.random.key(9), x.shape, (1, 1), (1, 1, 1))
      >>> problem = t3k.pymanopt_problem(t3k.MANIFOLD, "apply", ww, x.apply(ww), x0)  # doctest: +SKIP
      >>> optimizer = pymanopt.optimizers.TrustRegions()  # doctest: +SKIP
      >>> x_fit = optimizer.run(problem, initial_point=x0).point  # doctest: +SKIP
    """
    if not isinstance(geometry, ManifoldGeometry):
        raise TypeError(f"geometry must be t3k.MANIFOLD or a t3k.SharedManifold; got {geometry!r:.60}")
    settings = {"weight": weight, "sample_weight": sample_weight, "regularizer": regularizer}
    fit = fit_problem(geometry, kind, sample, data, x0, order=order, chunk_size=chunk_size, memory=memory, **settings)
    try:
        import pymanopt
    except ImportError as error:
        raise ImportError("pymanopt_problem needs Pymanopt: pip install 't3k[pymanopt]'") from error
    manifold, local = _manifold(pymanopt, geometry, fit)
    function = pymanopt.function.numpy(manifold)

    def gradient(x: TuckerTensorTrain) -> T3Tangent:
        return T3Tangent(manifold.frame(x), tuple(local(x).gradient))

    def hessian(x: TuckerTensorTrain, v: T3Tangent) -> T3Tangent:
        product = compiled.objective_hessian(fit.objective, local(x).frame, fit.sample, v.variations.cores)
        return T3Tangent(manifold.frame(x), tuple(product))

    return pymanopt.Problem(
        manifold,
        function(lambda x: float(local(x).loss)),
        riemannian_gradient=function(gradient),
        riemannian_hessian=function(hessian),
    )


def _manifold(pymanopt: Any, geometry: ManifoldGeometry, fit: FitProblem) -> tuple[Any, Any]:
    """The manifold, and the local model of the fit at a point, kept for the last few points."""

    @functools.lru_cache(maxsize=8)
    def local(x: TuckerTensorTrain) -> LocalModel:
        return compiled.objective_local(fit.objective, x.cores, fit.sample, fit.data)

    @functools.lru_cache(maxsize=8)
    def frame(x: TuckerTensorTrain) -> T3Frame:
        return T3Frame(*local(x).frame)

    x0, keys = fit.x0, map(jax.random.key, itertools.count())

    class FixedRankT3(pymanopt.manifolds.manifold.RiemannianSubmanifold):
        """Tensors of fixed ranks, by the methods that Pymanopt calls."""

        def __init__(self) -> None:
            name = f"Tensors of shape {x0.shape}, Tucker ranks {x0.tucker_ranks} and TT ranks {x0.tt_ranks}"
            super().__init__(name, fit.free_parameters)

        @property
        def typical_dist(self) -> float:
            return math.sqrt(self.dim)

        def frame(self, point: TuckerTensorTrain) -> T3Frame:
            return frame(point)

        def inner_product(self, point: Any, a: T3Tangent, b: T3Tangent) -> float:
            return float(geometry.inner(a, b))

        def norm(self, point: Any, v: T3Tangent) -> float:
            return float(geometry.norm(v))

        def dist(self, a: TuckerTensorTrain, b: TuckerTensorTrain) -> float:
            return float((a - b).norm())

        def projection(self, point: Any, v: T3Tangent) -> T3Tangent:
            return geometry.project(v)

        def to_tangent_space(self, point: Any, v: T3Tangent) -> T3Tangent:
            return geometry.project(v)

        def retraction(self, point: Any, v: T3Tangent) -> TuckerTensorTrain:
            return geometry.retract(v)

        def transport(self, a: Any, b: TuckerTensorTrain, v: T3Tangent) -> T3Tangent:
            return geometry.transport(v, frame(b))

        def random_point(self) -> TuckerTensorTrain:
            return TuckerTensorTrain.randn(next(keys), x0.shape, x0.tucker_ranks, x0.tt_ranks, x0.dtype)

        def random_tangent_vector(self, point: TuckerTensorTrain) -> T3Tangent:
            return geometry.random_unit(next(keys), frame(point))

        def zero_vector(self, point: TuckerTensorTrain) -> T3Tangent:
            return geometry.zeros(frame(point))

    return FixedRankT3(), local
