"""The geometries that a T3 is fitted in, as values that hash and compare alike.

A geometry answers: what is the frame at a point, what makes a gradient of a bare transpose, where does a tangent
lead. `Manifold` is the set of tensors of fixed ranks with the Hilbert-Schmidt metric: an orthogonal frame, the
orthogonal gauge projection, retraction by truncation of X + v. `Corewise` is the space of cores themselves with the
Euclidean metric: the frame (U, G, G, G), no gauge, and addition. `SharedManifold` is the part of the manifold where
groups of modes have one Tucker core in common.
"""

from dataclasses import dataclass

from t3k.kernels.frames import corewise_frame, orthogonal_frame
from t3k.kernels.gauge import orthogonal_gauge
from t3k.kernels.retraction import retract, retract_corewise
from t3k.kernels.shared_modes import shared_frame, tie
from t3k.kernels.tangents import tangent_to_t3, transport
from t3k.kernels.truncation import project_to_ranks
from t3k.kernels.types import Cores, Frame, T3Cores, Variations, as_tuple, like_train
from t3k.kernels.variations import zero_variations

__all__ = ["Corewise", "Manifold", "SharedManifold"]


@dataclass(frozen=True)
class Manifold:
    """Tensors of fixed ranks with the Hilbert-Schmidt metric."""

    def frame(self, x: T3Cores) -> tuple[Frame, Cores]:
        """The orthogonal frame at x, and the Tucker cores ``(m, o)`` that make x of it at each mode in turn."""
        return orthogonal_frame(x)

    def project(self, frame: Frame, gradient: Variations) -> Variations:
        """The Riemannian gradient of a bare transpose."""
        return orthogonal_gauge(frame, gradient)

    def retract(self, frame: Frame, v: Variations) -> T3Cores:
        """The point that v leads to, of the frame's ranks."""
        return retract(frame, v)

    def transport(self, frame_from: Frame, v: Variations, frame_to: Frame) -> Variations:
        """The tangent carried to another tangent space, by orthogonal projection."""
        return transport(frame_from, v, frame_to)

    def coordinates(self, frame: Frame) -> Variations:
        """The base point as a tangent, which it is: ``H = L`` in the last core."""
        zero, left = zero_variations(frame), as_tuple(frame.left)
        return Variations(zero.tucker, like_train((*as_tuple(zero.tt)[:-1], left[-1]), frame.left))


@dataclass(frozen=True)
class SharedManifold(Manifold):
    """Tensors of fixed ranks whose modes have Tucker cores in common, within groups, with the same metric."""

    groups: tuple[tuple[int, ...], ...]

    def frame(self, x: T3Cores) -> tuple[Frame, Cores]:
        """The orthogonal frame at x, or at the tensor near x whose Tucker cores are shared."""
        return shared_frame(x, self.groups)

    def project(self, frame: Frame, gradient: Variations) -> Variations:
        """The Riemannian gradient of a bare transpose."""
        return tie(frame, orthogonal_gauge(frame, gradient), self.groups)

    def retract(self, frame: Frame, v: Variations) -> T3Cores:
        """The point that v leads to, of the frame's ranks and with shared Tucker cores."""
        tt_ranks = (1, *(L.shape[2] for L in frame.left))
        moved = tangent_to_t3(frame, v, include_point=True)
        return project_to_ranks(moved, [U.shape[0] for U in frame.up], tt_ranks, self.groups)

    def transport(self, frame_from: Frame, v: Variations, frame_to: Frame) -> Variations:
        """The tangent carried to another tangent space, by orthogonal projection."""
        return tie(frame_to, super().transport(frame_from, v, frame_to), self.groups)


@dataclass(frozen=True)
class Corewise:
    """Cores with the Euclidean metric."""

    def frame(self, x: T3Cores) -> tuple[Frame, Cores]:
        """The frame (U, G, G, G), and U."""
        return corewise_frame(x)

    def project(self, frame: Frame, gradient: Variations) -> Variations:
        """The gradient itself."""
        del frame
        return gradient

    def retract(self, frame: Frame, v: Variations) -> T3Cores:
        """``(U + V, G + H)``."""
        return retract_corewise(T3Cores(frame.up, frame.left), v)

    def transport(self, frame_from: Frame, v: Variations, frame_to: Frame) -> Variations:
        """The same coordinates."""
        del frame_from, frame_to
        return v

    def coordinates(self, frame: Frame) -> Variations:
        """The cores themselves."""
        return Variations(frame.up, frame.left)
