"""Tensors with shared Tucker cores: their tangent space is that of the parametrisation, and fits stay in it."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels.dense import dense_t3
from t3k.kernels.types import T3Cores
from tests.api_problems import assert_trees_close, vectors

SHAPE = (5, 4, 5)
SHARED = t3k.SharedManifold([(2, 0)])


def tied(seed=0):
    """A tensor with one core for modes 0 and 2."""
    x = t3k.TuckerTensorTrain.randn(jax.random.key(seed), SHAPE, (2, 3, 2), (1, 2, 2, 1))
    return t3k.TuckerTensorTrain((x.tucker_cores[0], x.tucker_cores[1], x.tucker_cores[0]), x.tt_cores)


def parametrisation(U, V, tt):
    return dense_t3(*T3Cores((U, V, U), tt)).ravel()


def tangent_basis(x):
    """Orthonormal columns that span the changes of the tensor when its own parameters change."""
    parameters = x.tucker_cores[0], x.tucker_cores[1], x.tt_cores
    jacobian = jax.jacfwd(parametrisation, argnums=(0, 1, 2))(*parameters)
    columns = np.concatenate([np.reshape(leaf, (np.prod(SHAPE), -1)) for leaf in jax.tree.leaves(jacobian)], axis=1)
    vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
    return vectors[:, values > 1e-10 * values[0]]


def test_the_tangent_space_and_its_dimension_are_those_of_the_parametrisation():
    x, y = tied(), np.random.default_rng(0).standard_normal(SHAPE)
    basis = tangent_basis(x)
    assert SHARED.dimension(x) == basis.shape[1] < x.manifold_dimension
    projected = SHARED.project_tensor(y, SHARED.frame(x))
    assert_trees_close(projected.to_dense().ravel(), jnp.asarray(basis @ (basis.T @ y.ravel())), 1e-10)
    assert_trees_close(SHARED.project(projected).variations, projected.variations, 1e-12)
    assert_trees_close(SHARED.transport(projected, projected.frame).variations, projected.variations, 1e-11)


def test_tied_tensors_stay_and_others_move_little_more_than_they_must():
    x = tied()
    assert_trees_close(SHARED.round(x).to_dense(), x.to_dense(), 1e-12)
    assert_trees_close(SHARED.frame(x).up[0], SHARED.frame(x).up[2], 0)
    near = t3k.TuckerTensorTrain((x.tucker_cores[0] + 1e-6, *x.tucker_cores[1:]), x.tt_cores)
    moved = SHARED.round(near)
    assert_trees_close(moved.tucker_cores[0], moved.tucker_cores[2], 0)
    assert float(moved.distance(near)) < 3 * float(near.distance(x))
    small = SHARED.round(near + near, (1, 2, 2), (1, 2, 2, 1))
    assert small.tucker_ranks == (2, 2, 2)


def test_the_retraction_shares_its_cores_and_is_of_second_order():
    x = tied()
    frame = SHARED.frame(x)
    v = SHARED.random_unit(jax.random.key(1), frame)
    moved = SHARED.retract(0.1 * v)
    assert_trees_close(moved.tucker_cores[0], moved.tucker_cores[2], 0)
    errors = [
        float(jnp.linalg.norm((SHARED.retract(t * v).to_dense() - x.to_dense() - t * v.to_dense()).ravel()))
        for t in (2e-2, 1e-2)
    ]
    assert errors[1] < 0.3 * errors[0]


def test_the_derivative_of_the_retraction_is_right():
    frame = SHARED.frame(tied())
    v, w = (SHARED.randn(jax.random.key(seed), frame) for seed in (1, 2))

    @jax.jit
    def loss(s):
        return jnp.sin(SHARED.retract(0.1 * v + s * w).to_dense()).sum()

    central = (loss(1e-5) - loss(-1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(0.0), central, rtol=1e-6)


def test_a_fit_stays_among_tensors_with_shared_cores():
    x, ww = tied(3), vectors((40,), 0, SHAPE)
    start = SHARED.random_point(jax.random.key(5), SHAPE, (2, 3, 2), (1, 2, 2, 1))
    found, stats = t3k.newton_cg(cast(Any, SHARED), "probe", ww, x.probe(ww), x + 0.1 * start, max_iterations=30)
    assert_trees_close(found.tucker_cores[0], found.tucker_cores[2], 0)
    assert stats.losses[-1] < 1e-3 * stats.losses[0]


def test_it_is_a_value():
    assert t3k.SharedManifold([[0, 2], [1]]) == t3k.SharedManifold([(2, 0)])
    assert hash(t3k.SharedManifold([(0, 2)])) == hash(t3k.SharedManifold([(2, 0)]))
    assert t3k.SharedManifold([(0, 1)]) != SHARED


BAD: list[Any] = [
    (lambda: t3k.SharedManifold([(0, 1), (1, 2)]), ValueError, "groups must hold distinct modes"),
    (lambda: t3k.SharedManifold(cast(Any, [0, 1])), TypeError, "groups must be a sequence of sequences"),
    (lambda: t3k.SharedManifold([(0, -1)]), ValueError, "counted from 0"),
    (lambda: t3k.SharedManifold([(0, 1)]).frame(tied()), ValueError, r"the modes \(0, 1\) must exist and be of one"),
    (lambda: tied().scale_edges(modes=(None, None)), ValueError, "modes must have one array or None for each of 3"),
    (lambda: tied().scale_edges(bonds=(None, [1.0], None, None)), ValueError, r"bonds\[1\] must have shape \(2,\)"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_groups_and_weights_are_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_weights_on_edges_are_diagonal_matrices_there():
    x, rng = tied(), np.random.default_rng(0)
    modes, tucker, bonds = ([rng.random(n) for n in sizes] for sizes in (x.shape, x.tucker_ranks, x.tt_ranks))
    weighted = x.scale_edges(modes, tucker, bonds)
    U = [np.diag(t) @ U @ np.diag(w) for U, t, w in zip(x.tucker_cores, tucker, modes, strict=True)]
    G = [np.einsum("akb,b->akb", G, b) for G, b in zip(x.tt_cores, bonds[1:], strict=True)]
    assert_trees_close(weighted.to_dense(), bonds[0][0] * dense_t3(tuple(U), tuple(G)), 1e-12)
    norm = np.sqrt(np.einsum("abc,a,c->", np.asarray(x.to_dense()) ** 2, modes[0] ** 2, modes[2] ** 2))
    assert_trees_close(x.scale_edges([modes[0], None, modes[2]]).norm(), norm, 1e-12)
