"""Laws of the streamed maps: J, its transpose, the Gauss-Newton product and the misfit."""

import collections
import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import sweeps
from t3k.kernels.dense import dense_probe, dense_probe_derivatives, dense_t3, dense_tangent
from t3k.kernels.probe_maps import Probes, gauss_newton_product, misfit, point_probes, probe_jacobian, probe_transpose
from t3k.kernels.reducers import compensated_add
from t3k.kernels.types import Frame, Variations
from tests.trains import (
    Problem,
    assert_trees_close,
    assert_trees_equal,
    dot,
    draw_frame,
    draw_problem,
    draw_variations,
    equal_cores,
    normal,
    quick_jit,
    small_integers,
)

ORDER, N_PROBES = 2, 8
# One at a time, a divisor, not a divisor, all, and more than there are.
CHUNKS = [1, 4, 3, N_PROBES, N_PROBES + 1, 10 * N_PROBES]


def all_maps(problem: Problem, order: int, chunk_size: int | None) -> dict[str, Any]:
    ww, pp, zz, variations, frame, point, weights, rows = problem
    probes = Probes(ww, pp, weights, rows)

    return {
        "jacobian": probe_jacobian(ww, pp, variations, frame, order, chunk_size=chunk_size),
        "point": point_probes(ww, pp, point, frame, order, chunk_size=chunk_size),
        "summed": probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=chunk_size),
        "kept": probe_transpose(zz, ww, pp, frame, order, sum_over_probes=False, chunk_size=chunk_size),
        "gauss_newton": gauss_newton_product(probes, variations, frame, order, chunk_size=chunk_size),
        "misfit": misfit(probes, zz, point, frame, order, chunk_size=chunk_size),
    }


run_maps = quick_jit(all_maps, static_argnames=("order", "chunk_size"))
jacobian = quick_jit(probe_jacobian, static_argnames=("order", "chunk_size"))
transpose = quick_jit(probe_transpose, static_argnames=("order", "chunk_size", "sum_over_probes"))
dense_jacobian = quick_jit(
    lambda ww, pp, v, frame, order: dense_probe_derivatives(dense_tangent(frame, v), ww, pp, order),
    static_argnames="order",
)


@functools.cache
def real_problem() -> Problem:
    return draw_problem(normal(0), draw_frame(normal(1), 3, end=(2, 2)), ORDER, N_PROBES)


@functools.cache
def integer_problem() -> Problem:
    return draw_problem(small_integers(0), draw_frame(small_integers(1), 3, end=(2, 2)), ORDER, N_PROBES)


@functools.cache
def integer_maps() -> dict[str, Any]:
    return run_maps(integer_problem(), ORDER, None)


@functools.cache
def real_maps() -> dict[str, Any]:
    return run_maps(real_problem(), ORDER, None)


def weighted(problem: Problem, zz: Any) -> tuple[jax.Array, ...]:
    return tuple(z * w[:, None, None] * problem.rows[None, :, None] for z, w in zip(zz, problem.weights, strict=True))


# Chunks.


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_chunked_equals_dense_bit_for_bit_on_small_integers(chunk_size):
    chunked = run_maps(integer_problem(), ORDER, chunk_size)
    assert_trees_equal(chunked, integer_maps())


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_chunked_equals_dense_to_rounding_on_real_numbers(chunk_size):
    assert_trees_close(run_maps(real_problem(), ORDER, chunk_size), real_maps(), rtol=1e-13)


def test_compensated_sums_are_the_same_sums():
    ww, pp, zz, _, frame, *_ = real_problem()
    args = tuple(z[:2] for z in zz), ww, pp, frame
    compensated = quick_jit(
        lambda zz, ww, pp, frame: probe_transpose(
            zz, ww, pp, frame, 1, sum_over_probes=True, chunk_size=3, reducer=compensated_add
        )
    )(*args)
    plain = transpose(*args, order=1, sum_over_probes=True, chunk_size=3)
    assert_trees_close(compensated, plain, rtol=1e-14)


