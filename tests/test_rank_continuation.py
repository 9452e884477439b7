"""Growing ranks: the rule, the room that changes nothing, and the path from data to a rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.api import compiled
from t3k.kernels.continuation import next_ranks
from t3k.kernels.t3 import ranks_of
from tests.fit_problems import SHAPE, data_of, error, measure, randn, sample_of, truth

MODES = (np.array([1, 1e-3]), np.array([1, 0.5]), np.array([1, 0.5]))
BONDS = (np.ones(1), *[np.array([1, 0.5])] * 2, np.ones(1))


def test_well_conditioned_edges_grow_and_useless_ranks_do_not():
    def following(modes, bonds, most):
        return next_ranks((4, 5, 6), modes, bonds, ((most,) * 3, (1, most, most, 1)))

    assert following([np.ones(1)] * 3, [np.ones(1)] * 4, 9) == ((2, 2, 2), (1, 2, 2, 1))
    # A badly conditioned mode stays as it is, and the others grow as far as it lets them.
    assert following(MODES, BONDS, 9) == ((2, 3, 3), (1, 2, 3, 1))
    assert following(MODES, BONDS, 2) == ((2, 2, 2), (1, 2, 2, 1))
    dead = [np.array([1.0, 0.0])] * 3
    assert following(dead, (np.ones(1), *dead[:2], np.ones(1)), 9) == ((2, 2, 2), (1, 2, 2, 1))


def test_room_leaves_the_tensor_as_it_is():
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5, 6), (2, 1, 2), (1, 2, 2, 1))
    roomy = compiled.with_room(jax.random.key(1), x.cores, (3, 3, 3), (1, 3, 3, 1))
    assert ranks_of(roomy)[1:] == ((3, 3, 3), (1, 3, 3, 1))
    np.testing.assert_allclose(t3k.TuckerTensorTrain(*roomy).to_dense(), x.to_dense(), atol=1e-12)


def test_the_rank_of_exact_data_is_found():
    kind = "apply"
    x, path = t3k.fit(kind, sample_of(kind), data_of(kind), SHAPE)
    assert [stage.tucker_ranks for stage in path.stages] == [(1, 1), (2, 2)]
    assert error(x) < 1e-7
    assert "fitted to the tolerance" in path.message
    assert path.stages[1].error < 1e-7 < path.stages[0].error
    assert str(path).splitlines()[2].startswith("* (2, 2)")


def test_noise_is_not_fitted_where_there_is_validation():
    kind, rng = "apply", np.random.default_rng(0)
    held_out = sample_of(kind, 60, 5)
    noisy = data_of(kind) + 0.02 * rng.standard_normal(60)
    x, path = t3k.fit(kind, sample_of(kind), noisy, SHAPE, validation=(held_out, truth().apply(held_out)), tolerance=0)
    assert path.message == "The validation error no longer fell."
    assert path.chosen == 1
    assert x.tucker_ranks == (2, 2)
    errors = [stage.validation_error or np.inf for stage in path.stages]
    assert errors[1] == min(errors)


def test_a_path_ends_where_nothing_may_grow():
    kind = "apply"
    x, path = t3k.fit(kind, sample_of(kind), data_of(kind), SHAPE, max_tucker_ranks=1, max_tt_ranks=1)
    assert (x.tucker_ranks, path.message) == ((1, 1), "No rank may grow any further.")
    few = sample_of(kind, 12)
    _, path = t3k.fit(kind, few, truth().apply(few), SHAPE)
    assert "parameters for 12 equations" in path.message


def test_bad_input_is_refused_in_words():
    kind = "apply"
    with pytest.raises(ValueError, match="max_tucker_ranks must have 2 entries"):
        t3k.fit(kind, sample_of(kind), data_of(kind), SHAPE, max_tucker_ranks=(1, 2, 3))
    with pytest.raises(ValueError, match="for each of the 3 modes"):
        t3k.fit(kind, sample_of(kind), data_of(kind), (4, 5, 6))


def test_the_error_table_is_that_of_each_mode_and_order():
    kind = "probe_derivatives"
    x = randn(4)
    table = t3k.relative_errors(kind, sample_of(kind), data_of(kind), x, order=1)
    found = measure(kind, x, sample_of(kind))
    for i, (z, data) in enumerate(zip(found, data_of(kind), strict=True)):
        for t in range(2):
            expected = jnp.linalg.norm(z[t] - data[t]) / jnp.linalg.norm(data[t])
            assert table.errors[i, t] == pytest.approx(float(expected))
    assert "order 1" in str(table)
    assert str(table).count("mode") == 2
    scalars = t3k.relative_errors("apply", sample_of("apply"), data_of("apply"), 2.0 * truth())
    assert scalars.errors.tolist() == pytest.approx([1.0])
    assert scalars.total == pytest.approx(1.0)


def test_modes_that_share_a_core_grow_together():
    """A symmetric tensor of rank 2, whose three modes share one Tucker core."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, 5))
    ww = tuple(rng.standard_normal((80, 5)) for _ in range(3))
    data = sum(np.prod([w @ v for w in ww], axis=0) for v in vectors)
    shared = t3k.SharedManifold([(0, 1, 2)])
    x, path = t3k.fit("apply", ww, data, (5, 5, 5), geometry=shared)
    assert path.stages[-1].tucker_ranks == (2, 2, 2)
    assert path.stages[-1].error < 1e-6
    assert all((x.tucker_cores[0] == U).all() for U in x.tucker_cores)
