"""Small T3 structures on which geometry has gone wrong elsewhere, and what tests of geometry share."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels import dense
from t3k.kernels.frames import orthogonal_frame
from t3k.kernels.t3 import zeros_cores
from t3k.kernels.truncation import truncate
from t3k.kernels.types import T3Cores
from t3k.kernels.variations import zero_variations

#: Name to (mode sizes, Tucker ranks, bonds).
STRUCTURES = {
    "one mode": ((4,), (3,), (2, 2)),
    "matrix": ((4, 5), (3, 3), (1, 2, 1)),
    "minimal": ((4, 5, 6), (2, 3, 3), (1, 2, 3, 1)),
    "over-large": ((4, 5, 3), (5, 3, 7), (2, 3, 9, 1)),
    "modes of size 1": ((1, 4, 1), (1, 2, 1), (1, 1, 2, 1)),
    "a run": ((3,) * 5, (2,) * 5, (1, 2, 2, 2, 2, 1)),
}
NAMES = sorted(STRUCTURES)

#: `jax.jit` for functions that run once on a few numbers: two thirds of the time of these tests is compilation.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

#: Compiled whole: each operation by itself would be a compilation too.
dense_t3 = quick_jit(dense.dense_t3)
dense_tangent = quick_jit(dense.dense_tangent)
frame_of = quick_jit(orthogonal_frame)
round_to = quick_jit(truncate, static_argnums=(1, 2))


def draw(seed, tree):
    """Standard normal numbers in place of all entries."""
    generator = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape), leaf.dtype), tree)


@cache
def example(name, seed=0, dtype=jnp.float64):
    return draw(seed, zeros_cores(*STRUCTURES[name], dtype))


@cache
def framed(name, seed=0, dtype=jnp.float64):
    """A T3, its orthogonal frame and random coordinates in it."""
    x = example(name, seed, dtype)
    frame, _ = frame_of(x)
    return x, frame, draw(seed + 100, zero_variations(frame))


def times(factor, tree):
    return jax.tree.map(lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf, tree)


def plus(x, y):
    return jax.tree.map(lambda a, b: a + b, x, y)


def unfolding(array, rows):
    """The matrix whose rows are the given modes."""
    return np.moveaxis(np.asarray(array), rows, range(len(rows))).reshape(
        int(np.prod([array.shape[i] for i in rows])), -1
    )


def assert_close(x, y, rtol=1e-12):
    """Equal to rounding, relative to the largest entry, leaf by leaf."""
    for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1.0, np.abs(b).max(initial=0.0)))


def best_bound(array, tucker_ranks, tt_ranks):
    """The square root of the sum of all discarded squared singular values: the bound of T3-SVD."""
    d, total = array.ndim, 0.0
    for i in range(d):
        total += sum(np.linalg.svd(unfolding(array, [i]), compute_uv=False)[tucker_ranks[i] :] ** 2)
    for i in range(1, d):
        total += sum(np.linalg.svd(unfolding(array, list(range(i))), compute_uv=False)[tt_ranks[i] :] ** 2)
    return float(np.sqrt(total))


def zeros_like(x: T3Cores) -> T3Cores:
    return jax.tree.map(jnp.zeros_like, x)
