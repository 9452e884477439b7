"""Orthogonal cores, singular values, truncation and randomized sums, for the object and for stacks of it."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, stacked, tensor
from tests.structures import best_bound, unfolding


@pytest.mark.parametrize("mode", [0, 1, -1])
@pytest.mark.parametrize("tucker", [False, True])
def test_all_cores_but_one_are_orthogonal_and_that_one_has_the_norm(mode, tucker):
    x = tensor(tt_ranks=(2, 2, 2, 2))
    y = x.orthogonalize(mode, tucker)
    assert_trees_close(y.to_dense(), x.to_dense(), 1e-12)
    centre = (y.tucker_cores if tucker else y.tt_cores)[mode]
    assert_trees_close(jnp.linalg.norm(centre.ravel()), x.norm())
    for i, (U, G) in enumerate(zip(y.tucker_cores, y.tt_cores, strict=True)):
        if i != mode % 3:
            assert_trees_close(U @ U.T, jnp.eye(len(U)))
            gram = "akb,akc->bc" if i < mode % 3 else "akb,ckb->ac"
            assert_trees_close(jnp.einsum(gram, G, G), jnp.eye(G.shape[2 if i < mode % 3 else 0]))
        elif tucker:
            assert_trees_close(jnp.einsum("akb,alb->kl", G, G), jnp.eye(G.shape[1]))


def test_singular_values_are_those_of_the_unfoldings():
    x = tensor()
    array = x.to_dense()
    tucker, tt = x.singular_values()
    for i, values in enumerate(tucker):
        expected = np.linalg.svd(unfolding(array, [i]), compute_uv=False)
        assert_trees_close(values, expected[: len(values)], 1e-12)
    for i in (1, 2):
        expected = np.linalg.svd(unfolding(array, list(range(i))), compute_uv=False)
        assert_trees_close(tt[i], expected[: len(tt[i])], 1e-12)
    assert_trees_close(tt[0], x.norm()[None])
    both = stacked(2).singular_values()
    assert_trees_close(jax.tree.map(lambda leaf: leaf[0], both), (tucker, tt), 1e-12)


def test_numerical_ranks_are_those_of_the_tensor_and_the_dimension_counts_freedoms():
    x = tensor()
    assert (x + x).numerical_ranks() == x.minimal_ranks == (x + x).round(rtol=1e-9).minimal_ranks
    assert x.resize((3, 4, 4), (1, 3, 3, 1)).numerical_ranks() == x.minimal_ranks
    assert x.numerical_ranks(0.999) == ((1, 1, 1), (1, 1, 1, 1))
    assert stacked(2).numerical_ranks() == x.minimal_ranks
    # Parameters less an invertible matrix of each Tucker rank and of each inner bond.
    assert x.manifold_dimension == x.n_parameters - (4 + 9 + 4) - (4 + 4)
    with pytest.raises(TypeError, match="numerical_ranks chooses ranks"):
        jax.jit(lambda x: x.numerical_ranks())(x)


def test_rounding_is_within_its_bound_and_quasi_optimal():
    x, caps = tensor(), ((2, 2, 2), (1, 1, 2, 1))
    array = np.asarray(x.to_dense())
    error, bound = float(x.distance(x.round(*caps))), float(x.truncation_error(*caps))
    assert_trees_close(bound, best_bound(array, *caps), 1e-12)
    # The best tensor of these ranks errs at least as much as the worst single unfolding.
    discarded = [np.linalg.svd(unfolding(array, [i]), compute_uv=False)[caps[0][i] :] for i in range(3)]
    discarded += [np.linalg.svd(unfolding(array, list(range(i))), compute_uv=False)[caps[1][i] :] for i in (1, 2)]
    best_at_least = max(np.linalg.norm(values) for values in discarded)
    assert best_at_least * (1 - 1e-12) <= error <= bound * (1 + 1e-12)
    assert bound <= np.sqrt(2 * 3 - 1) * best_at_least * (1 + 1e-12)


def test_tolerances_are_relative_and_absolute():
    x = tensor()
    size = float(x.norm())
    for rtol, atol in ((0.3, None), (None, 0.4 * size)):
        rounded = x.round(rtol=rtol, atol=atol)
        assert float(rounded.distance(x)) <= (rtol or 0.0) * size + (atol or 0.0)
        assert rounded.n_parameters < x.n_parameters
    assert x.round((1, 3, 2), rtol=0.0).tucker_ranks[0] == 1


def test_caps_may_be_numpy_integers_and_are_kept_edge_by_edge():
    caps = np.array([1, 3, 2]), np.array([1, 1, 2, 1])
    rounded = tensor().round(cast(Any, caps[0]), cast(Any, caps[1]))
    assert (rounded.tucker_ranks, rounded.tt_ranks) == ((1, 2, 2), (1, 1, 2, 1))


def test_rounding_to_ranks_works_under_transformations():
    @jax.jit
    @jax.value_and_grad
    def loss(x):
        return jnp.sum(jnp.sin((x + x).round((2, 2, 2), TT_RANKS).to_dense()))

    direction, gradient = tensor(7), loss(tensor())[1]
    slope = sum(jnp.vdot(a, b) for a, b in zip(*map(jax.tree.leaves, (gradient, direction)), strict=True))
    ahead, behind = (jax.tree.map(lambda a, b, s=s: a + s * b, tensor(), direction) for s in (1e-5, -1e-5))
    np.testing.assert_allclose(float(slope), float(loss(ahead)[0] - loss(behind)[0]) / 2e-5, rtol=1e-6)


def test_a_sum_of_many_terms_is_rounded_in_one_pass():
    terms = [tensor(i) for i in range(3)]
    exact = sum(terms[1:], start=terms[0])
    assert_trees_close(t3k.round_sum(stacked(3), SHAPE, (1, 6, 6, 1)).to_dense(), exact.to_dense(), 1e-11)
    few = t3k.round_sum(terms, TUCKER_RANKS, TT_RANKS, jax.random.key(3), oversample=4)
    best = exact.round(TUCKER_RANKS, TT_RANKS)
    errors = [float(jnp.linalg.norm((z.to_dense() - exact.to_dense()).ravel())) for z in (few, best)]
    assert errors[0] < 1.1 * errors[1]


def test_terms_of_different_ranks_and_dtypes_are_summed():
    terms = [tensor(0), tensor(1, jnp.float32), tensor(2).round((1, 1, 1), (1, 1, 1, 1)), stacked(2, 5)]
    exact = terms[0].to_dense() + terms[1].to_dense().astype(float) + terms[2].to_dense() + terms[3].to_dense().sum(0)
    assert_trees_close(t3k.round_sum(terms, SHAPE, (1, 5, 7, 1)).to_dense(), exact, 1e-6)  # one is of float32


def test_dtypes_are_kept():
    x = tensor(dtype=jnp.bfloat16)
    outputs = [x.orthogonalize(1), x.singular_values(), x.round(rtol=0.1), t3k.round_sum([x, x], (2, 2, 2), TT_RANKS)]
    assert {leaf.dtype for leaf in jax.tree.leaves(outputs)} == {jnp.dtype(jnp.bfloat16)}


BAD: list[Any] = [
    (lambda: stacked(2).round(rtol=0.1), ValueError, "rtol or atol needs a single tensor"),
    (lambda: tensor().round(atol=-1.0), ValueError, "atol must be a finite number"),
    (lambda: tensor().orthogonalize(3), ValueError, r"mode must be in \[-3, 3\)"),
    (lambda: t3k.round_sum([], (1,), (1, 1)), ValueError, "terms must have at least one tensor"),
    (lambda: t3k.round_sum([tensor(), tensor()[:, 1:]], (1,) * 3, (1,) * 4), ValueError, r"terms\[1\] must have shape"),
    (lambda: t3k.round_sum([tensor()], (1,) * 3, (1,) * 4, oversample=0), ValueError, "oversample must be ints >= 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_ranks_are_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
