"""The methods of a T3 that concern its ranks: orthogonal cores, singular values, truncation."""

from collections.abc import Sequence
from typing import Any, Self

from t3k.api import compiled, validate
from t3k.api.mode_arguments import as_modes
from t3k.api.structure import Structure
from t3k.kernels import truncation
from t3k.kernels.spectra import numerical_rank, require_concrete
from t3k.kernels.types import Array

__all__ = ["Rounding"]


class Rounding(Structure):
    """What `t3k.TuckerTensorTrain` inherits: T3-SVD and what it rests on."""

    def minimal(self) -> Self:
        """The same tensor with minimal ranks and end bonds of 1; exact."""
        return self._of(self._each(compiled.minimal_cores))

    def orthogonalize(self, mode: int = -1, tucker: bool = False) -> Self:
        """The same tensor with all cores orthogonal towards one of them, which then has its norm.

        Args:
          mode: of that core: -1, the default, makes the train left orthogonal, 0 right orthogonal.
          tucker: whether it is the Tucker core of the mode, or its TT core.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> core = x.orthogonalize(1).tt_cores[1]
          >>> bool(abs((core ** 2).sum() ** 0.5 - x.norm()) < 1e-4)
          True
        """
        (at,) = as_modes("mode", (mode,), self.d)
        return self._of(self._each(lambda cores: compiled.centre_at(cores, at, tucker=bool(tucker))))

    def singular_values(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The singular values of all unfoldings, in descending order.

        Returns:
          For each mode, those of the unfolding of the mode against the others, ``C + (n_i,)``; for each bond, those
          of the modes on its left against those on its right, ``C + (r_i,)``. Lengths are the minimal ranks; at the
          end bonds, the only one is the norm.

        Example:
          >>> import t3k
          >>> tucker, tt = t3k.TuckerTensorTrain.from_dense([[3.0, 0.0], [0.0, 4.0]]).singular_values()
          >>> tt[1].round(4).tolist()
          [4.0, 3.0]
        """
        return self._each(compiled.singular_values)

    def numerical_ranks(self, rtol: float | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """How many singular values count, ``(tucker_ranks, tt_ranks)``; of a stack, the largest numbers.

        Args:
          rtol: those count that are above ``rtol`` times the largest; machine precision times the number of them if
            None. The ranks of 0 are 0.

        Raises:
          TypeError: under `jit`, since ranks depend on values.

        Example:
          >>> import t3k
          >>> x = t3k.TuckerTensorTrain.from_dense([[3.0, 0.0], [0.0, 4.0]])
          >>> (x + x).tucker_ranks, (x + x).numerical_ranks()
          ((4, 4), ((2, 2), (1, 2, 1)))
        """
        require_concrete("numerical_ranks", self.cores)
        tolerance = None if rtol is None else validate.as_tolerance("rtol", rtol)
        tucker, tt = self.singular_values()
        return tuple(numerical_rank(s, tolerance) for s in tucker), tuple(numerical_rank(s, tolerance) for s in tt)

    def round(
        self,
        tucker_ranks: Sequence[int] | None = None,
        tt_ranks: Sequence[int] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Self:
        """The T3-SVD truncation of this tensor to ranks, or to an error (not under `jit`).

        With ranks alone it works under `jit`, `vmap` and `grad`, with the right first derivatives.

        Args:
          tucker_ranks: the largest Tucker ranks wanted, one per mode; None keeps them.
          tt_ranks: the largest bonds wanted, (r_0, .., r_d); None keeps them.
          rtol: the error allowed relative to the norm; ranks that are given as well are caps.
          atol: the error allowed besides, in the Hilbert-Schmidt norm.

        Returns:
          A T3 within sqrt(2d - 1) of the best of its ranks, or within ``rtol |x| + atol``.

        Raises:
          ValueError: if ranks do not fit, or a tolerance is given for a stack, whose tensors would get different ranks.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 2, 2), (1, 2, 2, 1))
          >>> (x + x).round(rtol=1e-5).tt_ranks
          (1, 2, 2, 1)
        """
        n = None if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, self.d)
        r = None if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, self.d + 1)
        if rtol is None and atol is None:
            ranks = n or self.tucker_ranks, r or self.tt_ranks
            return self._of(self._each(lambda cores: compiled.truncate(cores, *ranks)))
        validate.require_single("rtol or atol", self.stack_shape, "Give ranks instead")
        relative, absolute = validate.as_tolerance("rtol", rtol or 0.0), validate.as_tolerance("atol", atol or 0.0)
        return self._of(truncation.truncate_tolerance(self.cores, relative, absolute, n, r))

    def truncation_error(self, tucker_ranks: Any, tt_ranks: Any) -> Array:
        """A bound of the error of `round` to these ranks: the norm of all singular values that it discards.

        It is at most sqrt(2d - 1) times the error of the best tensor of these ranks.
        """
        n = validate.as_ranks("tucker_ranks", tucker_ranks, self.d)
        r = validate.as_ranks("tt_ranks", tt_ranks, self.d + 1)
        return self._each(lambda cores: compiled.discarded_norm(cores, n, r))
