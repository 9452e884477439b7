"""The methods of a T3 that act on its modes: indexing, contraction, sums, permutation, and changes of the ranks."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.mode_arguments import as_indices, as_modes, as_operands, as_permutation, as_weights
from t3k.api.structure import Structure
from t3k.kernels import permutation
from t3k.kernels.ranks import cap_ranks
from t3k.kernels.types import Array, T3Cores

__all__ = ["ModeOperations"]


class ModeOperations(Structure):
    """What `t3k.TuckerTensorTrain` inherits: its modes as the axes of an array."""

    def _of_modes_left(self, result: T3Cores | Array) -> Any:
        return self._of(result) if isinstance(result, T3Cores) else result

    def __getitem__(self, key: Any) -> Any:
        """The tensor at some indices, as of a NumPy array: ``x[3, :, 1:5]``, ``x[..., -1]``, ``x[[2, 0, 1]]``.

        Integers remove their mode; slices, arrays of integers and bools (of one mode at most) keep it in its place.
        What is left is a T3, or an array of the shape of the stack where no mode is.

        Raises:
          TypeError: for what is no index, and for new axes.
          IndexError: if an index is out of range, selects nothing, or is one too many.
        """
        indices = as_indices(key, self.shape)
        return self._of_modes_left(self._each(lambda cores: compiled.select_modes(cores, indices)))

    def __iter__(self) -> Iterator[Any]:
        """The tensor at each index of its first mode, as the rows of an array."""
        return (self[i] for i in range(self.shape[0]))

    def contract(self, operands: Any, modes: int | Sequence[int] | None = None) -> Any:
        """The tensor contracted with a vector, which removes a mode, or multiplied by a matrix, in some modes.

        Args:
          operands: one array per mode named: a vector ``(N_i,)`` or a matrix ``(p, N_i)``; a bare array if `modes` is
            an int.
          modes: which; negative ones count from the end. All of them if None.

        Returns:
          A T3 of the modes that are left; an array of the shape of the stack if there are none.

        Raises:
          TypeError, ValueError: naming the operand or mode that does not fit.

        Example:
          >>> import jax, jax.numpy as jnp, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 2, 2), (1, 2, 2, 1))
          >>> x.contract(jnp.ones(5), 1).shape, x.contract((jnp.ones(4), jnp.ones((9, 6))), (0, -1)).shape
          ((4, 6), (5, 9))
        """
        placed = as_operands(operands, modes, self.shape, self.dtype)
        return self._of_modes_left(self._each(lambda cores: compiled.contract_modes(cores, placed)))

    def sum(self, modes: int | Sequence[int] | None = None) -> Any:
        """The sum over some modes, or over all of them.

        Args:
          modes: which; negative ones count from the end. All of them if None.

        Returns:
          A T3 of the modes that are left; an array of the shape of the stack if there are none.

        Example:
          >>> import t3k
          >>> x = t3k.TuckerTensorTrain.from_dense([[1.0, 2.0], [3.0, 4.0]])
          >>> round(float(x.sum()), 4), x.sum(0).to_dense().round(4).tolist()
          (10.0, [4.0, 6.0])
        """
        found = as_modes("modes", range(self.d) if modes is None else modes, self.d)
        return self.contract(tuple(jnp.ones(self.shape[i], self.dtype) for i in found), found)

    def scale_edges(self, modes: Any = None, tucker: Any = None, bonds: Any = None) -> Self:
        """The tensor with a diagonal matrix on some of its edges, which goes into its cores.

        Weights of the modes make the norm a weighted one: ``x.scale_edges(modes).norm()``. Those of Tucker edges and
        bonds, singular values or their inverses for instance, precondition or penalise directions.

        Args:
          modes: for each mode, weights ``(N_i,)`` of its indices, or None.
          tucker: for each mode, weights ``(n_i,)`` between its two cores, or None.
          bonds: for each bond, weights ``(r_i,)``, or None; d + 1 of them.

        Raises:
          TypeError, ValueError: naming the weights that do not fit.

        Example:
          >>> import t3k
          >>> x = t3k.TuckerTensorTrain.from_dense([[3.0, 0.0], [0.0, 4.0]])
          >>> float(x.scale_edges(modes=([1.0, 0.0], None)).norm().round(4))
          3.0
        """
        given = (("modes", modes, self.shape), ("tucker", tucker, self.tucker_ranks), ("bonds", bonds, self.tt_ranks))
        weights = [as_weights(name, train, sizes, self.dtype) for name, train, sizes in given]
        return self._of(self._each(lambda cores: compiled.scale_edges(cores, *weights)))

    def reverse(self) -> Self:
        """The tensor with its modes in reverse order; the same cores, no cost."""
        return self._of(self._each(compiled.reverse))

    def permute(self, axes: Sequence[int], max_rank: int | None = None, rtol: float | None = None) -> Self:
        """The tensor with its modes in another order: mode i of the result is mode ``axes[i]`` of this one.

        Modes that change places entangle the bonds between them, so that ranks may grow, at most to those that the
        permuted tensor needs.

        Args:
          axes: a permutation of the modes.
          max_rank: the largest bond, also on the way. With neither this nor `rtol` nothing is lost.
          rtol: the error allowed relative to the norm (not under `jit`).

        Raises:
          TypeError, ValueError: if `axes` is no permutation, or `rtol` is given for a stack.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 2, 2), (1, 2, 2, 1))
          >>> x.permute((2, 0, 1)).shape
          (6, 4, 5)
        """
        order = as_permutation("axes", axes, self.d)
        cap = None if max_rank is None else validate.as_ranks("max_rank", (max_rank,))[0]
        if rtol is None:
            return self._of(self._each(lambda cores: compiled.permute(cores, order, cap)))
        validate.require_single("rtol", self.stack_shape, "Give max_rank instead")
        tolerance = validate.as_tolerance("rtol", rtol)
        return self._of(permutation.permute_tolerance(self.cores, order, tolerance, cap))

    def resize(
        self,
        tucker_ranks: Sequence[int] | None = None,
        tt_ranks: Sequence[int] | None = None,
        noise: float = 0.0,
        key: Array | None = None,
    ) -> Self:
        """The tensor with exactly these ranks: truncated where they are smaller, padded where they are larger.

        A fit that goes on with larger ranks starts from such a tensor.

        Args:
          tucker_ranks: one per mode; None keeps them.
          tt_ranks: (r_0, .., r_d); None keeps them.
          noise: the standard deviation of new entries relative to the root mean square of those of their core. With
            0, the default, the tensor itself stays the same where nothing is truncated.
          key: from `jax.random.key`; needed with noise.

        Raises:
          TypeError, ValueError: if ranks do not fit, or there is noise without a key.

        Example:
          >>> import jax, t3k
          >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
          >>> x.resize((3, 1), (1, 3, 1)).tucker_ranks
          (3, 1)
        """
        n = self.tucker_ranks if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, self.d)
        r = self.tt_ranks if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, self.d + 1)
        size = validate.as_tolerance("noise", noise)
        if size and key is None:
            raise ValueError("noise needs a key, from jax.random.key; got key=None")
        kept = cap_ranks(n, self.tucker_ranks), cap_ranks(r, self.tt_ranks)

        def resized(cores: T3Cores) -> T3Cores:
            fits = kept == (self.tucker_ranks, self.tt_ranks)
            small = cores if fits else compiled.truncate(cores, *kept)
            return compiled.pad_ranks(small, n, r, size, key)

        return self._of(self._each(resized))
