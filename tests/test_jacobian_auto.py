"""How chunks are chosen: by rule, by measurement, within a budget; and what `chunk_report` says of it."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import auto_chunk
from t3k.kernels.auto_chunk import auto_chunk_size, choose_chunk
from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacobian, chunked_jacrev
from t3k.kernels.jacobian_consumers import chunked_jtj
from t3k.kernels.jacobian_report import chunk_report

MB = 10**6


def layer(x, weight):
    return jnp.tanh(weight @ jnp.sin(x))


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float64)


def scratch(fun, *shapes):
    analysis: Any = jax.jit(fun).lower(*shapes).compile().memory_analysis()
    return analysis.temp_size_in_bytes


LAYER = shape(1000), shape(1000, 1000)


@pytest.mark.parametrize(("dim", "expected"), [(0, 1), (1, 1), (2, 2), (100, 10), (101, 11)])
def test_without_a_budget_the_rule_is_the_square_root(dim, expected, monkeypatch):
    monkeypatch.setattr(auto_chunk, "device_bytes", lambda: None)
    assert auto_chunk_size(dim) == expected


def test_with_a_budget_the_rule_takes_the_largest_that_fits(monkeypatch):
    assert auto_chunk_size(1000, 500, max_memory_bytes=800_000) == 100
    assert auto_chunk_size(1000, 500, max_memory_bytes=800_000, memory_fraction=1.0, element_bytes=4) == 400
    assert auto_chunk_size(10, 500, max_memory_bytes=10**9) == 10
    assert auto_chunk_size(10, 500, max_memory_bytes=1) == 1
    monkeypatch.setattr(auto_chunk, "device_bytes", lambda: 160_000)
    assert auto_chunk_size(1000, 500) == 20


@pytest.mark.parametrize(
    "bad",
    [{"dim": -1}, {"output_size": -1}, {"element_bytes": 0}, {"memory_fraction": 0}, {"max_memory_bytes": 0}],
)
def test_sizes_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        auto_chunk_size(**{"dim": 10, **bad})


def test_small_problems_are_dense_without_measuring():
    def measure(chunk):
        raise AssertionError

    assert choose_chunk(measure, 100, resident=0, per_row=1000).chunk is None


def test_dense_is_taken_where_it_needs_hardly_more():
    assert choose_chunk(lambda chunk: 10 * MB, 1000, resident=0, per_row=MB).chunk is None


def test_chunks_stay_within_what_must_be_there_anyway():
    choice = choose_chunk(lambda chunk: MB * (chunk or 1000), 1000, resident=6 * MB, per_row=MB)
    assert choice.chunk is not None
    assert MB * choice.chunk <= 6 * MB
    assert choice.dense == 1000 * MB


def test_a_budget_is_kept_even_where_the_line_is_none():
    choice = choose_chunk(lambda chunk: MB * (chunk or 10**4) ** 2, 1000, resident=0, per_row=MB, budget=10 * MB)
    assert choice.chunk is not None
    assert choice.chunk**2 * MB <= 10 * MB


def test_what_cannot_be_measured_is_chosen_by_rule():
    def measure(chunk):
        raise RuntimeError

    choice = choose_chunk(measure, 100, resident=0, per_row=10 * MB, budget=100 * MB)
    assert choice.chunk == 5
    assert "RuntimeError" in choice.reason


def test_dense_where_nothing_is_large_and_chunked_where_something_is():
    small = chunk_report(layer, shape(100), shape(100, 100))
    assert small.chunk_size is None
    large = chunk_report(layer, *LAYER)
    assert large.chunk_size is not None
    assert large.dense_scratch_bytes is not None
    assert large.scratch_bytes < large.dense_scratch_bytes / 3


@pytest.mark.parametrize("builder", [chunked_jacfwd, chunked_jacrev, chunked_jacobian])
def test_memory_is_a_bound_for_the_compiled_program(builder):
    assert scratch(builder(layer, memory="300kB"), *LAYER) <= 300_000


def test_a_budget_for_less_than_one_direction_is_refused_naming_its_bytes():
    with pytest.raises(ValueError, match=r"memory allows 100 bytes .* needs \d+"):
        chunk_report(layer, *LAYER, memory=100)


def test_auto_works_inside_jit_grad_and_vmap():
    def loss(build):
        return lambda x, w: jnp.sum(build(layer)(x, w) ** 2)

    x, w = jnp.linspace(0.0, 1.0, 400), jnp.ones((400, 400)) / 400

    def chunked(fun):
        return chunked_jacfwd(fun, memory="100kB")

    actual = jax.jit(jax.grad(loss(chunked)))(x, w)
    np.testing.assert_allclose(actual, jax.jit(jax.grad(loss(jax.jacfwd)))(x, w), rtol=1e-10)
    stacked = jax.vmap(chunked(layer), in_axes=(0, None))(jnp.stack([x, x]), w)
    np.testing.assert_allclose(stacked[1], chunked(layer)(x, w), rtol=1e-12)


def test_the_report_is_of_the_program_that_runs():
    report = chunk_report(chunked_jacfwd(layer, chunk_size=32), *LAYER)
    assert report.scratch_bytes == scratch(chunked_jacfwd(layer, chunk_size=32), *LAYER)
    assert (report.mode, report.chunk_size, report.shape, report.result_bytes) == ("fwd", 32, (1000, 1000), 8 * MB)
    assert "32 at a time" in str(report)


def test_the_report_takes_arrays_or_shapes_and_any_builder():
    x = jnp.ones(30)
    report = chunk_report(chunked_jtj(jnp.sin), x)
    assert report == chunk_report(chunked_jtj(jnp.sin), shape(30))
    assert report.result_bytes == 30 * 30 * 8
    assert chunk_report(jnp.sin, x, mode="rev", chunk_size=math.isqrt(30)).chunk_size == 5
    with pytest.raises(TypeError, match="real"):
        chunk_report(jnp.sin, jnp.arange(3), mode="fwd")
