"""The geometry of tensors whose modes share Tucker cores: `SharedManifold`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t3k.api import compiled, validate
from t3k.api.frame import T3Frame, as_frame
from t3k.api.geometry import ManifoldGeometry
from t3k.api.stacks import over_points
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent import T3Tangent
from t3k.kernels import geometry as kernels
from t3k.kernels.shared_modes import largest_in_groups, shared_dimension
from t3k.kernels.types import Array

__all__ = ["SharedManifold"]


@dataclass(frozen=True)
class SharedManifold(ManifoldGeometry):
    """Tensors of fixed ranks whose modes have one Tucker core in common within groups, with the same metric.

    For tensors with modes of one kind, such as derivatives of a function, which are symmetric in them: there are fewer
    parameters, and every mode's data determine the common core. It is a geometry wherever `t3k.MANIFOLD` is one; a
    point whose groups do not share their cores yet is moved to a near one that does.

    Args:
      groups: sets of modes, by number; modes that are in none are by themselves.

    Raises:
      TypeError, ValueError: if the groups are no disjoint sets of modes.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 5), (2, 2, 2), (1, 2, 2, 1))
      >>> shared = t3k.SharedManifold([(1, 2)])
      >>> y = shared.round(x)
      >>> bool((y.tucker_cores[1] == y.tucker_cores[2]).all()), shared.dimension(y), x.manifold_dimension
      (True, 18, 24)
    """

    groups: tuple[tuple[int, ...], ...]

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        if isinstance(groups, str) or not all(isinstance(group, tuple | list) for group in groups):
            raise TypeError(f"groups must be a sequence of sequences of modes; got {groups!r}")
        found = [mode for group in groups for mode in group]
        if any(isinstance(mode, bool) or not isinstance(mode, int) for mode in found):
            raise TypeError(f"groups must hold ints; got {groups!r}")
        if len(set(found)) != len(found) or any(mode < 0 for mode in found):
            raise ValueError(f"groups must hold distinct modes, counted from 0; got {groups!r}")
        sets = sorted(tuple(sorted(group)) for group in groups if len(group) > 1)
        object.__setattr__(self, "groups", tuple(sets))

    @property
    def kernel(self) -> Any:
        """The geometry as the kernels take it."""
        return kernels.SharedManifold(self.groups)

    def _require(self, x: TuckerTensorTrain) -> None:
        for group in self.groups:
            if group[-1] >= x.d or len({x.shape[i] for i in group}) > 1:
                raise ValueError(
                    f"the modes {group} must exist and be of one size to share a core; got shape {x.shape}"
                )

    def frame(self, x: TuckerTensorTrain) -> T3Frame:
        """The frame at a point or at a stack of points, or at the near ones that share their cores."""
        self._require(x)
        return super().frame(x)

    def round(
        self, x: TuckerTensorTrain, tucker_ranks: Sequence[int] | None = None, tt_ranks: Sequence[int] | None = None
    ) -> TuckerTensorTrain:
        """A tensor near x that shares its Tucker cores: x itself if it does, and the ranks suffice.

        Args:
          x: any tensor.
          tucker_ranks: the largest Tucker ranks wanted; a group gets the largest of its modes. None keeps them.
          tt_ranks: the largest bonds wanted, (r_0, .., r_d). None keeps them.

        Raises:
          TypeError, ValueError: if ranks do not fit, or the modes of a group do not have one size.
        """
        self._require(x)
        n = x.tucker_ranks if tucker_ranks is None else validate.as_ranks("tucker_ranks", tucker_ranks, x.d)
        r = x.tt_ranks if tt_ranks is None else validate.as_ranks("tt_ranks", tt_ranks, x.d + 1)
        rounded = over_points(lambda c: compiled.round_shared(c, self.groups, n, r), x.stack_shape, x.cores)
        return TuckerTensorTrain(*rounded)

    def random_point(
        self, key: Array, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int], dtype: Any = None
    ) -> TuckerTensorTrain:
        """A random tensor that shares its Tucker cores; arguments as of `MANIFOLD.random_point`."""
        return self.round(super().random_point(key, shape, tucker_ranks, tt_ranks, dtype))

    def dimension(self, x: TuckerTensorTrain) -> int:
        """The dimension of the manifold at x: its parameters, shared ones counted once, less the freedoms of gauge."""
        frame = self.frame(x)
        return shared_dimension(frame.shape, frame.tucker_ranks, frame.tt_ranks, self.groups)

    def tie_ranks(self, ranks: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tucker and TT ranks where each group has the largest Tucker rank of its modes."""
        return tuple(largest_in_groups(ranks[0], self.groups)), ranks[1]

    def n_free(self, shape: Sequence[int], tucker_ranks: Sequence[int], tt_ranks: Sequence[int]) -> int:
        """The dimension of the manifold of these ranks, shared cores counted once."""
        return shared_dimension(shape, tucker_ranks, tt_ranks, self.groups)

    def project_tensor(self, tensor: Any, frame: Any) -> T3Tangent:
        """The orthogonal projection of a tensor, a T3 or a dense array, onto a tangent space."""
        return self.project(super().project_tensor(tensor, frame))

    def transport(self, v: T3Tangent, frame: Any) -> T3Tangent:
        """The orthogonal projection of a tangent (no stack) onto the tangent space of another frame."""
        return self.project(super().transport(v, as_frame(frame)))
