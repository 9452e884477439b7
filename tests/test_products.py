"""Inner product and norm are those of the dense arrays, to machine precision, with the right derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.products import inner, norm
from t3k.kernels.t3 import add, random_cores, scale, to_dense
from tests.structures import NAMES, assert_close, dense_t3, example, plus, quick_jit, times, zeros_like

INNER, NORM = quick_jit(inner), quick_jit(norm)


@pytest.mark.parametrize("name", NAMES)
def test_inner_product_is_the_sum_of_products_of_entries(name):
    x, y = example(name), example(name, seed=1)
    assert_close(INNER(x, y), jnp.sum(dense_t3(*x) * dense_t3(*y)))


def test_inner_product_takes_different_ranks_and_end_bonds():
    x, y = example("over-large"), random_cores(jax.random.key(1), (4, 5, 3), (1, 2, 2), (1, 1, 2, 3), jnp.float64)
    assert_close(inner(x, y), jnp.sum(dense_t3(*x) * dense_t3(*y)))


@pytest.mark.parametrize("name", NAMES)
def test_norm_is_that_of_the_entries_and_0_at_zero(name):
    x = example(name)
    assert_close(NORM(x), np.linalg.norm(dense_t3(*x).reshape(-1)))
    assert NORM(zeros_like(x)) == 0.0


def test_norm_of_a_difference_is_right_to_machine_precision():
    x = example("minimal")
    size = NORM(x)
    assert NORM(add(x, scale(x, -1.0))) < 1e-14 * size
    assert_close(NORM(add(x, scale(x, -1.0 + 1e-10))) / size, 1e-10, 1e-14)


@pytest.mark.parametrize("name", ["one mode", "over-large", "a run"])
def test_derivatives_of_the_norm_are_those_of_the_dense_norm(name):
    x, v = example(name), example(name, seed=1)

    def along(size):
        return lambda s: size(plus(x, times(s, v)))

    sparse, dense = along(norm), along(lambda x: jnp.linalg.norm(to_dense(x).reshape(-1)))
    for derivative in (jax.grad, jax.hessian):
        assert_close(quick_jit(derivative(sparse))(0.3), quick_jit(derivative(dense))(0.3), 1e-10)


def test_gradient_of_the_norm_at_zero_is_zero():
    gradient = quick_jit(jax.grad(norm))(zeros_like(example("minimal")))
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(gradient))


def test_norm_of_bfloat16_is_bfloat16():
    x = example("minimal", dtype=jnp.bfloat16)
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), x)
    assert norm(x).dtype == jnp.bfloat16
    assert_close(norm(x) / norm(wide).astype(jnp.bfloat16), 1.0, 1e-2)
