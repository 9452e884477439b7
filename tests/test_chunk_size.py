import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.api import chunk_size, problem_shape
from t3k.api.problem_shape import KINDS, OPERATIONS, ProblemShape
from t3k.kernels.probe_maps import probe_transpose

PROBLEM = ((20, 21, 22, 20), (6, 6, 6, 6), (1, 6, 6, 6, 1), 2, 2000)


def scratch(chunk):
    """What XLA reserves for the transpose that this problem compiles to."""
    shape, n, r, order, n_probes = PROBLEM
    problem = ProblemShape(shape, n, r, order, n_probes, 1, jnp.dtype("float64"))
    frame, _ = problem.cores()
    ww, _, zz = problem.rows(n_probes)

    def run(zz, ww, pp, frame):
        return probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=chunk)

    analysis: Any = jax.jit(run).lower(zz, ww, ww, frame).compile().memory_analysis()
    return analysis.temp_size_in_bytes


def test_a_budget_is_kept_and_used():
    budget = 4 * 2**20
    chunk = t3k.max_chunk_size_within(*PROBLEM, budget)
    assert 32 < chunk < PROBLEM[-1]
    assert 0.7 * budget < scratch(chunk) <= budget


def test_a_balanced_chunk_takes_no_more_than_what_is_resident():
    report = t3k.memory_report(*PROBLEM, chunk_size=t3k.estimate_chunk_size(*PROBLEM))
    assert report.scratch <= report.inputs + report.output
    assert report.total == report.inputs + report.output + report.scratch


def test_the_report_predicts_what_the_program_takes():
    report = t3k.memory_report(*PROBLEM, chunk_size=64)
    assert abs(report.scratch - scratch(64)) <= 0.1 * scratch(64)
    assert "scratch at chunk 64" in str(report)


def test_shards_tangents_and_points_scale_it():
    alone = t3k.memory_report(*PROBLEM, chunk_size=64)
    shared = t3k.memory_report(*PROBLEM, chunk_size=64, n_shards=2)
    stacked = t3k.memory_report(*PROBLEM, chunk_size=64, n_tangent=3, stack_shape=(2,))
    assert shared.inputs < 0.6 * alone.inputs
    assert stacked.scratch_per_probe == pytest.approx(6 * alone.scratch_per_probe, rel=0.01)


def test_auto_measures_nothing_where_little_is_at_stake(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("compiled a kernel to choose a chunk")

    monkeypatch.setattr(problem_shape, "scratch_bytes", refuse)
    problem = ProblemShape((10, 10), (2, 2), (1, 2, 1), 1, 1000, 1, jnp.dtype("float32"))
    assert chunk_size.auto_chunk(problem) == 1000
    assert chunk_size.auto_chunk(problem._replace(n_probes=10)) == 10
    assert chunk_size.auto_chunk(problem._replace(shape=(900, 10))) == chunk_size.LONG_MODE_ROWS
    assert chunk_size.auto_chunk(problem._replace(shape=(900, 10), kind="apply")) == 1000


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_operation_is_measured_and_fits_its_budget(kind, operation):
    shape, n, r, order, n_probes = PROBLEM
    budget = 300_000 if kind == "probe" else 150_000
    settings: Any = {"kind": kind, "operation": operation, "dtype": np.float32}
    chunk = t3k.max_chunk_size_within(shape, n, r, order, n_probes, budget, **settings)
    report = t3k.memory_report(shape, n, r, order, n_probes, chunk_size=chunk, **settings)
    assert 1 <= report.chunk_size <= chunk
    assert 0.3 * budget < report.scratch <= budget


def test_a_chunk_beyond_what_a_block_takes_is_measured_as_what_it_takes():
    """From here on, more rows cost no more scratch, so that a budget for one such block is a budget for all."""
    problem = ProblemShape((64,) * 3, (64,) * 3, (1, 64, 64, 1), 2, 4000, 1, jnp.dtype("float32"))
    most = problem.most_rows()
    assert most < 4000
    budget = problem_shape.measured(problem, "transpose", most)
    assert t3k.max_chunk_size_within(*problem[:5], budget + 2**20, dtype=np.float32) == 4000


def test_memory_bounds_what_auto_takes():
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), *PROBLEM[:3])
    ww = tuple(jnp.ones((2000, N)) for N in PROBLEM[0])
    zz = tuple(jnp.ones((3, 2000, N)) for N in PROBLEM[0])

    def back(zz: Any, ww: Any, frame: Any) -> Any:
        return t3k.tv_probe_derivatives_transpose(zz, ww, ww, frame, 2, True, memory="1MiB")

    analysis: Any = jax.jit(back).lower(zz, ww, x.frame()).compile().memory_analysis()
    assert 2**18 < analysis.temp_size_in_bytes <= 2**20


def test_auto_works_under_jit():
    frame = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1)).frame()
    ww = (np.ones((3, 4)), np.ones((3, 5)))
    zz = (jnp.ones((1, 3, 4)), jnp.ones((1, 3, 5)))
    jax.jit(lambda f: t3k.tv_probe_derivatives_transpose(zz, ww, None, f, 0, True, chunk_size="auto"))(frame)


def test_impossible_budgets_and_bad_shapes_are_refused():
    with pytest.raises(ValueError, match="target_bytes must be at least .* the scratch of one probe"):
        t3k.max_chunk_size_within(*PROBLEM, 100)
    with pytest.raises(ValueError, match="kind must be one of 'probe', 'apply', 'entries'; got 'probes'"):
        t3k.estimate_chunk_size(*PROBLEM, kind="probes")
    frame, zz = t3k.TuckerTensorTrain.zeros((4, 5), (1, 1), (1, 1, 1)).frame(), (np.ones((1, 3, 4)), np.ones((1, 3, 5)))
    back = functools.partial(t3k.tv_probe_derivatives_transpose, zz, (zz[0][0], zz[1][0]), None, frame, 0)
    with pytest.raises(ValueError, match='memory is a bound for chunk_size="auto" to keep; got chunk_size=5'):
        back(chunk_size=5, memory="1GB")
    with pytest.raises(TypeError, match="memory must be a positive number of bytes or a string"):
        back(memory=True)
    with pytest.raises(ValueError, match="memory must be at least .* the scratch of one probe at a time; got 10"):
        back(memory=10)
    with pytest.raises(ValueError, match="tt_ranks must have 5 entries"):
        t3k.estimate_chunk_size((20, 21, 22, 20), (6, 6, 6, 6), (1, 6, 6, 1), 2, 2000)
    with pytest.raises(ValueError, match="n_probes must be ints >= 1"):
        t3k.estimate_chunk_size((20, 21), (6, 6), (1, 6, 1), 2, 0)
