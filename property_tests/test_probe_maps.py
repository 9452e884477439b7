"""Properties of the streamed maps over trains, orders, chunks and numbers of probes."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose
from tests.trains import (
    Problem,
    assert_trees_close,
    assert_trees_equal,
    dot,
    draw_frame,
    draw_problem,
    normal,
    quick_jit,
    small_integers,
)

jacobian = quick_jit(probe_jacobian, static_argnames=("order", "chunk_size"))
transpose = quick_jit(probe_transpose, static_argnames=("order", "chunk_size", "sum_over_probes"))
gauss_newton = quick_jit(gauss_newton_product, static_argnames=("order", "chunk_size"))

# (d, order, end bonds, probes, stretch): each is a compilation, so there are few; values come from the seed. Stretched
# modes are long enough for all probes to be projected at once.
structures = st.sampled_from([(1, 1, (2, 3), 3, 1), (2, 1, (1, 2), 3, 1), (3, 2, (1, 1), 3, 1), (2, 1, (2, 1), 5, 8)])
chunks = st.sampled_from([None, 2])
seeds = st.integers(0, 2**32 - 1)


def problem_of(draw, structure) -> Problem:
    d, order, end, n_probes, stretch = structure
    return draw_problem(draw, draw_frame(draw, d, end, stretch), order, n_probes)


@given(structures, chunks, st.booleans(), seeds)
def test_the_chunk_does_not_change_a_bit_of_the_transpose_of_small_integers(structure, chunk_size, summed, seed):
    ww, pp, zz, _, frame, *_ = problem_of(small_integers(seed), structure)
    args, order = (zz, ww, pp, frame), structure[1]
    chunked = transpose(*args, order=order, sum_over_probes=summed, chunk_size=chunk_size)
    assert_trees_equal(chunked, transpose(*args, order=order, sum_over_probes=summed, chunk_size=None))


@given(structures, chunks, seeds)
def test_the_transpose_is_the_adjoint_of_the_jacobian(structure, chunk_size, seed):
    ww, pp, zz, v, frame, *_ = problem_of(normal(seed), structure)
    order = structure[1]
    image = jacobian(ww, pp, v, frame, order=order, chunk_size=chunk_size)
    gradient = transpose(zz, ww, pp, frame, order=order, sum_over_probes=True, chunk_size=chunk_size)
    scale = max(1.0, dot(image, image) ** 0.5 * dot(zz, zz) ** 0.5)
    assert dot(image, zz) == pytest.approx(dot(gradient, v), abs=1e-13 * scale)


@given(structures, st.just(2), seeds)
def test_the_gauss_newton_product_is_that_of_the_two_maps(structure, chunk_size, seed):
    ww, pp, _, v, frame, _, weights, rows = problem_of(normal(seed), structure)
    order = structure[1]
    image = jacobian(ww, pp, v, frame, order=order, chunk_size=None)
    weighted = tuple(z * w[:, None, None] * rows[None, :, None] for z, w in zip(image, weights, strict=True))
    product = gauss_newton(Probes(ww, pp, weights, rows), v, frame, order=order, chunk_size=chunk_size)
    expected = transpose(weighted, ww, pp, frame, order=order, sum_over_probes=True, chunk_size=None)
    assert_trees_close(product, expected, rtol=1e-11)