def test_one_probe_gives_what_it_gives_among_many():
    problem = real_problem()
    first = problem._replace(
        ww=tuple(x[:1] for x in problem.ww),
        pp=tuple(x[:1] for x in problem.pp),
        zz=tuple(z[:, :1] for z in problem.zz),
        rows=problem.rows[:1],
    )
    maps, many = run_maps(first, ORDER, 3), real_maps()
    assert_trees_close(maps["jacobian"], jax.tree.map(lambda z: z[:, :1], many["jacobian"]))
    assert_trees_close(maps["kept"], jax.tree.map(lambda g: g[:1], many["kept"]))
    assert_trees_close(maps["summed"], jax.tree.map(lambda g: g[0], many["kept"]))


def test_no_probes_give_zeros():
    problem = draw_problem(normal(0), draw_frame(normal(1), 2), 1, 0)
    maps = run_maps(problem, 1, 3)
    assert_trees_equal(maps, jax.tree.map(jnp.zeros_like, maps))
    assert [z.shape for z in maps["jacobian"]] == [(2, 0, 3), (2, 0, 4)]
    assert [g.shape for g in maps["kept"].tucker] == [(0, 3, 3), (0, 2, 4)]
    assert [g.shape for g in maps["summed"].tt] == [(1, 2, 3), (2, 3, 1)]


# J, J^T and what is built of them.


def test_the_transpose_is_the_adjoint_of_the_jacobian():
    problem, maps = real_problem(), real_maps()
    expected = dot(problem.zz, maps["jacobian"])
    assert dot(maps["summed"], problem.variations) == pytest.approx(expected, rel=1e-12)


def test_the_sum_of_the_kept_gradients_is_the_summed_one():
    maps = real_maps()
    assert_trees_close(jax.tree.map(lambda g: g.sum(0), maps["kept"]), maps["summed"])


def test_the_gauss_newton_product_is_the_transpose_of_the_weighted_jacobian():
    problem, maps = real_problem(), real_maps()
    residual = weighted(problem, maps["jacobian"])
    assert_trees_close(maps["gauss_newton"], run_maps(problem._replace(zz=residual), ORDER, None)["summed"])


def test_the_gauss_newton_product_is_symmetric():
    problem, maps = real_problem(), real_maps()
    other = problem._replace(variations=draw_variations(normal(9), problem.frame))
    product = run_maps(other, ORDER, None)["gauss_newton"]
    assert dot(product, problem.variations) == pytest.approx(dot(maps["gauss_newton"], other.variations), rel=1e-12)


def test_the_misfit_is_half_the_weighted_square_and_its_gradient_the_transpose_of_the_residual():
    problem, maps = real_problem(), real_maps()
    value, gradient = maps["misfit"]
    residual = tuple(z - data for z, data in zip(maps["point"], problem.zz, strict=True))
    weighted_residual = weighted(problem, residual)
    assert float(value) == pytest.approx(dot(residual, weighted_residual) / 2, rel=1e-13)
    assert_trees_close(gradient, run_maps(problem._replace(zz=weighted_residual), ORDER, None)["summed"])


def test_the_misfits_gradient_is_its_derivative_by_the_cores():
    d, order = 3, 1
    draw = normal(4)
    U, G = (lambda frame: (frame.up, frame.left))(draw_frame(draw, d))
    problem = draw_problem(draw, Frame(U, G, G, G), order, 5)
    probes = Probes(problem.ww, problem.pp, problem.weights, problem.rows)

    def at(cores: Variations, gradient: bool) -> Any:
        frame = Frame(cores.tucker, cores.tt, cores.tt, cores.tt)
        return misfit(probes, problem.zz, cores.tucker, frame, order, chunk_size=2, gradient=gradient)

    cores = Variations(U, G)
    value, gradient = quick_jit(lambda cores: at(cores, True))(cores)
    expected = quick_jit(jax.value_and_grad(lambda cores: at(cores, False)[0]))(cores)
    assert_trees_close((value, gradient), expected)


# The dense oracles.


