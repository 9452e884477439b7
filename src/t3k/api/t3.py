"""The Tucker tensor train as an object: `TuckerTensorTrain`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from t3k.api import compiled, files, validate
from t3k.api.frame import T3Frame
from t3k.api.point_samples import PointSamples
from t3k.api.pytrees import pytree
from t3k.api.stacks import over_points
from t3k.kernels import from_dense, ranks, t3, truncation
from t3k.kernels.types import Array, T3Cores

__all__ = ["TuckerTensorTrain"]


@pytree
@dataclass(frozen=True, eq=False, repr=False, init=False)
class TuckerTensorTrain(PointSamples):
    """A tensor in Tucker tensor train format: Tucker cores ``U_i`` and TT cores ``G_i``.

    ::

        T[o_0 .. o_{d-1}] = sum  G_0[a0,k0,a1] U_0[k0,o0]  G_1[a1,k1,a2] U_1[k1,o1]  ...

    It is a pytree, so that `jax.jit`, `jax.grad`, `jax.vmap` and `jax.tree.map` work on it. Cores with leading axes C
    are a stack of tensors, and every method works on stacks.

    Args:
      tucker_cores: one array ``C + (n_i, N_i)`` per mode, or one stacked array with a leading mode axis.
      tt_cores: one array ``C + (r_i, n_i, r_{i+1})`` per mode, likewise. The end bonds r_0 and r_d are summed over.

    Raises:
      TypeError: if the cores are no real arrays.
      ValueError: if their shapes do not fit together.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 3, 2), (1, 2, 2, 1))
      >>> x.shape, x.tucker_ranks, x.tt_ranks
      ((4, 5, 6), (2, 3, 2), (1, 2, 2, 1))
    """

    tucker_cores: tuple[Array, ...]
    tt_cores: tuple[Array, ...]

    def __init__(self, tucker_cores: Any, tt_cores: Any) -> None:
        tucker = validate.as_train("tucker_cores", tucker_cores, 2)
        tt = validate.as_train("tt_cores", tt_cores, 3)
        validate.require_cores(tucker, tt)
        dtype = validate.common_dtype(tucker, tt)
        object.__setattr__(self, "tucker_cores", validate.cast_train(tucker, dtype))
        object.__setattr__(self, "tt_cores", validate.cast_train(tt, dtype))

    # Construction

    @classmethod
    def _of(cls, cores: T3Cores) -> "TuckerTensorTrain":
        return cls(tuple(cores.tucker), tuple(cores.tt))

    @classmethod
    def randn(
        cls, key: Array, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: Any = None
    ) -> "TuckerTensorTrain":
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
    ) -> "TuckerTensorTrain":
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
    ) -> "TuckerTensorTrain":
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

    # What it is

    @property
    def cores(self) -> T3Cores:
        """The cores as the kernels take them."""
        return T3Cores(self.tucker_cores, self.tt_cores)

    @property
    def d(self) -> int:
        """The number of modes."""
        return len(self.tucker_cores)

    @property
    def shape(self) -> tuple[int, ...]:
        """The mode sizes (N_0, .., N_{d-1}), without the stack axes."""
        return tuple(core.shape[-1] for core in self.tucker_cores)

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """The stack axes C; empty for one tensor."""
        return self.tucker_cores[0].shape[:-2]

    @property
    def tucker_ranks(self) -> tuple[int, ...]:
        """The Tucker ranks (n_0, .., n_{d-1})."""
        return tuple(core.shape[-2] for core in self.tucker_cores)

    @property
    def tt_ranks(self) -> tuple[int, ...]:
        """The bonds (r_0, .., r_d)."""
        return (self.tt_cores[0].shape[-3], *(core.shape[-1] for core in self.tt_cores))

    @property
    def minimal_ranks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The smallest ranks that any tensor with these needs, ``(tucker_ranks, tt_ranks)``."""
        return ranks.minimal_ranks(self.shape, self.tucker_ranks, self.tt_ranks)

    @property
    def dtype(self) -> Any:
        """The dtype of the cores."""
        return self.tucker_cores[0].dtype

    @property
    def n_parameters(self) -> int:
        """The number of entries of the cores of one tensor."""
        return ranks.n_parameters(self.shape, self.tucker_ranks, self.tt_ranks)

    def __repr__(self) -> str:
        """One line: sizes, ranks, parameters and dtype."""
        try:
            shape = " x ".join(map(str, self.shape))
            stack = f", stack {self.stack_shape}" if self.stack_shape else ""
            return (
                f"TuckerTensorTrain({shape}{stack}; Tucker ranks {self.tucker_ranks}, TT ranks {self.tt_ranks}, "
                f"{self.n_parameters:,} parameters, {jnp.dtype(self.dtype).name})"
            )
        except (AttributeError, IndexError, TypeError):  # rebuilt by JAX around something that is no array
            return f"TuckerTensorTrain({self.tucker_cores!r}, {self.tt_cores!r})"

    def _each(self, kernel: Any, *others: "TuckerTensorTrain") -> Any:
        """Runs a kernel of one T3 (or two of the same stack) over the stack."""
        return over_points(kernel, self.stack_shape, self.cores, *(other.cores for other in others))

    def to_dense(self) -> Array:
        """The whole tensor, ``C + (N_0, .., N_{d-1})``."""
        return self._each(compiled.to_dense)

    def minimal(self) -> "TuckerTensorTrain":
        """The same tensor with minimal ranks and end bonds of 1; exact."""
        return self._of(self._each(compiled.minimal_cores))

    def frame(self) -> T3Frame:
        """The orthogonal frame of the manifold at this point; its ranks are minimal."""
        return T3Frame(*self._each(lambda cores: compiled.orthogonal_frame(cores)[0]))

    def round(
        self,
        tucker_ranks: Sequence[int] | None = None,
        tt_ranks: Sequence[int] | None = None,
        rtol: float | None = None,
    ) -> "TuckerTensorTrain":
        """The T3-SVD truncation of this tensor to ranks, or to an error relative to its norm (not under `jit`).

        Args:
          tucker_ranks: the largest Tucker ranks wanted, one per mode; None keeps them.
          tt_ranks: the largest bonds wanted, (r_0, .., r_d); None keeps them.
          rtol: the error allowed relative to the norm; ranks that are given as well are caps.

        Raises:
          ValueError: if ranks do not fit, or `rtol` is given for a stack, whose tensors would get different ranks.
        """
        n = None if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, self.d)
        r = None if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, self.d + 1)
        if rtol is None:
            n, r = n or self.tucker_ranks, r or self.tt_ranks
            return self._of(self._each(lambda cores: compiled.truncate(cores, n, r)))
        if self.stack_shape:
            raise ValueError(f"rtol needs a single tensor; got a stack of shape {self.stack_shape}. Give ranks instead")
        tolerance = validate.as_tolerance("rtol", rtol)
        return self._of(truncation.truncate_tolerance(self.cores, tolerance, 0.0, n, r))

    # Algebra

    def norm(self) -> Array:
        """The Hilbert-Schmidt norm, shape C; accurate to rounding, and differentiable except at 0."""
        return self._each(compiled.norm)

    def inner(self, other: "TuckerTensorTrain") -> Array:
        """The Hilbert-Schmidt inner product with a tensor of the same shape and stack, shape C."""
        self._require_same(other)
        return self._each(compiled.inner, other)

    def _require_same(self, other: Any) -> None:
        if not isinstance(other, TuckerTensorTrain):
            raise TypeError(f"the other operand must be a TuckerTensorTrain; got {type(other).__name__}")
        if (other.shape, other.stack_shape) != (self.shape, self.stack_shape):
            raise ValueError(
                f"the other tensor must have shape {self.shape} and stack {self.stack_shape}; "
                f"got {other.shape} and {other.stack_shape}"
            )

    def __add__(self, other: Any) -> "TuckerTensorTrain":
        """The sum, whose ranks are the sums of the ranks."""
        if not isinstance(other, TuckerTensorTrain):
            return NotImplemented
        self._require_same(other)
        return self._of(self._each(compiled.add, other))

    def __neg__(self) -> "TuckerTensorTrain":
        """The negative."""
        return self * -1

    def __sub__(self, other: Any) -> "TuckerTensorTrain":
        """The difference, whose ranks are the sums of the ranks."""
        return self + (-other) if isinstance(other, TuckerTensorTrain) else NotImplemented

    def __mul__(self, factor: Any) -> "TuckerTensorTrain":
        """The tensor times a scalar."""
        if isinstance(factor, TuckerTensorTrain) or jnp.ndim(factor) != 0:
            return NotImplemented
        factor = validate.as_array("factor", factor).astype(self.dtype)
        return self._of(self._each(lambda cores: compiled.scale(cores, factor)))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "TuckerTensorTrain":
        """The tensor divided by a scalar."""
        if isinstance(divisor, TuckerTensorTrain) or jnp.ndim(divisor) != 0:
            return NotImplemented
        return self * (1 / validate.as_array("divisor", divisor).astype(self.dtype))

    # Files

    def save(self, path: Any) -> None:
        """Writes the cores to an npz file without pickle, atomically."""
        files.save(path, self.cores)

    @classmethod
    def load(cls, path: Any) -> "TuckerTensorTrain":
        """Reads what `save` wrote.

        Raises:
          ValueError: if the file is damaged, of another kind or of a newer version.
        """
        return cls._of(files.load(path))
