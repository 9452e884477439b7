"""Where modes are long, all probes are projected at once and only what is left is taken chunk by chunk."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.mode_products import LONG, input_jet, lift_to_mode, pull_residual, sum_orders
from t3k.kernels.narrow_loop import NarrowLoop, two_loops
from t3k.kernels.probe_maps import Probes, gauss_newton_product, point_probes, probe_jacobian, probe_transpose
from t3k.kernels.reducers import compensated_add
from t3k.kernels.stored_arrays import StoredArray
from t3k.kernels.types import Frame
from tests.test_probe_memory import abstract, scratch
from tests.trains import (
    Problem,
    assert_trees_close,
    assert_trees_equal,
    draw_problem,
    normal,
    quick_jit,
    small_integers,
)

ORDER, N_PROBES, LENGTH = 2, 11, 100


def long_modes(draw: Any, d: int = 5) -> Problem:
    """A problem with a run of equal cores in the middle."""
    bonds = (1, *(2,) * (d - 1), 1)
    cores = [tuple(draw(bonds[i], 3, bonds[i + 1]) for i in range(d)) for _ in range(3)]
    return draw_problem(draw, Frame(tuple(draw(3, LENGTH) for _ in range(d)), *cores), ORDER, N_PROBES)


@quick_jit
def dense(problem: Problem) -> dict[str, Any]:
    return maps(problem, None)


def maps(problem: Problem, chunk: int | None, reducer: Any = compensated_add) -> dict[str, Any]:
    ww, pp, zz, variations, frame, point, weights, rows = problem
    probes = Probes(ww, pp, weights, rows)
    back = {"chunk_size": chunk, "reducer": reducer}
    return {
        "jacobian": probe_jacobian(ww, pp, variations, frame, ORDER, chunk_size=chunk),
        "point": point_probes(ww, pp, point, frame, ORDER, chunk_size=chunk),
        "summed": probe_transpose(zz, ww, pp, frame, ORDER, sum_over_probes=True, **back),
        "kept": probe_transpose(zz, ww, pp, frame, ORDER, sum_over_probes=False, **back),
        "gauss_newton": gauss_newton_product(probes, variations, frame, ORDER, **back),
    }


chunked = quick_jit(maps, static_argnums=(1, 2))


@pytest.mark.parametrize("chunk", [1, 4, 10])
def test_it_equals_the_dense_maps_bit_for_bit_on_small_integers(chunk):
    integers, chance = small_integers(1), np.random.default_rng(2)
    # Few enough that nothing gets too large to be exact.
    problem = long_modes(lambda *shape: integers(*shape) * (chance.random(shape) < 0.2))
    assert two_loops(chunk, (problem.ww,), problem.frame, None)[1].chunk == chunk
    assert_trees_equal(chunked(problem, chunk), dense(problem))


def test_a_row_that_two_chunks_share_counts_once_whatever_it_weighs():
    problem = long_modes(normal(2), d=3)
    assert_trees_close(chunked(problem, 4), dense(problem), rtol=1e-12)


def test_reverse_mode_goes_through_both_parts():
    problem = long_modes(normal(3), d=3)

    def loss(zz: Any, chunk: int | None) -> jax.Array:
        ww, pp, _, _, frame, *_ = problem
        back = probe_transpose(zz, ww, pp, frame, ORDER, sum_over_probes=True, chunk_size=chunk)
        return jnp.sum(jnp.stack([jnp.sum(x**2) for x in jax.tree.leaves(back)]))

    gradient = quick_jit(jax.grad(loss), static_argnums=1)
    assert_trees_close(gradient(problem.zz, 4), gradient(problem.zz, None), rtol=1e-12)


def test_only_small_jets_are_held_for_all_rows():
    frame = long_modes(normal(4), d=4).frame
    vectors = tuple(abstract(1000, LENGTH) for _ in range(4))
    held = 2 * 3 * 1000 / LENGTH  # rows of the modes that the jets of both sides are as large as
    fewer, more = int(held) - 1, int(held) + 1
    in_file = (StoredArray(np.zeros((1000, LENGTH))), *vectors[1:])
    assert two_loops(more, (vectors,), frame, None) == (None, NarrowLoop(more))
    for chunk, rows in ((fewer, vectors), (1000, vectors), (None, vectors), (more, in_file)):
        assert two_loops(chunk, (rows,), frame, None) == (chunk, NarrowLoop(None))


def test_it_takes_less_memory_than_copies_of_the_rows():
    def transpose(zz: Any, ww: Any, frame: Any) -> Any:
        return probe_transpose(zz, ww, ww, frame, ORDER, sum_over_probes=True, chunk_size=32)

    def arrays(n_probes: int) -> Any:
        bonds, size = (1, 4, 4, 4, 1), 512
        tt = tuple(abstract(bonds[i], 4, bonds[i + 1]) for i in range(4))
        zz = tuple(abstract(ORDER + 1, n_probes, size) for _ in tt)
        return zz, tuple(abstract(n_probes, size) for _ in tt), Frame(tuple(abstract(4, size) for _ in tt), tt, tt, tt)

    assert scratch(transpose, *arrays(1000)) < scratch(transpose, *arrays(100_000))


@pytest.mark.parametrize("size", [4, 2 * LONG])
def test_products_with_a_mode_are_the_same_for_short_and_long_ones(size):
    draw = normal(5)
    E, z, jet = draw(2, size), draw(3, 5, size), tuple(draw(2, 5) for _ in range(3))
    scales = np.array([1.0, 1.0, 2.0])
    expected = scales[:, None, None] * np.einsum("ko,two->tkw", E, z)
    assert_trees_close(pull_residual(E, z, 3), tuple(expected))
    assert_trees_close(input_jet(E, (z[0], z[1])), tuple(np.einsum("ko,two->tkw", E, z[:2])))
    assert_trees_close(lift_to_mode(2, (E, jet)), scales[:, None, None] * np.einsum("ko,tkw->two", E, np.stack(jet)))
    assert_trees_close(sum_orders(jet, z, False), np.einsum("tmw,two->mo", np.stack(jet), z))
    assert_trees_close(sum_orders(jet, z, True), np.einsum("tmw,two->wmo", np.stack(jet), z))
