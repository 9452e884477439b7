"""The ways into a T3 and out of it: random ones, dense arrays, and related decompositions."""

from collections.abc import Sequence
from typing import Any, Self

import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.structure import Structure
from t3k.kernels import formats, from_dense, t3
from t3k.kernels.types import Array

__all__ = ["Conversions"]


class Conversions(Structure):
    """What `t3k.TuckerTensorTrain` inherits: constructors, and the same tensor in other formats."""

    @classmethod
    def randn(
        cls, key: Array, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: Any = None
    ) -> Self:
        """A T3 whose cores have independent standard normal entries.

        Args:
          key: from `jax.random.key`.
          shape: mode sizes (N_0, .., N_{d-1}).
          tucker_ranks: (n_0, .., n_{d-1}).
          tt_ranks: (r_0, .., r_d); r_0 and r_d are usually 1.
          dtype: of the cores; the default float if None.

        Raises:
          TypeError, ValueError: if sizes or ranks are no positive ints, or not d, d and d+1 of them.

        Example:
          >>> import jax, t3k
          >>> t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 3), (1, 2, 1)).n_parameters
          33
        """
        sizes = validate.require_structure(shape, tucker_ranks, tt_ranks)
        return cls._of(t3.random_cores(key, *sizes, dtype or jnp.result_type(float)))

    @classmethod
    def zeros(
        cls, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: Any = None
    ) -> Self:
        """The zero tensor with cores of the given ranks; arguments as in `randn`.

        Example:
          >>> import t3k
          >>> float(t3k.TuckerTensorTrain.zeros((4, 5), (2, 3), (1, 2, 1)).norm())
          0.0
        """
        sizes = validate.require_structure(shape, tucker_ranks, tt_ranks)
        return cls._of(t3.zeros_cores(*sizes, dtype or jnp.result_type(float)))

    @classmethod
    def from_dense(
        cls,
        array: Any,
        tucker_ranks: Sequence[int] | None = None,
        tt_ranks: Sequence[int] | None = None,
        rtol: float | None = None,
    ) -> Self:
        """The truncated T3-SVD of an array.

        Args:
          array: ``(N_0, .., N_{d-1})``, d >= 1.
          tucker_ranks: the largest Tucker ranks wanted, one per mode.
          tt_ranks: the largest bonds wanted, (r_0, .., r_d).
          rtol: the error allowed relative to the array's norm; ranks then depend on the values, so not under `jit`.
            Ranks that are given as well are caps. With neither ranks nor `rtol`, nothing is lost.

        Returns:
          A T3 within sqrt(2d - 1) of the best of its ranks, or within `rtol`.

        Raises:
          ValueError: if the array has no mode, or ranks do not fit.

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> t3k.TuckerTensorTrain.from_dense(jnp.ones((4, 5, 6)), rtol=1e-6).tucker_ranks
          (1, 1, 1)
        """
        array = validate.as_array("array", array)
        if array.ndim == 0:
            raise ValueError("array must have at least one axis; got a scalar")
        d = array.ndim
        n = None if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, d)
        r = None if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, d + 1)
        if rtol is not None:
            return cls._of(from_dense.from_dense_tolerance(array, validate.as_tolerance("rtol", rtol), 0.0, n, r))
        return cls._of(from_dense.from_dense_cores(array, n or array.shape, r or (array.size,) * (d + 1)))

    def to_dense(self) -> Array:
        """The whole tensor, ``C + (N_0, .., N_{d-1})``."""
        return self._each(compiled.to_dense)

    @classmethod
    def from_tt(cls, tt_cores: Any) -> Self:
        """A tensor train as a T3 of minimal ranks; exact.

        Args:
          tt_cores: one array ``(r_i, N_i, r_{i+1})`` per mode; the end bonds are summed over.

        Raises:
          TypeError, ValueError: naming the core that does not fit.

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> t3k.TuckerTensorTrain.from_tt((jnp.ones((1, 9, 2)), jnp.ones((2, 4, 1)))).tucker_ranks
          (2, 2)
        """
        tt = validate.as_train("tt_cores", tt_cores, 3)
        tt = validate.cast_train(tt, validate.common_dtype(tt))
        validate.require_cores([jnp.zeros(G.shape[1:2] * 2, G.dtype) for G in tt], tt)
        return cls._of(compiled.from_tt(tt))

    def to_tt(self) -> tuple[Array, ...]:
        """The same tensor as a tensor train, one core ``C + (r_i, N_i, r_{i+1})`` per mode, with end bonds of 1."""
        return self._each(compiled.to_tt)

    @classmethod
    def from_tucker(cls, core: Any, factors: Any) -> Self:
        """A Tucker decomposition as a T3 of minimal ranks; exact.

        Args:
          core: ``(n_0, .., n_{d-1})``.
          factors: one array ``(n_i, N_i)`` per mode, as Tucker cores are.

        Raises:
          TypeError, ValueError: naming the argument that does not fit.

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> t3k.TuckerTensorTrain.from_tucker(jnp.eye(2), (jnp.ones((2, 4)), jnp.ones((2, 5)))).shape
          (4, 5)
        """
        dense, train = validate.as_array("core", core), validate.as_train("factors", factors, 2)
        expected = tuple(factor.shape[0] for factor in train)
        if dense.shape != expected:
            raise ValueError(f"core must have shape {expected}, for factors (n_i, N_i); got {dense.shape}")
        dtype = validate.common_dtype((dense,), train)
        return cls._of(compiled.from_tucker(dense.astype(dtype), validate.cast_train(train, dtype)))

    def to_tucker(self) -> tuple[Array, tuple[Array, ...]]:
        """The same tensor as a Tucker decomposition: the dense core ``C + (n_0, ..)``, and the Tucker cores."""
        return self._each(compiled.to_tucker)

    @classmethod
    def from_cp(cls, factors: Any, weights: Any = None) -> Self:
        """A CP decomposition, a sum of R rank-one tensors, as a T3 of minimal ranks; exact.

        Args:
          factors: one array ``(R, N_i)`` per mode; row j of each makes the j-th term.
          weights: ``(R,)``, a factor for each term.

        Raises:
          TypeError, ValueError: naming the argument that does not fit.

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> t3k.TuckerTensorTrain.from_cp((jnp.eye(2), jnp.eye(2)), jnp.array([3.0, 4.0])).to_dense().tolist()
          [[3.0, 0.0], [0.0, 4.0]]
        """
        train = validate.as_train("factors", factors, 2)
        for i, factor in enumerate(train):
            if factor.ndim != 2 or factor.shape[0] != train[0].shape[0] or factor.size == 0:
                raise ValueError(f"factors[{i}] must have shape ({train[0].shape[0]}, N); got {factor.shape}")
        scales = (
            jnp.ones(train[0].shape[0], train[0].dtype) if weights is None else validate.as_array("weights", weights)
        )
        if scales.shape != train[0].shape[:1]:
            raise ValueError(f"weights must have shape {train[0].shape[:1]}; got {scales.shape}")
        dtype = validate.common_dtype(train, (scales,))
        return cls._of(compiled.from_cp(validate.cast_train(train, dtype), scales.astype(dtype)))

    def to_cp(self, max_terms: int = 100_000) -> tuple[Array, ...]:
        """The same tensor as a sum of R rank-one tensors, one array of factors ``C + (R, N_i)`` per mode.

        It is exact, and as short as the ranks alone allow: the product of the bonds, or of the Tucker ranks but the
        largest. A CP decomposition may be shorter; finding it is an approximation problem of its own.

        Args:
          max_terms: refuse a sum that is longer.

        Raises:
          ValueError: if it is, naming its length.

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> x = t3k.TuckerTensorTrain.from_dense(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
          >>> A, B = x.to_cp()
          >>> bool(jnp.allclose(jnp.einsum("ri,rj->ij", A, B), x.to_dense(), atol=1e-5))
          True
        """
        terms = formats.cp_terms(self.tucker_ranks, self.tt_ranks)
        if terms > max_terms:
            raise ValueError(f"max_terms must be at least {terms:,}, the terms of these ranks; got {max_terms:,}")
        return self._each(compiled.to_cp)
