import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.api import compiled
from t3k.kernels import newton
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, tensor, vectors

N_PROBES = (60,)


def problem(order, seed=0, dtype=None):
    x = tensor(seed, dtype)
    ww, pp = vectors(N_PROBES, seed), vectors(N_PROBES, seed + 10)
    return x, (ww, pp), x.probe_derivatives(ww, pp, order)


def zeros(dtype=None):
    return t3k.TuckerTensorTrain.zeros(SHAPE, TUCKER_RANKS, TT_RANKS, dtype)


def fit(sample, data, x0=None, geometry=t3k.MANIFOLD, **options):
    x0 = zeros() if x0 is None else x0
    return t3k.newton_cg(geometry, "probe_derivatives", sample, data, x0, order=1, **options)


def error(x, expected):
    return float((x - expected).norm() / expected.norm())


def test_it_recovers_a_tensor_from_zeros_and_a_second_fit_compiles_nothing():
    x, sample, data = problem(1)
    fitted, stats = fit(sample, data)
    assert stats.status == "converged"
    assert error(fitted, x) < 1e-8
    assert stats.losses[-1] == min(stats.losses)
    assert len(stats.losses) == stats.iterations + 1 == len(stats.gradient_norms) + 1
    step = compiled.optimizer_step(newton.update, True)
    traced = step._cache_size()
    other, sample, data = problem(1, seed=1)
    refitted, stats = fit(sample, data)
    assert error(refitted, other) < 1e-8
    assert traced > 0
    assert step._cache_size() == traced


def test_plain_probes_and_corewise_geometry_recover_it_too():
    x, (ww, _), _ = problem(0)
    start = x + 0.1 * t3k.TuckerTensorTrain.randn(jax.random.key(5), SHAPE, (1, 1, 1), (1, 1, 1, 1))
    start = start.round(TUCKER_RANKS, TT_RANKS)
    fitted, stats = t3k.newton_cg(t3k.COREWISE, "probe", ww, x.probe(ww), start)
    assert stats.status == "converged", str(stats)
    assert error(fitted, x) < 1e-8


def test_chunks_and_kind_objects_change_nothing():
    x, sample, data = problem(1)
    kind = t3k.probe_derivatives_kind(1, chunk_size=7)
    fitted, stats = t3k.newton_cg(t3k.MANIFOLD, kind, sample, data, zeros())
    assert error(fitted, x) < 1e-8
    assert stats.chunk_size == 7
    assert stats.scratch_bytes is not None
    assert stats.scratch_bytes > 0
    assert hash(kind) == hash(t3k.probe_derivatives_kind(1, chunk_size=7))


def test_weights_multiply_residuals():
    """A weight of zero takes a spoilt order out of the fit."""
    x, sample, data = problem(1)
    spoilt = tuple(z.at[1].add(1.0) for z in data)
    fitted, stats = fit(sample, spoilt, weight=[[1.0, 0.0]] * 3)
    assert error(fitted, x) < 1e-8, str(stats)


def test_over_ranked_starts_fit():
    x, sample, data = problem(1)
    start = t3k.TuckerTensorTrain.zeros(SHAPE, (3, 9, 3), (1, 9, 3, 1))
    fitted, stats = fit(sample, data, start)
    assert stats.losses[-1] < 1e-10 * stats.losses[0], str(stats)
    assert error(fitted, x) < 1e-4


def test_float32_stays_float32():
    x, sample, data = problem(1, dtype=jnp.float32)
    fitted, stats = fit(sample, data, zeros(jnp.float32))
    assert fitted.dtype == jnp.float32
    assert error(fitted, x) < 1e-4, str(stats)


def test_the_callback_sees_every_iteration_and_stops_the_fit():
    _, sample, data = problem(1)
    seen = []

    def callback(info):
        seen.append(info)
        return info.iteration == 2

    fitted, stats = fit(sample, data, callback=callback)
    assert (stats.status, stats.iterations, [info.iteration for info in seen]) == ("stopped", 2, [1, 2])
    assert_trees_close(fitted, seen[-1].x, 0)
    assert seen[-1].loss == stats.losses[-1]


