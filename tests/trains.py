"""Small problems for the tests of the kernels, and a `jit` that compiles them quickly."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from t3k.kernels.types import Frame, Variations

# All kinds of rank differ from each other and from mode to mode.
AMBIENT = (3, 4, 2, 5, 3, 4)
TUCKER = (2, 3, 2, 3, 2, 3)
DOWN = (3, 2, 3, 2, 3, 2)
LEFT_BONDS = (2, 3, 2, 3, 2)
RIGHT_BONDS = (3, 2, 3, 2, 3)

Draw = Callable[..., Any]


class Problem(NamedTuple):
    """All that a probe map can be asked about; numpy arrays, so that nothing is compiled to make them."""

    ww: Any
    pp: Any
    zz: Any
    variations: Any  # of the types of this library or, with the same fields, any other arrays
    frame: Any
    point: Any
    weights: Any
    rows: Any


def normal(seed: int, dtype: Any = np.float64) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


def small_integers(seed: int) -> Draw:
    """Values with which every sum and product of a small problem is exact."""
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.integers(-2, 3, shape).astype(np.float64)


def draw_frame(draw: Draw, d: int, end: tuple[int, int] = (1, 1), stretch: int = 1) -> Frame:
    """A frame of d modes, `stretch` times as long as AMBIENT has them."""
    left, right = ((end[0], *bonds[: d - 1], end[1]) for bonds in (LEFT_BONDS, RIGHT_BONDS))
    return Frame(
        up=tuple(draw(TUCKER[i], stretch * AMBIENT[i]) for i in range(d)),
        down=tuple(draw(left[i], DOWN[i], right[i + 1]) for i in range(d)),
        left=tuple(draw(left[i], TUCKER[i], left[i + 1]) for i in range(d)),
        right=tuple(draw(right[i], TUCKER[i], right[i + 1]) for i in range(d)),
    )


def draw_variations(draw: Draw, frame: Frame) -> Variations:
    return Variations(
        tucker=tuple(draw(O.shape[1], U.shape[1]) for O, U in zip(frame.down, frame.up, strict=True)),
        tt=tuple(draw(L.shape[0], L.shape[1], R.shape[2]) for L, R in zip(frame.left, frame.right, strict=True)),
    )


def draw_problem(draw: Draw, frame: Frame, order: int, n_probes: int) -> Problem:
    sizes = [U.shape[1] for U in frame.up]
    variations = draw_variations(draw, frame)
    return Problem(
        ww=tuple(draw(n_probes, size) for size in sizes),
        pp=tuple(draw(n_probes, size) for size in sizes),
        zz=tuple(draw(order + 1, n_probes, size) for size in sizes),
        variations=variations,
        frame=frame,
        point=draw_variations(draw, frame).tucker,
        weights=np.abs(draw(len(sizes), order + 1)),
        rows=np.abs(draw(n_probes)),
    )


def equal_cores(draw: Draw, d: int, r: int = 2, n: int = 3, N: int = 4) -> Frame:
    """A frame whose cores are all alike but for the end bonds, which are 1."""
    bonds = (1, *(r,) * (d - 1), 1)
    cores = [tuple(draw(bonds[i], n, bonds[i + 1]) / np.sqrt(r * n) for i in range(d)) for _ in range(3)]
    return Frame(tuple(draw(n, N) for _ in range(d)), *cores)


@functools.cache
def _quick() -> dict[str, Any]:
    """Options with which XLA compiles five times faster for code that runs slower; none where it lacks them."""
    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x, compiler_options=options)(np.zeros(1))
    except jax.errors.JaxRuntimeError:
        return {}
    return options


def quick_jit(fun: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """`jax.jit` for programs whose speed does not matter."""
    return jax.jit(fun, compiler_options=_quick(), **kwargs)


def assert_trees_equal(actual: Any, expected: Any) -> None:
    """To the last bit."""
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


def assert_trees_close(actual: Any, expected: Any, rtol: float = 1e-12) -> None:
    """To rounding, relative to the largest entry of each array."""

    def check(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=0, atol=rtol * max(1.0, np.max(np.abs(y), initial=0.0)))

    jax.tree.map(check, actual, expected)


def dot(x: Any, y: Any) -> float:
    """The inner product of two pytrees of arrays."""
    return float(sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)))
