"""Many fits under one compile."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.api import compiled
from tests.fit_problems import data_of, error, near, randn, sample_of, truth, zeros

KIND = "apply"


def stack(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def test_many_starts_share_one_compile_and_each_has_its_own_end():
    starts = stack([near(), zeros(), randn(3)])
    x, stats = t3k.fit_many(t3k.MANIFOLD, KIND, sample_of(KIND), data_of(KIND), starts, max_iterations=30)
    assert x.stack_shape == (3,)
    assert stats.statuses[:2] == ("converged", "converged")
    assert stats.losses.shape == (3, 31)
    best = jax.tree.map(lambda leaf: leaf[stats.best], x)
    assert error(best) < 1e-8
    traced = compiled.optimize_many._cache_size()
    t3k.fit_many(t3k.MANIFOLD, KIND, sample_of(KIND), 2 * data_of(KIND), starts, max_iterations=30)
    assert compiled.optimize_many._cache_size() == traced


def test_each_fit_is_that_of_newton_cg():
    data = stack([data_of(KIND), 2 * data_of(KIND)])
    x, stats = t3k.fit_many(t3k.MANIFOLD, KIND, sample_of(KIND), data, near(), in_axes=(None, 0, None))
    for i in range(2):
        alone, alone_stats = t3k.newton_cg(t3k.MANIFOLD, KIND, sample_of(KIND), data[i], near())
        assert error(jax.tree.map(lambda leaf, i=i: leaf[i], x), alone) < 1e-8
        assert stats.statuses[i] == alone_stats.status
        np.testing.assert_allclose(stats.losses[i, 0], alone_stats.losses[0])
    assert error(jax.tree.map(lambda leaf: leaf[1], x), 2.0 * truth()) < 1e-8


@pytest.mark.parametrize("fits_at_once", [1, 2, 9])
def test_lanes_change_no_fit(fits_at_once):
    data = stack([factor * data_of(KIND) for factor in (1, 2, 3, 4, 5)])
    starts = stack([near(), zeros(), randn(3), randn(4), near()])
    many = partial(
        t3k.fit_many, t3k.MANIFOLD, KIND, sample_of(KIND), data, starts, in_axes=(None, 0, 0), max_iterations=9
    )
    x, stats = many(fits_at_once=fits_at_once)
    expected, expected_stats = many()
    assert len(set(expected_stats.iterations.tolist())) > 1, "fits must end at different times"
    assert stats.statuses == expected_stats.statuses
    np.testing.assert_array_equal(stats.iterations, expected_stats.iterations)
    np.testing.assert_allclose(stats.losses, expected_stats.losses, rtol=1e-6, atol=1e-16)
    for i in range(5):
        one, other = (jax.tree.map(lambda leaf, i=i: leaf[i], tree) for tree in (x, expected))
        assert error(one, other) < 1e-6


def test_fits_that_rounding_ends_have_converged():
    data = stack([data_of(KIND), 2 * data_of(KIND)])
    starts = stack([truth(), near()])
    _, stats = t3k.fit_many(
        t3k.MANIFOLD, KIND, sample_of(KIND), data, starts, in_axes=(None, 0, 0), gradient_tolerance=0.0
    )
    assert stats.statuses == ("converged", "converged")


REFUSALS = [
    (lambda: fit(in_axes=(None, None, None)), "in_axes must be 0 or None"),
    (lambda: fit(in_axes=(0, 1)), "in_axes must be 0 or None"),
    (lambda: fit(in_axes=(None, 0, 0)), "must have the same leading axis of fits"),
    (lambda: fit(data=data_of(KIND).at[3].set(jnp.nan)), "data must be finite"),
    (lambda: fit(max_iterations=0), "max_iterations must be ints >= 1"),
    (lambda: fit(fits_at_once=0), "fits_at_once must be ints >= 1"),
]


def fit(data=None, **settings):
    data = data_of(KIND) if data is None else data
    return t3k.fit_many(t3k.MANIFOLD, KIND, sample_of(KIND), data, stack([near(), zeros()]), **settings)


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_bad_input_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
