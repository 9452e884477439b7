"""The oracles agree with still more obvious code: NumPy, and automatic differentiation of a contraction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.dense import dense_apply, dense_entries, dense_probe, dense_probe_derivatives, dense_t3
from tests.structures import assert_close, example, quick_jit

ARRAY = jax.random.normal(jax.random.key(0), (3, 4, 2))


def vectors(seed, n_probe=5):
    keys = jax.random.split(jax.random.key(seed), 3)
    return [jax.random.normal(keys[i], (n_probe, N)) for i, N in enumerate(ARRAY.shape)]


def test_dense_t3_is_the_sum_written_in_letters():
    x = example("over-large")
    letters = "akb,ko,blc,lp,cmd,mq->opq"
    cores = [core for pair in zip(x.tt, x.tucker, strict=True) for core in pair]
    assert_close(dense_t3(*x), np.einsum(letters, *map(np.asarray, cores)))


def test_probes_are_the_contractions_of_all_modes_but_one():
    u, v, w = vectors(1)
    z = dense_probe(ARRAY, [u, v, w])
    assert_close(z[0], np.einsum("opq,wp,wq->wo", ARRAY, v, w))
    assert_close(z[1], np.einsum("opq,wo,wq->wp", ARRAY, u, w))
    assert_close(z[2], np.einsum("opq,wo,wp->wq", ARRAY, u, v))
    assert_close(dense_apply(ARRAY, [u, v, w]), np.einsum("opq,wo,wp,wq->w", ARRAY, u, v, w))


def test_a_probe_of_one_mode_is_the_vector_itself():
    assert_close(dense_probe(jnp.arange(3.0), [jnp.ones((2, 3))])[0], np.tile(np.arange(3.0), (2, 1)))


@pytest.mark.parametrize("order", [0, 2])
def test_derivatives_are_those_of_automatic_differentiation(order):
    ww, pp = vectors(1), vectors(2)

    def probe(s):
        return dense_probe(ARRAY, [w + s * p for w, p in zip(ww, pp, strict=True)])

    derivatives = quick_jit(dense_probe_derivatives, static_argnums=3)(ARRAY, ww, pp, order)
    for t in range(order + 1):
        assert_close(tuple(z[t] for z in derivatives), quick_jit(probe)(0.0))
        probe = jax.jacfwd(probe)


def test_entries_are_those_at_the_indices():
    assert_close(dense_entries(ARRAY, ([0, -1], [3, 0], [1, 1])), ARRAY[jnp.array([0, 2]), jnp.array([3, 0]), 1], 0)