@pytest.mark.parametrize(("d", "order"), [(1, 0), (1, 4), (2, 1), (2, 4), (3, 0), (3, 2), (3, 4), (4, 3), (4, 4)])
def test_the_jacobian_is_the_derivative_of_probes_of_the_dense_tangent(d, order):
    problem = draw_problem(normal(d), draw_frame(normal(order), d, end=(2, 1)), order, 3)
    args = problem.ww, problem.pp, problem.variations, problem.frame
    zz = jacobian(*args, order=order, chunk_size=None)
    assert_trees_close(zz, dense_jacobian(*args, order=order))
    assert all(np.all(np.asarray(z[d:]) == 0) for z in zz), "a probe of d modes has degree d - 1"


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_point_probes_of_a_corewise_frame_are_those_of_the_dense_tensor(d):
    order = 4
    frame = draw_frame(normal(d), d)
    U, G = frame.up, frame.left
    problem = draw_problem(normal(7), frame, order, 3)

    @quick_jit
    def both(ww, pp, U, G):
        return (
            point_probes(ww, pp, U, Frame(U, G, G, G), order, chunk_size=2),
            dense_probe_derivatives(dense_t3(U, G), ww, pp, order),
        )

    assert_trees_close(*both(problem.ww, problem.pp, U, G))


def test_the_corewise_jacobian_is_the_derivative_of_the_dense_probes_by_the_cores():
    d, order = 3, 1
    draw = normal(5)
    frame = draw_frame(draw, d)
    problem = draw_problem(draw, Frame(frame.up, frame.left, frame.left, frame.left), order, 3)

    @quick_jit
    def both(ww, pp, v, frame):
        def probe(cores):
            return dense_probe_derivatives(dense_t3(*cores), ww, pp, order)

        derivative = jax.jvp(probe, ((frame.up, frame.left),), (tuple(v),))[1]
        return probe_jacobian(ww, pp, v, frame, order, chunk_size=None), derivative

    assert_trees_close(*both(problem.ww, problem.pp, problem.variations, problem.frame))


def test_the_orders_are_nested_derivatives_along_the_directions():
    problem, order = real_problem(), ORDER

    @quick_jit
    def nested(ww, pp, v, frame):
        def along(s):
            moved = tuple(w + s * p for w, p in zip(ww, pp, strict=True))
            return probe_jacobian(moved, None, v, frame, 0, chunk_size=None)

        def derivative(fun):
            return lambda s: jax.jvp(fun, (s,), (jnp.ones_like(s),))[1]

        orders = [along]
        for _ in range(order):
            orders.append(derivative(orders[-1]))
        columns = zip(*(fun(jnp.zeros((), ww[0].dtype)) for fun in orders), strict=True)
        return tuple(jnp.concatenate(column) for column in columns)

    assert_trees_close(real_maps()["jacobian"], nested(problem.ww, problem.pp, problem.variations, problem.frame))


def test_order_zero_is_the_plain_probe():
    problem = real_problem()
    plain = jacobian(problem.ww, None, problem.variations, problem.frame, order=0, chunk_size=None)
    with_directions = jacobian(problem.ww, problem.pp, problem.variations, problem.frame, order=0, chunk_size=None)
    dense = quick_jit(lambda ww, v, frame: dense_probe(dense_tangent(frame, v), ww))
    assert_trees_close(jax.tree.map(lambda z: z[0], plain), dense(problem.ww, problem.variations, problem.frame))
    assert_trees_close(plain, with_directions)
    assert_trees_close(plain, jax.tree.map(lambda z: z[:1], real_maps()["jacobian"]))


def test_the_transpose_of_order_zero_does_without_directions():
    problem = real_problem()
    plain = tuple(z[:1] for z in problem.zz)
    padded = tuple(np.concatenate([z[:1], np.zeros_like(z[1:])]) for z in problem.zz)
    gradient = transpose(plain, problem.ww, None, problem.frame, order=0, sum_over_probes=True, chunk_size=None)
    assert_trees_close(gradient, run_maps(problem._replace(zz=padded), ORDER, None)["summed"])


# Layouts and stacks.


