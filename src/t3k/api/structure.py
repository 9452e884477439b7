"""What every group of methods of a T3 builds on: the cores, their structure, and kernels run over the stack."""

from collections.abc import Callable
from typing import Any, Self

import jax.numpy as jnp

from t3k.api import validate
from t3k.api.stacks import over_broadcast_points, over_points
from t3k.kernels import ranks
from t3k.kernels.types import Array, T3Cores

__all__ = ["Structure"]


class Structure:
    """The cores of a T3 or of a stack C of them; `t3k.TuckerTensorTrain` inherits it through its groups of methods.

    Args:
      tucker_cores: one array ``C + (n_i, N_i)`` per mode, or one stacked array with a leading mode axis.
      tt_cores: one array ``C + (r_i, n_i, r_{i+1})`` per mode, likewise.

    Raises:
      TypeError: if the cores are no real arrays.
      ValueError: if their shapes do not fit together.
    """

    tucker_cores: tuple[Array, ...]
    tt_cores: tuple[Array, ...]

    #: NumPy leaves operators with a T3 to the T3.
    __array_ufunc__ = None

    def __init__(self, tucker_cores: Any, tt_cores: Any) -> None:
        tucker = validate.as_train("tucker_cores", tucker_cores, 2)
        tt = validate.as_train("tt_cores", tt_cores, 3)
        validate.require_cores(tucker, tt)
        dtype = validate.common_dtype(tucker, tt)
        object.__setattr__(self, "tucker_cores", validate.cast_train(tucker, dtype))
        object.__setattr__(self, "tt_cores", validate.cast_train(tt, dtype))

    @classmethod
    def _of(cls, cores: T3Cores) -> Self:
        return cls(tuple(cores.tucker), tuple(cores.tt))

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

    @property
    def manifold_dimension(self) -> int:
        """The dimension of the manifold of tensors of these ranks: parameters less the freedoms of gauge."""
        return ranks.manifold_dimension(self.shape, self.tucker_ranks, self.tt_ranks)

    def __repr__(self) -> str:
        """One line: sizes, ranks, parameters and dtype."""
        try:
            shape = " x ".join(map(str, self.shape))
            stack = f", stack {self.stack_shape}" if self.stack_shape else ""
            return (
                f"{type(self).__name__}({shape}{stack}; Tucker ranks {self.tucker_ranks}, TT ranks {self.tt_ranks}, "
                f"{self.n_parameters:,} parameters, {jnp.dtype(self.dtype).name})"
            )
        except (AttributeError, IndexError, TypeError):  # rebuilt by JAX around something that is no array
            return f"{type(self).__name__}({self.tucker_cores!r}, {self.tt_cores!r})"

    def _each(self, kernel: Callable[..., Any]) -> Any:
        """Runs a kernel of one T3 over the stack."""
        return over_points(kernel, self.stack_shape, self.cores)

    def _with(self, other: "Structure", kernel: Callable[..., Any]) -> Any:
        """Runs a kernel of two T3s over their stacks, which are broadcast against each other."""
        pairs = (self.cores, self.stack_shape), (other.cores, other.stack_shape)
        return over_broadcast_points(kernel, *pairs)

    def _require_tensor(self, other: Any) -> None:
        """Raises unless the other operand is a T3 whose stack can be broadcast against this one's."""
        if not isinstance(other, Structure):
            raise TypeError(f"the other operand must be a TuckerTensorTrain; got {type(other).__name__}")
        try:
            jnp.broadcast_shapes(self.stack_shape, other.stack_shape)
        except ValueError:
            raise ValueError(
                f"the other tensor must have a stack that broadcasts against {self.stack_shape}; "
                f"got {other.stack_shape}"
            ) from None

    def _require_same_shape(self, other: Any) -> None:
        """Raises unless the other operand is a T3 of the same mode sizes, with a stack that fits."""
        self._require_tensor(other)
        if other.shape != self.shape:
            raise ValueError(f"the other tensor must have shape {self.shape}; got {other.shape}")
