"""Orthogonalized trains are orthogonal, the same tensor, and finite at every rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.orthogonalize import flip, left_orthogonalize, orthonormalize_rows, right_orthogonalize
from tests.structures import NAMES, assert_close, dense_t3, example, quick_jit, zeros_like

LEFT, RIGHT, ROWS = quick_jit(left_orthogonalize), quick_jit(right_orthogonalize), quick_jit(orthonormalize_rows)


def points(name):
    x = example(name)
    return [x, zeros_like(x), x._replace(tt=jax.tree.map(jnp.ones_like, x.tt))]


@pytest.mark.parametrize("name", NAMES)
def test_left_sweep_is_left_orthogonal_and_the_same_tensor(name):
    for x in points(name):
        cores = LEFT(x.tt).cores
        assert_close(dense_t3(x.tucker, cores), dense_t3(*x))
        for Q in cores[:-1]:
            assert_close(np.einsum("akb,akc->bc", Q, Q), np.eye(Q.shape[2]))


@pytest.mark.parametrize("name", NAMES)
def test_right_sweep_is_right_orthogonal_and_the_same_tensor(name):
    for x in points(name):
        cores = RIGHT(x.tt).cores
        assert_close(dense_t3(x.tucker, cores), dense_t3(*x))
        for Q in cores[1:]:
            assert_close(np.einsum("akb,ckb->ac", Q, Q), np.eye(Q.shape[0]))


@pytest.mark.parametrize("name", NAMES)
def test_every_centre_stands_for_the_whole_train(name):
    x = example(name)
    cores, centres, factors = LEFT(x.tt)
    for i, centre in enumerate(centres):
        assert_close(dense_t3(x.tucker, (*cores[:i], centre, *x.tt[i + 1 :])), dense_t3(*x))
        assert_close(np.einsum("ca,akb->ckb", factors[i], x.tt[i]), centre)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_orthonormal_and_the_tensor_is_the_same(name):
    for x in (example(name), zeros_like(example(name))):
        tucker, tt = ROWS(*x)
        assert_close(dense_t3(tucker, tt), dense_t3(*x))
        for U in tucker:
            assert_close(U @ U.T, np.eye(U.shape[0]))


def test_flipping_twice_changes_nothing():
    x = example("over-large")
    assert_close(flip(flip(x.tt)), x.tt, 0)