@pytest.mark.parametrize("d", [10, 12])
def test_scanned_runs_of_equal_cores_equal_unrolled_ones(d, monkeypatch):
    order = 1
    problem = draw_problem(normal(d), equal_cores(normal(d), d), order, 2)

    def maps(problem):
        ww, pp, zz, v, frame, *_ = problem
        return (
            probe_jacobian(ww, pp, v, frame, order, chunk_size=None),
            probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=None),
        )

    scanned = quick_jit(maps)(problem)
    monkeypatch.setattr(sweeps, "MIN_SCAN", d)
    assert_trees_close(scanned, quick_jit(lambda problem: maps(problem))(problem))


def test_stacked_trains_equal_tuples_and_come_back_stacked():
    d, order = 3, 1
    draw = normal(6)
    cores: Any = [tuple(draw(2, 2, 2) for _ in range(d)) for _ in range(3)]
    problem = draw_problem(draw, Frame(tuple(draw(2, 3) for _ in range(d)), *cores), order, 3)

    @quick_jit
    def maps(problem):
        ww, pp, zz, v, frame, *_ = problem
        return (
            probe_jacobian(ww, pp, v, frame, order, chunk_size=2),
            probe_transpose(zz, ww, pp, frame, order, sum_over_probes=False, chunk_size=2),
        )

    def is_train(x):
        return type(x) is tuple and all(isinstance(core, np.ndarray | jax.Array) and core.ndim > 1 for core in x)

    def stacked(tree):
        return jax.tree.map(lambda x: np.stack(x) if is_train(x) else x, tree, is_leaf=is_train)

    ragged, uniform = maps(problem), maps(stacked(problem))
    expected: Any = (np.stack(ragged[0]), type(ragged[1])(*map(np.stack, ragged[1])))
    chex.assert_trees_all_equal_structs(uniform, expected)
    assert_trees_close(uniform, expected)


def test_mapped_over_tangents_and_base_points_it_equals_a_loop():
    order = 1
    problems = [draw_problem(normal(s), draw_frame(normal(s), 2), order, 3) for s in range(2)]
    tangents = jax.tree.map(lambda *x: np.stack(x), *(problem.variations for problem in problems))
    residuals = jax.tree.map(lambda *x: np.stack(x), *(problem.zz for problem in problems))
    frames = jax.tree.map(lambda *x: np.stack(x), *(problem.frame for problem in problems))
    ww, pp, *_ = problems[0]

    def maps(zz, v, frame):
        return (
            probe_jacobian(ww, pp, v, frame, order, chunk_size=2),
            probe_transpose(zz, ww, pp, frame, order, sum_over_probes=False, chunk_size=2),
        )

    over_tangents = jax.vmap(maps, in_axes=(0, 0, None))
    both = quick_jit(jax.vmap(over_tangents, in_axes=(None, None, 0)))(residuals, tangents, frames)
    one = quick_jit(maps)
    for c, base in enumerate(problems):
        for v, problem in enumerate(problems):
            expected = one(problem.zz, problem.variations, base.frame)
            assert_trees_close(jax.tree.map(lambda x, c=c, v=v: x[c, v], both), expected)


# Dtypes, traces and the size of programs.


def abstract(problem: Problem, dtype: Any) -> Problem:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), problem)


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_dtypes_are_kept(dtype, x64, chunk_size):
    if dtype == "float64" and not x64:
        pytest.skip("there is no float64 with x64 off")
    with jax.enable_x64(x64):
        maps = jax.eval_shape(lambda problem: all_maps(problem, ORDER, chunk_size), abstract(real_problem(), dtype))
    assert {str(x.dtype) for x in jax.tree.leaves(maps)} == {dtype}


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_lower_precision_is_as_close_as_it_can_be(dtype, rtol):
    problem = real_problem()
    low = jax.tree.map(lambda x: jnp.asarray(x, dtype), problem)
    gradient = transpose(low.zz, low.ww, low.pp, low.frame, order=ORDER, sum_over_probes=True, chunk_size=4)
    gradient = jax.tree.map(lambda x: np.asarray(x, np.float64), gradient)
    scale = max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(real_maps()["summed"]))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=rtol * scale), gradient, real_maps()["summed"])


