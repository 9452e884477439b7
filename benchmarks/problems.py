"""The grid of problems that the maps of samples are timed on, their arrays, and the limit that the machine sets."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from t3k.api.chunk_size import auto_chunk
from t3k.api.problem_shape import ProblemShape
from t3k.kernels.types import Frame, Variations

__all__ = ["GRID", "Arrays", "Point", "arrays", "chunk", "layouts", "limit"]


class Point(NamedTuple):
    """One problem of the grid: modes, order, probes, bonds, Tucker ranks and mode sizes; end bonds are 1."""

    d: int
    order: int
    n_probes: int
    r: int
    n: int
    size: int

    @property
    def bonds(self) -> tuple[int, ...]:
        """r_0 .. r_d."""
        return (1, *(self.r,) * (self.d - 1), 1)


GRID = [
    Point(4, 2, 1000, 32, 32, 64),
    Point(6, 3, 512, 64, 32, 64),
    Point(4, 2, 1000, 64, 64, 64),
    Point(3, 1, 4000, 16, 16, 100),
    Point(8, 2, 1000, 8, 8, 32),
    Point(5, 5, 256, 32, 16, 128),
    Point(4, 2, 1000, 8, 8, 2048),
    Point(3, 1, 2000, 20, 20, 150),
    Point(10, 1, 2000, 12, 12, 20),
    Point(30, 1, 1000, 6, 6, 10),
]


class Arrays(NamedTuple):
    """A frame and a tangent; probes, directions and residual jets; indices and residuals of applies and entries."""

    frame: Frame
    variations: Variations
    ww: Any
    pp: Any
    zz: Any
    index: Any
    residual: Any


def arrays(point: Point) -> Arrays:
    """Random float32 arrays of a problem, the same in every run."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[-1]), jnp.float32)

    r = point.bonds
    tucker = [tuple(draw(point.n, point.size) for _ in range(point.d)) for _ in range(2)]
    trains = [tuple(draw(r[i], point.n, r[i + 1]) for i in range(point.d)) for _ in range(4)]
    ww, pp = (tuple(draw(point.n_probes, point.size) for _ in range(point.d)) for _ in range(2))
    zz = tuple(draw(point.order + 1, point.n_probes, point.size) for _ in range(point.d))
    index = jnp.asarray(rng.integers(0, point.size, (point.d, point.n_probes)), jnp.int32)
    frame, variations = Frame(tucker[0], *trains[:3]), Variations(tucker[1], trains[3])
    return Arrays(frame, variations, ww, pp, zz, index, draw(point.order + 1, point.n_probes))


def chunk(point: Point, kind: str = "probe", operation: str = "transpose") -> int:
    """What ``chunk_size="auto"`` stands for."""
    sizes, ranks = (point.size,) * point.d, (point.n,) * point.d
    dtype = jnp.dtype("float32")
    problem = ProblemShape(sizes, ranks, point.bonds, point.order, point.n_probes, 1, dtype, kind)
    return auto_chunk(problem, operation)


def layouts(*trees: Any) -> dict[str, tuple[Any, ...]]:
    """The arguments in the peer's two layouts: trains as tuples, or padded to one shape and stacked."""
    return {"ragged": tuple(map(_as_tuples, trees)), "padded": tuple(map(_padded, trees))}


def _is_train(tree: Any) -> bool:
    return isinstance(tree, tuple) and all(isinstance(x, jax.Array) for x in tree)


def _as_tuples(tree: Any) -> Any:
    return tuple(map(_as_tuples, tree)) if isinstance(tree, tuple) else tree


def _padded(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    if not _is_train(tree):
        return tuple(map(_padded, tree))
    shape = np.max([x.shape for x in tree], axis=0)
    return jnp.stack([jnp.pad(x, [(0, int(b) - a) for a, b in zip(x.shape, shape, strict=True)]) for x in tree])


def limit(point: Point) -> Callable[[], Any]:
    """All matrix products of the transpose of probes in one program, on inputs of the shapes that they have there."""
    rows, width, columns = point.r, point.r * point.n, point.n_probes
    left, right = jnp.ones((rows, width), jnp.float32), jnp.ones((width, columns), jnp.float32)
    r = point.bonds
    model = sum(
        point.n_probes * r[i] * point.n * r[i + 1] * (14 * (point.order + 1) + 4)
        + point.n_probes * point.n * point.size * (4 * (point.order + 1) + 8)
        for i in range(point.d)
    )
    repeats = max(1, round(model / (2 * rows * width * columns)))

    @jax.jit
    def products(left: jax.Array, right: jax.Array) -> jax.Array:
        def body(_: Any, carry: jax.Array) -> jax.Array:
            # The next product needs this one, so that none is left out.
            return left + (carry @ right)[:, :1]

        return jax.lax.fori_loop(0, repeats, body, left)

    return lambda: products(left, right)
