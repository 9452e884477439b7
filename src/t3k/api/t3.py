"""The Tucker tensor train as an object: `TuckerTensorTrain`."""

from dataclasses import dataclass

from t3k.api import compiled
from t3k.api.arithmetic import Arithmetic
from t3k.api.conversions import Conversions
from t3k.api.display import Display
from t3k.api.files import Saved
from t3k.api.frame import T3Frame
from t3k.api.mode_operations import ModeOperations
from t3k.api.point_samples import PointSamples
from t3k.api.pytrees import pytree
from t3k.kernels.types import Array

__all__ = ["TuckerTensorTrain"]


@pytree
@dataclass(frozen=True, eq=False, repr=False, init=False)
class TuckerTensorTrain(Arithmetic, ModeOperations, Display, Conversions, PointSamples, Saved):
    """A tensor in Tucker tensor train format: Tucker cores ``U_i`` and TT cores ``G_i``.

    ::

        T[o_0 .. o_{d-1}] = sum  G_0[a0,k0,a1] U_0[k0,o0]  G_1[a1,k1,a2] U_1[k1,o1]  ...

    It is a pytree, so that `jax.jit`, `jax.grad`, `jax.vmap` and `jax.tree.map` work on it. Cores with leading axes C
    are a stack of tensors, and every method works on stacks. What it can do is in the groups of methods that it
    inherits: arithmetic, operations on modes, rounding, display, conversions, samples, and files.

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

    def frame(self) -> T3Frame:
        """The orthogonal frame of the manifold at this point; its ranks are minimal."""
        return T3Frame(*self._each(lambda cores: compiled.orthogonal_frame(cores)[0]))

    def _trains(self) -> dict[str, tuple[Array, ...]]:
        return {"tucker": self.tucker_cores, "tt": self.tt_cores}

    @classmethod
    def _train_names(cls) -> tuple[str, ...]:
        return "tucker", "tt"
