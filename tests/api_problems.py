"""Small problems that the tests of the api share, so that shapes and compilations are reused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import t3k
from t3k.kernels.dense import dense_probe_derivatives

SHAPE, TUCKER_RANKS, TT_RANKS = (5, 6, 7), (2, 3, 2), (1, 2, 2, 1)


def tensor(seed: int = 0, dtype=None, tt_ranks=TT_RANKS) -> t3k.TuckerTensorTrain:
    return t3k.TuckerTensorTrain.randn(jax.random.key(seed), SHAPE, TUCKER_RANKS, tt_ranks, dtype)


def stacked(n: int, seed: int = 0) -> t3k.TuckerTensorTrain:
    return jax.tree.map(lambda *xs: jnp.stack(xs), *(tensor(seed + i) for i in range(n)))


@functools.cache
def vectors(probes: tuple[int, ...] = (4,), seed: int = 0, shape: tuple[int, ...] = SHAPE) -> tuple[np.ndarray, ...]:
    """Unit vectors ``probes + (N_i,)``, one array per mode."""
    rng = np.random.default_rng(seed)
    draws = [rng.standard_normal((*probes, size)) for size in shape]
    return tuple(x / np.linalg.norm(x, axis=-1, keepdims=True) for x in draws)


def residuals(
    probes: tuple[int, ...], order: int, stack: tuple[int, ...] = (), seed: int = 7
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((order + 1, *probes, *stack, size)) for size in SHAPE)


#: The oracle, compiled: op by op it would take longer than the code that it checks.
dense_samples = jax.jit(dense_probe_derivatives, static_argnums=3)


def assert_trees_close(found, expected, rtol: float = 1e-12) -> None:
    """Equal structure and shapes, and values to `rtol` of the largest in the tree."""
    assert str(jax.tree.structure(found)) == str(jax.tree.structure(expected))
    pairs = [
        (np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    ]
    largest = max(np.abs(b).max(initial=0) for _, b in pairs)
    for a, b in pairs:
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * largest)
