"""Laws of the streamed maps for samples with no mode left free: applies and entries share every test."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import sweeps
from t3k.kernels.dense import dense_apply_derivatives, dense_t3, dense_tangent
from t3k.kernels.sample_maps import (
    Samples,
    point_samples,
    sample_gauss_newton,
    sample_jacobian,
    sample_misfit,
    sample_transpose,
)
from t3k.kernels.types import Frame
from tests.trains import (
    assert_trees_close,
    assert_trees_equal,
    dot,
    draw_frame,
    draw_variations,
    equal_cores,
    normal,
    quick_jit,
    small_integers,
)

D, ORDER, N_SAMPLES = 3, 2, 8
KINDS = ["apply", "entries"]


class Problem(NamedTuple):
    at: Any
    pp: Any
    zz: Any
    variations: Any
    frame: Any
    weights: Any
    rows: Any


def draw_problem(kind, draw, frame, order=ORDER, n_samples=N_SAMPLES) -> Problem:
    sizes = [U.shape[1] for U in frame.up]
    rng = np.random.default_rng(3)
    index = tuple(rng.integers(0, size, n_samples).astype(np.int32) for size in sizes)
    return Problem(
        at=index if kind == "entries" else tuple(draw(n_samples, size) for size in sizes),
        pp=tuple(draw(n_samples, size) for size in sizes),
        zz=draw(order + 1, n_samples),
        variations=draw_variations(draw, frame),
        frame=frame,
        weights=np.abs(draw(order + 1)),
        rows=np.abs(draw(n_samples)),
    )


def all_maps(problem: Problem, order: int, chunk_size: int | None) -> dict[str, Any]:
    at, pp, zz, variations, frame, weights, rows = problem
    samples = Samples(at, pp, weights, rows)
    return {
        "jacobian": sample_jacobian(at, pp, variations, frame, order, chunk_size=chunk_size),
        "point": point_samples(at, pp, frame, order, chunk_size=chunk_size),
        "summed": sample_transpose(zz, at, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size),
        "kept": sample_transpose(zz, at, pp, frame, order, sum_over_probes=False, chunk_size=chunk_size),
        "gauss_newton": sample_gauss_newton(samples, variations, frame, order, chunk_size=chunk_size),
        "misfit": sample_misfit(samples, zz, frame, order, chunk_size=chunk_size),
    }


run_maps = quick_jit(all_maps, static_argnames=("order", "chunk_size"))


@functools.cache
def problem_of(kind, draw=normal) -> Problem:
    return draw_problem(kind, draw(0), draw_frame(draw(1), D, end=(2, 2)))


@functools.cache
def maps_of(kind, draw=normal) -> dict[str, Any]:
    return run_maps(problem_of(kind, draw), ORDER, None)


def vectors_of(problem: Problem) -> tuple[Any, ...]:
    """The vectors that indices stand for, which the kernels never form."""
    sizes = [U.shape[1] for U in problem.frame.up]
    return tuple(x if x.ndim == 2 else np.eye(N)[x] for x, N in zip(problem.at, sizes, strict=True))


@pytest.mark.parametrize(("kind", "chunk_size"), [("apply", 3), ("entries", 3), ("entries", 1)])
def test_chunked_equals_dense_bit_for_bit_on_small_integers(kind, chunk_size):
    chunked = run_maps(problem_of(kind, small_integers), ORDER, chunk_size)
    assert_trees_equal(chunked, maps_of(kind, small_integers))


@pytest.mark.parametrize("kind", KINDS)
def test_chunked_equals_dense_to_rounding_on_real_numbers(kind):
    assert_trees_close(run_maps(problem_of(kind), ORDER, 3), maps_of(kind), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_transpose_is_the_adjoint_of_the_jacobian(kind):
    problem, maps = problem_of(kind), maps_of(kind)
    expected = dot(problem.zz, maps["jacobian"])
    assert dot(maps["summed"], problem.variations) == pytest.approx(expected, rel=1e-12)
    assert_trees_close(jax.tree.map(lambda g: g.sum(0), maps["kept"]), maps["summed"])


@pytest.mark.parametrize("kind", KINDS)
def test_gauss_newton_and_misfit_are_made_of_the_jacobian_and_its_transpose(kind):
    problem, maps = problem_of(kind), maps_of(kind)
    weights = problem.weights[:, None] * problem.rows[None, :]
    product = run_maps(problem._replace(zz=weights * maps["jacobian"]), ORDER, None)["summed"]
    assert_trees_close(maps["gauss_newton"], product)
    residual = np.asarray(maps["point"]) - problem.zz
    value, gradient = maps["misfit"]
    assert float(value) == pytest.approx(dot(residual, weights * residual) / 2, rel=1e-13)
    assert_trees_close(gradient, run_maps(problem._replace(zz=weights * residual), ORDER, None)["summed"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_are_those_of_the_dense_tensors(kind):
    problem, maps = problem_of(kind), maps_of(kind)

    @quick_jit
    def dense(ww, pp, v, frame):
        tensors = dense_tangent(frame, v), dense_t3(frame.up, frame.left)
        return tuple(dense_apply_derivatives(tensor, ww, pp, ORDER) for tensor in tensors)

    found = maps["jacobian"], maps["point"]
    assert_trees_close(found, dense(vectors_of(problem), problem.pp, problem.variations, problem.frame))


def test_entries_are_applies_to_unit_vectors_at_orders_beyond_the_modes():
    order = 4
    problem = draw_problem("entries", normal(0), draw_frame(normal(1), 2), order, 3)
    applied = run_maps(problem._replace(at=vectors_of(problem)), order, 2)
    assert_trees_close(run_maps(problem, order, 2), applied)
    assert bool((applied["jacobian"][3:] == 0).all()), "a sample of two modes has degree 2"


@pytest.mark.parametrize("kind", KINDS)
def test_order_zero_does_without_directions(kind):
    problem = problem_of(kind)
    plain = run_maps(problem._replace(pp=None, zz=problem.zz[:1], weights=problem.weights[:1]), 0, None)
    assert_trees_close(plain["jacobian"], maps_of(kind)["jacobian"][:1])
    zeroed = problem._replace(zz=np.concatenate([problem.zz[:1], 0 * problem.zz[1:]]))
    assert_trees_close(plain["kept"], run_maps(zeroed, ORDER, None)["kept"])


def test_one_mode_and_no_samples_work():
    one = draw_problem("entries", normal(0), draw_frame(normal(1), 1), 1, 4)
    ones = run_maps(one, 1, 3)
    assert_trees_close(ones["jacobian"], run_maps(one._replace(at=vectors_of(one)), 1, 3)["jacobian"])
    none = run_maps(draw_problem("apply", normal(0), draw_frame(normal(1), 2), 1, 0), 1, 3)
    assert_trees_equal(none, jax.tree.map(jnp.zeros_like, none))
    assert [g.shape for g in none["kept"].tt] == [(0, 1, 2, 3), (0, 2, 3, 1)]


def test_scanned_runs_of_equal_cores_equal_unrolled_ones(monkeypatch):
    problem = draw_problem("entries", normal(9), equal_cores(normal(9), 10), 1, 2)

    def maps(problem):
        at, pp, zz, v, frame, *_ = problem
        return (
            sample_jacobian(at, pp, v, frame, 1, chunk_size=None),
            sample_transpose(zz, at, pp, frame, 1, sum_over_probes=True, chunk_size=None),
        )

    scanned = quick_jit(maps)(problem)
    monkeypatch.setattr(sweeps, "MIN_SCAN", 10)
    assert_trees_close(scanned, quick_jit(lambda problem: maps(problem))(problem))


def test_trains_that_come_stacked_go_stacked():
    draw = normal(6)
    frame = Frame(*(tuple(draw(2, *shape) for _ in range(D)) for shape in [(3,), (2, 2), (2, 2), (2, 2)]))
    at, pp, zz, *_ = draw_problem("entries", draw, frame, 1, 3)

    @quick_jit
    def gradient(at, pp, frame):
        return tuple(sample_transpose(zz, at, pp, frame, 1, sum_over_probes=True, chunk_size=2))

    trains: Any = (at, pp, *frame)
    stacked: Any = [np.stack(train) for train in trains]
    found = gradient(*stacked[:2], Frame(*stacked[2:]))
    expected: Any = gradient(at, pp, frame)
    assert_trees_close(found, tuple(np.stack(train) for train in expected))


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_are_kept(kind):
    abstract = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype if x.dtype == np.int32 else jnp.bfloat16), problem_of(kind)
    )
    maps = jax.eval_shape(lambda problem: all_maps(problem, ORDER, 3), abstract)
    assert {str(x.dtype) for x in jax.tree.leaves(maps)} == {"bfloat16"}


def test_a_large_mode_costs_no_unit_vectors():
    """Entries of a mode of a million: the scratch is that of a few columns for each entry, not of 10^6 numbers."""
    frame = draw_frame(normal(1), 2)
    size, n = 10**6, 64
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, jnp.float32), frame)
    abstract = abstract._replace(up=(jax.ShapeDtypeStruct((frame.up[0].shape[0], size), jnp.float32), abstract.up[1]))
    index = (jax.ShapeDtypeStruct((n,), jnp.int32),) * 2
    zz = jax.ShapeDtypeStruct((1, n), jnp.float32)
    program = jax.jit(lambda z, at, f: sample_transpose(z, at, None, f, 0, sum_over_probes=True, chunk_size=8))
    analysis: Any = program.lower(zz, index, abstract).compile().memory_analysis()
    scratch = analysis.temp_size_in_bytes
    assert scratch < 3 * 4 * frame.down[0].shape[1] * size, scratch


WRONG = {
    "one mode less": lambda p: p._replace(at=p.at[:-1]),
    "directions of another size": lambda p: p._replace(pp=tuple(x[:, 1:] for x in p.pp)),
    "fewer directions": lambda p: p._replace(pp=tuple(x[1:] for x in p.pp)),
    "residuals of another order": lambda p: p._replace(zz=p.zz[1:]),
    "weights of another order": lambda p: p._replace(weights=p.weights[1:]),
    "rows of fewer samples": lambda p: p._replace(rows=p.rows[1:]),
    "no directions": lambda p: p._replace(pp=None),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_shape_fails_while_tracing_in_the_letters(kind, wrong):
    with pytest.raises(AssertionError, match="has axes|modes, expected|pp must be given"):
        jax.eval_shape(lambda problem: all_maps(problem, ORDER, 2), WRONG[wrong](problem_of(kind)))
