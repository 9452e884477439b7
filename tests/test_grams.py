"""Gram matrices of the parts of a train are those of the dense parts."""

import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.grams import left_grams, right_grams
from t3k.kernels.t3 import sum_end_bonds
from tests.structures import assert_close, dense_t3, example, unfolding

NAMES = ["matrix", "over-large", "a run"]


def metrics_of(x):
    return tuple(U @ U.T for U in x.tucker)


def part(x, modes, bond_at_end):
    """Some modes of the train as a dense matrix (entries, bond)."""
    tucker, tt = x.tucker[modes], x.tt[modes]
    bond = tt[-1].shape[2] if bond_at_end else tt[0].shape[0]
    columns = []
    for j in range(bond):
        core = tt[-1][:, :, j : j + 1] if bond_at_end else tt[0][j : j + 1]
        cores = (*tt[:-1], core) if bond_at_end else (core, *tt[1:])
        columns.append(dense_t3(tucker, cores).reshape(-1))
    return jnp.stack(columns, axis=1)


@pytest.mark.parametrize("name", NAMES)
def test_left_gram_is_that_of_the_modes_to_the_left(name):
    x = sum_end_bonds(example(name))
    grams = left_grams(x.tt, metrics_of(x))
    for i in range(1, len(x.tt)):
        left = part(x, slice(0, i), True)
        assert_close(grams[i], left.T @ left)


@pytest.mark.parametrize("name", NAMES)
def test_right_gram_is_that_of_the_modes_to_the_right(name):
    x = sum_end_bonds(example(name))
    grams = right_grams(x.tt, metrics_of(x))
    for i in range(len(x.tt) - 1):
        right = part(x, slice(i + 1, None), False)
        assert_close(grams[i], right.T @ right)


def test_without_metrics_tucker_rows_count_as_orthonormal():
    x = sum_end_bonds(example("over-large"))
    ones = tuple(jnp.eye(G.shape[1]) for G in x.tt)
    assert_close(right_grams(x.tt), right_grams(x.tt, ones))
    assert_close(left_grams(x.tt), left_grams(x.tt, ones))


def test_grams_give_the_norms_of_unfoldings():
    x = sum_end_bonds(example("minimal"))
    matrix = unfolding(dense_t3(*x), [0])
    first = np.einsum("akb,ko->ob", x.tt[0], x.tucker[0])
    assert_close(first @ right_grams(x.tt, metrics_of(x))[0] @ first.T, matrix @ matrix.T)
