"""What is said of measurements before a fit, and what is drawn of it afterwards."""

import numpy as np
import pytest

import t3k
from t3k.api.error_table import ErrorTable
from t3k.api.fit_stats import FitStats
from tests.fit_problems import DERIVATIVES, KINDS, SHAPE, TT_RANKS, TUCKER_RANKS, data_of, order_of, sample_of, truth

RANKS = TUCKER_RANKS, TT_RANKS


@pytest.mark.parametrize("kind", [*KINDS, *DERIVATIVES])
def test_good_measurements_are_found_good(kind):
    found = t3k.diagnose(kind, sample_of(kind), data_of(kind), SHAPE, *RANKS, order=order_of(kind))
    assert found.parameters == 14
    assert found.not_finite == ()
    if not kind.startswith("entries"):
        assert found.duplicates == 0
        assert str(found).startswith("Nothing speaks against a fit.")
    rms = [float(np.sqrt(np.mean(np.square(z)))) for z in ([data_of(kind)] if "probe" not in kind else data_of(kind))]
    np.testing.assert_allclose(np.sqrt((found.scales**2).mean(axis=1)), rms, rtol=1e-9)


def test_bad_measurements_are_described():
    ww = tuple(np.concatenate([x[:5], x[:2]]) for x in sample_of("apply"))
    data = np.array([1e-3, 2e-3, np.nan, 1e-3, np.inf, 1e-3, 1e-3])
    found = t3k.diagnose("apply", ww, data, SHAPE, *RANKS)
    assert (found.equations, found.duplicates) == (5, 2)
    assert found.not_finite == ("data has 2 numbers that are not finite, the first at (2,)",)
    text = str(found)
    assert "5 equations for 14 free parameters" in text
    assert "2 samples repeat earlier ones" in text
    assert "leave it out by sample_weight" in text


def test_scales_that_differ_are_spoken_of():
    kind = "probe_derivatives"
    data = tuple(z * np.array([1.0, 1e5]).reshape(2, 1, 1) for z in data_of(kind))
    found = t3k.diagnose(kind, sample_of(kind), data, SHAPE, *RANKS, order=1)
    assert found.scales.shape == (2, 2)
    assert any("differ in scale" in warning for warning in found.warnings)


@pytest.mark.parametrize("kind", ["apply", "probe_derivatives"])
def test_a_start_forecasts_conditioning_memory_and_time(kind):
    """The measurements determine this tensor well, whose tangent space has 14 dimensions."""
    found = t3k.diagnose(kind, sample_of(kind), data_of(kind), SHAPE, *RANKS, order=order_of(kind), x0=truth())
    forecast = found.forecast
    assert forecast is not None
    assert forecast.memory is not None
    assert 1 < forecast.condition < 1e3
    assert forecast.memory.scratch > 0
    assert forecast.compile_seconds > forecast.product_seconds > 0
    assert found.warnings == ()
    assert "condition number of the first Gauss-Newton system" in str(found)


def test_directions_that_nothing_measures_are_warned_of():
    index = tuple(np.repeat(i, 8) for i in ([0, 1, 2], [0, 1, 2]))
    found = t3k.diagnose("entries", index, np.ones(24), SHAPE, *RANKS, x0=truth())
    assert any("hardly determine some directions" in warning for warning in found.warnings)
    bad = t3k.diagnose("entries", index, np.full(24, np.nan), SHAPE, *RANKS, x0=truth())
    assert bad.forecast is None


def test_histories_and_errors_are_drawn():
    pytest.importorskip("matplotlib")
    stats = FitStats(losses=[1.0, 0.1], steps=[0, 5], validation_losses=[1.0, 0.2])
    assert len(t3k.plot_history(stats).lines) == 2
    ax = t3k.plot_errors(ErrorTable(np.array([0.1, 0.2]), 0.2))
    assert len(ax.patches) == 2
    assert t3k.plot_history(stats, ax) is ax
    with pytest.raises(TypeError, match="table must have modes and orders"):
        t3k.plot_errors(ErrorTable({"own": 0.1}, 0.1))