def test_too_few_iterations_are_not_called_converged(capsys):
    _, sample, data = problem(1)
    _, stats = fit(sample, data, max_iterations=2, verbose=True)
    assert stats.status == "max_iterations"
    assert capsys.readouterr().out.count("\n") == 4


def test_a_loss_that_hardly_falls_has_converged():
    """Noisy data leave a loss behind, which the gradient's norm alone would take long to notice."""
    x, sample, data = problem(1)
    noise = np.random.default_rng(0)
    noisy = tuple(z + 0.01 * noise.standard_normal(z.shape) for z in data)
    fitted, stats = fit(sample, noisy, loss_tolerance=1e-3)
    assert (stats.status, "lowered the loss" in stats.message) == ("converged", True)
    assert stats.losses[-2] * (1 - 1e-3) < stats.losses[-1] <= stats.losses[-2]
    assert error(fitted, x) < 0.02


def test_a_start_at_a_saddle_says_so():
    _, sample, data = problem(1)
    x, stats = fit(sample, data, geometry=t3k.COREWISE)
    assert stats.status == "line_search_failed"
    assert "saddle" in stats.message
    assert float(x.norm()) == 0


def test_numbers_that_overflow_end_the_fit_with_the_last_finite_point():
    _, sample, data = problem(1, dtype=jnp.float32)
    huge = tuple(jnp.float32(1e25) * z for z in data)
    x, stats = fit(sample, huge, zeros(jnp.float32))
    assert stats.status == "non_finite"
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(x))


def refusals():
    _, (ww, pp), data = problem(1)
    spoilt = tuple(w.copy() for w in ww)
    spoilt[1][17, 2] = np.nan
    yield (
        lambda: fit((spoilt, pp), data),
        ValueError,
        r"sample: ww must be finite; mode 1 has nan at probe \(17,\), entry 2",
    )
    yield (
        lambda: fit((ww, pp), tuple(z.at[0, 3, 1].set(jnp.inf) for z in data)),
        ValueError,
        "data must be finite; mode 0",
    )
    yield lambda: fit((ww, pp), data[:2]), ValueError, "data must have one array for each of the 3 modes"
    yield lambda: fit((ww, pp), tuple(z[:1] for z in data)), ValueError, r"data\[0\] must have shape \(2, 60, 5\)"
    yield lambda: fit(ww, data), TypeError, r"sample must be \(ww, pp\)"
    yield (
        lambda: fit((ww, pp), data, weight=np.ones((4, 2))),
        ValueError,
        "weight must have a row for each of the 3 modes",
    )
    yield lambda: fit((ww, pp), data, geometry="manifold"), TypeError, "geometry must be t3k.MANIFOLD"
    yield lambda: fit((ww, pp), data, x0=np.ones(3)), TypeError, "x0 must be a TuckerTensorTrain"
    yield lambda: fit((ww, pp), data, chunk_size=-3), ValueError, "chunk_size must be an int >= 1"
    yield lambda: fit((ww, pp), data, max_iterations=0), ValueError, "max_iterations must be ints >= 1"
    yield lambda: fit((ww, pp), data, loss_tolerance=-1), ValueError, "loss_tolerance must be a finite number >= 0"
    yield lambda: fit((ww, pp), data, verbose="loud"), ValueError, "verbose must be False, True"
    yield (
        lambda: t3k.newton_cg(t3k.MANIFOLD, "probe_derivatives", (ww, pp), data, zeros()),
        ValueError,
        "order must be given",
    )
    yield lambda: t3k.newton_cg(t3k.MANIFOLD, "prob", ww, data, zeros()), ValueError, "kind must be"
    yield (
        lambda: t3k.newton_cg(t3k.MANIFOLD, "probe", ww, data, zeros(), order=1),
        ValueError,
        "order must be None or 0",
    )
    kind = t3k.probe_derivatives_kind(1)
    yield (
        lambda: t3k.newton_cg(t3k.MANIFOLD, kind, ww, data, zeros(), order=2),
        ValueError,
        "order must be that of the kind",
    )


def test_bad_input_is_refused_in_words():
    for call, kind, message in refusals():
        with pytest.raises(kind, match=message):
            call()
