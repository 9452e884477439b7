"""T3-SVD of arrays: exact when ranks suffice, within the bound and the tolerance otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.from_dense import from_dense_cores, from_dense_tolerance
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.t3 import ranks_of
from tests.structures import NAMES, STRUCTURES, assert_close, best_bound, dense_t3, example, quick_jit

DECOMPOSE = quick_jit(from_dense_cores, static_argnums=(1, 2))


@pytest.mark.parametrize("name", NAMES)
def test_decomposition_is_exact_when_the_ranks_suffice(name):
    array = dense_t3(*example(name))
    x = DECOMPOSE(array, *STRUCTURES[name][1:])
    assert_close(dense_t3(*x), array)
    assert ranks_of(x)[1:] == minimal_ranks(*STRUCTURES[name])


@pytest.mark.parametrize(("shape", "n", "r"), [((4, 5, 3), (2, 3, 2), (1, 2, 2, 1)), ((6,), (1,), (1, 1))])
def test_decomposition_is_within_the_bound(shape, n, r):
    array = jax.random.normal(jax.random.key(0), shape)
    error = np.linalg.norm((dense_t3(*DECOMPOSE(array, n, r)) - array).reshape(-1))
    assert error <= best_bound(array, n, r) * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("rtol", [0.5, 0.1, 1e-13])
def test_tolerance_is_honoured(rtol):
    array = jax.random.normal(jax.random.key(0), (4, 5, 3))
    x = from_dense_tolerance(array, rtol)
    assert np.linalg.norm((dense_t3(*x) - array).reshape(-1)) <= rtol * np.linalg.norm(array.reshape(-1)) + 1e-13
    assert ranks_of(x)[1:] == minimal_ranks(*ranks_of(x))


def test_caps_are_honoured_edge_by_edge():
    array = jax.random.normal(jax.random.key(0), (4, 5, 3))
    assert ranks_of(from_dense_tolerance(array, 0.0, 0.0, (2, 4, 3), (1, 2, 3, 1)))[1:] == ((2, 4, 3), (1, 2, 3, 1))


def test_zero_has_ranks_of_1():
    assert ranks_of(from_dense_tolerance(jnp.zeros((4, 5)), 1e-3))[1:] == ((1, 1), (1, 1, 1))


def test_tolerance_refuses_to_be_traced():
    with pytest.raises(TypeError, match="from_dense_tolerance chooses ranks"):
        quick_jit(lambda x: from_dense_tolerance(x, 1e-3))(jnp.ones((2, 2)))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_dtype_is_kept(dtype):
    array = jnp.ones((4, 5), dtype)
    results = from_dense_cores(array, (2, 2), (1, 2, 1)), from_dense_tolerance(array, 1e-2)
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype(dtype)}