def test_new_arrays_of_the_same_shapes_are_not_traced_again():
    chex.clear_trace_counter()
    traced_once = quick_jit(
        chex.assert_max_traces(
            lambda zz, ww, pp, frame: probe_transpose(zz, ww, pp, frame, 1, sum_over_probes=True, chunk_size=2), n=1
        )
    )
    for seed in range(2):
        problem = draw_problem(normal(seed), draw_frame(normal(seed), 2), 1, 5)
        traced_once(problem.zz, problem.ww, problem.pp, problem.frame)


def count_primitives(program: Any, counts: collections.Counter[str]) -> collections.Counter[str]:
    def is_program(x: Any) -> bool:
        return hasattr(x, "eqns") or hasattr(x, "jaxpr")

    for equation in program.eqns:
        counts[equation.primitive.name] += 1
        for param in filter(is_program, jax.tree.leaves(dict(equation.params), is_leaf=is_program)):
            count_primitives(getattr(param, "jaxpr", param), counts)
    return counts


def test_a_further_equal_core_adds_no_matrix_product_to_the_program():
    def matrix_products(d: int) -> int:
        ww, pp, zz, _, frame, *_ = abstract(draw_problem(normal(0), equal_cores(normal(0), d), ORDER, 6), np.float32)
        program = jax.make_jaxpr(
            lambda z, w, p, f: probe_transpose(z, w, p, f, ORDER, sum_over_probes=True, chunk_size=2)
        )
        return count_primitives(program(zz, ww, pp, frame).jaxpr, collections.Counter())["dot_general"]

    assert matrix_products(24) == matrix_products(16)


WRONG = {
    "probes of one mode less": lambda p: p._replace(ww=p.ww[:-1]),
    "directions of another size": lambda p: p._replace(pp=tuple(x[:, 1:] for x in p.pp)),
    "residuals of another order": lambda p: p._replace(zz=tuple(z[1:] for z in p.zz)),
    "variations of another shape": lambda p: p._replace(variations=p.variations._replace(tt=p.variations.tt[::-1])),
    "down cores of another shape": lambda p: p._replace(frame=p.frame._replace(down=p.frame.left)),
    "point of another shape": lambda p: p._replace(point=p.point[::-1]),
    "weights of another order": lambda p: p._replace(weights=p.weights[:, 1:]),
    "rows of fewer probes": lambda p: p._replace(rows=p.rows[1:]),
    "no directions": lambda p: p._replace(pp=None),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_shape_fails_while_tracing_in_the_letters(wrong):
    with pytest.raises(AssertionError, match="has axes|modes, expected|pp must be given"):
        jax.eval_shape(lambda problem: all_maps(problem, ORDER, 2), WRONG[wrong](real_problem()))


@pytest.mark.parametrize("chunk_size", [64, 1000])
def test_a_compensated_float32_sum_of_a_million_probes_is_right_to_rounding_whatever_the_chunk(chunk_size):
    n_probes, size = 10**6, 2
    rng = np.random.default_rng(0)
    ww = tuple(rng.uniform(0.5, 1.5, (n_probes, size)).astype(np.float32) for _ in range(2))
    zz = tuple(rng.uniform(0.5, 1.5, (1, n_probes, size)).astype(np.float32) for _ in range(2))
    up, core = jnp.ones((1, size), jnp.float32), jnp.ones((1, 1, 1), jnp.float32)
    frame = Frame((up, up), (core, core), (core, core), (core, core))

    @quick_jit
    def summed(zz, ww, frame):
        return probe_transpose(
            zz, ww, None, frame, 0, sum_over_probes=True, chunk_size=chunk_size, reducer=compensated_add
        )

    found = summed(zz, ww, frame)
    # With ones for a frame, dU_0 = sum_w (1.z_1)(w_0) + (1.w_1)(z_0), and likewise for the other mode.
    z, w = (tuple(x.astype(np.float64) for x in train) for train in ((zz[0][0], zz[1][0]), ww))
    for i, dU in enumerate(found.tucker):
        expected = z[1 - i].sum(axis=1) @ w[i] + w[1 - i].sum(axis=1) @ z[i]
        np.testing.assert_allclose(np.asarray(dU)[0], expected, rtol=1e-6)
