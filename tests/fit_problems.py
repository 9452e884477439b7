"""Tiny fits that the tests of the optimizers share, so that shapes and compilations are reused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import t3k

SHAPE, TUCKER_RANKS, TT_RANKS = (4, 5), (2, 2), (1, 2, 1)
N_SAMPLES, ORDER = 60, 1
KINDS = ("probe", "apply", "entries")
DERIVATIVES = tuple(f"{kind}_derivatives" for kind in KINDS)
GEOMETRIES = {"manifold": t3k.MANIFOLD, "corewise": t3k.COREWISE}


def randn(seed: int, dtype=None, tucker_ranks=TUCKER_RANKS, tt_ranks=TT_RANKS) -> t3k.TuckerTensorTrain:
    return t3k.TuckerTensorTrain.randn(jax.random.key(seed), SHAPE, tucker_ranks, tt_ranks, dtype)


def zeros(dtype=None) -> t3k.TuckerTensorTrain:
    return t3k.TuckerTensorTrain.zeros(SHAPE, TUCKER_RANKS, TT_RANKS, dtype)


@functools.cache
def truth() -> t3k.TuckerTensorTrain:
    """Well conditioned: a matrix of singular values 2 and 1, far from tensors of lower ranks."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in SHAPE)
    return t3k.TuckerTensorTrain.from_dense(left * [2.0, 1.0] @ right.T, TUCKER_RANKS, TT_RANKS)


@functools.cache
def near() -> t3k.TuckerTensorTrain:
    """A start near the truth, with balanced cores."""
    x = truth()
    return jax.tree.map(lambda a, b: a + 0.1 * b, x, randn(1))


@functools.cache
def sample_of(kind: str, n_samples: int = N_SAMPLES, seed: int = 0):
    rng = np.random.default_rng(seed)

    def vectors():
        draws = [rng.standard_normal((n_samples, size)) for size in SHAPE]
        return tuple(x / np.linalg.norm(x, axis=-1, keepdims=True) for x in draws)

    at = tuple(rng.integers(0, size, n_samples) for size in SHAPE) if kind.startswith("entries") else vectors()
    return (at, vectors()) if kind.endswith("_derivatives") else at


def measure(kind: str, x: t3k.TuckerTensorTrain, sample):
    if kind.endswith("_derivatives"):
        return getattr(x, kind)(*sample, ORDER)
    return getattr(x, kind)(sample)


@functools.cache
def data_of(kind: str):
    return measure(kind, truth(), sample_of(kind))


def order_of(kind: str) -> int | None:
    return ORDER if kind.endswith("_derivatives") else None


def error(x: t3k.TuckerTensorTrain, expected: t3k.TuckerTensorTrain | None = None) -> float:
    expected = truth() if expected is None else expected
    return float(jnp.linalg.norm(x.to_dense() - expected.to_dense()) / jnp.linalg.norm(expected.to_dense()))
