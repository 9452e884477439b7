"""Ranks are those that dense unfoldings have, and dimensions those of the Jacobian."""

import jax
import numpy as np
import pytest

from t3k.kernels.ranks import cap_ranks, has_minimal_ranks, manifold_dimension, minimal_ranks, n_parameters
from t3k.kernels.t3 import random_cores, to_dense
from t3k.kernels.types import T3Cores
from tests.structures import NAMES, STRUCTURES, dense_t3, example, quick_jit, unfolding


@pytest.mark.parametrize("name", NAMES)
def test_minimal_ranks_are_the_ranks_of_the_unfoldings(name):
    array = dense_t3(*example(name))
    d = array.ndim
    tucker = tuple(np.linalg.matrix_rank(unfolding(array, [i])) for i in range(d))
    bonds = tuple(np.linalg.matrix_rank(unfolding(array, list(range(i)))) for i in range(1, d))
    assert minimal_ranks(*STRUCTURES[name]) == (tucker, (1, *bonds, 1))


@pytest.mark.parametrize("name", NAMES)
def test_minimal_ranks_are_a_fixed_point(name):
    shape = STRUCTURES[name][0]
    assert has_minimal_ranks(shape, *minimal_ranks(*STRUCTURES[name]))


def test_ranks_that_are_too_large_are_not_minimal():
    assert not has_minimal_ranks(*STRUCTURES["over-large"])
    assert not has_minimal_ranks((4, 5), (2, 2), (2, 2, 1))


@pytest.mark.parametrize("name", ["one mode", "matrix", "over-large", "modes of size 1"])
def test_manifold_dimension_is_the_rank_of_the_jacobian(name):
    x = example(name)
    jacobian = quick_jit(jax.jacobian(lambda x: to_dense(x).reshape(-1)))(x)
    matrix = np.concatenate([np.asarray(leaf).reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(jacobian)], 1)
    assert manifold_dimension(*STRUCTURES[name]) == np.linalg.matrix_rank(matrix)
    assert isinstance(x, T3Cores)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_entries_of_the_cores(name):
    x = random_cores(jax.random.key(0), *STRUCTURES[name])
    assert n_parameters(*STRUCTURES[name]) == sum(leaf.size for leaf in jax.tree.leaves(x))


def test_ranks_are_python_integers_whatever_comes_in():
    n, r = minimal_ranks(list(np.array([3, 4])), list(np.array([9, 9])), list(np.array([1, 9, 1])))
    assert all(type(rank) is int for rank in (*n, *r, *cap_ranks(np.array([3]), np.array([2]))))
