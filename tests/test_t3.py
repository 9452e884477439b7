"""The arithmetic of T3s is that of dense arrays."""

import jax
import jax.numpy as jnp
import pytest

from t3k.kernels.t3 import add, random_cores, ranks_of, scale, sum_end_bonds, to_dense, zeros_cores
from t3k.kernels.types import T3Cores
from tests.structures import NAMES, STRUCTURES, assert_close, dense_t3, example, quick_jit

DENSE, ADD = quick_jit(to_dense), quick_jit(add)


@pytest.mark.parametrize("name", NAMES)
def test_to_dense_is_the_sum_over_all_bonds(name):
    assert_close(DENSE(example(name)), dense_t3(*example(name)))


@pytest.mark.parametrize("name", NAMES)
def test_summed_end_bonds_are_1_and_the_tensor_is_the_same(name):
    summed = sum_end_bonds(example(name))
    assert summed.tt[0].shape[0] == summed.tt[-1].shape[2] == 1
    assert_close(dense_t3(*summed), dense_t3(*example(name)))


@pytest.mark.parametrize("name", NAMES)
def test_sum_and_multiple_are_those_of_the_tensors(name):
    x, y = example(name), example(name, seed=1)
    assert_close(dense_t3(*ADD(x, scale(y, -2.5))), dense_t3(*x) - 2.5 * dense_t3(*y))


def test_terms_may_have_different_ranks_and_end_bonds():
    x, y = example("over-large"), random_cores(jax.random.key(1), (4, 5, 3), (1, 2, 2), (1, 1, 2, 3), jnp.float64)
    assert_close(dense_t3(*add(x, y)), dense_t3(*x) + dense_t3(*y))


def test_stacked_cores_are_a_t3_too():
    x = random_cores(jax.random.key(0), (3,) * 4, (2,) * 4, (2,) * 5, jnp.float64)
    stacked = T3Cores(jnp.stack(x.tucker), jnp.stack(x.tt))
    assert_close(to_dense(scale(stacked, 2.0)), 2 * dense_t3(*x))
    assert jnp.asarray(scale(stacked, 2.0).tt).shape == (4, 2, 2, 2)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_dtype_is_kept(dtype):
    x = example("minimal", dtype=dtype)
    results = (add(x, x), scale(x, 2.0), to_dense(x), zeros_cores(*STRUCTURES["minimal"], dtype))
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype(dtype)}


def test_random_cores_have_the_ranks_asked_for():
    assert ranks_of(example("over-large")) == STRUCTURES["over-large"]
