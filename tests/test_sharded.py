"""Laws of the maps on several devices: the values of one device, gradients exchanged once, and nothing gathered."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t3k.kernels.narrow_loop import NarrowLoop, two_loops
from t3k.kernels.probe_maps import Probes, gauss_newton_product, misfit, point_probes, probe_jacobian, probe_transpose
from t3k.kernels.reducers import add, compensated_add, concat
from t3k.kernels.sharded import n_shards, over_shards, row_sharding
from tests.collectives import GATHERING, bodies_of_loops, count, scratch
from tests.trains import Problem, assert_trees_close, assert_trees_equal, draw_frame, draw_problem, normal, quick_jit

P = PartitionSpec
DEVICES, ORDER = 8, 2
# Three probes at a time of the five that a device has: two chunks that overlap.
N_PROBES, CHUNK = 5 * DEVICES, 3


@functools.cache
def rows_on_devices() -> NamedSharding:
    return NamedSharding(Mesh(np.asarray(jax.devices()), ("w",)), P("w"))


@functools.cache
def problem(stretch: int = 1) -> Problem:
    return draw_problem(normal(0), draw_frame(normal(1), 3, end=(2, 2), stretch=stretch), ORDER, N_PROBES)


def spread(x: Problem) -> Problem:
    mesh = rows_on_devices().mesh

    def put(tree: Any, spec: PartitionSpec) -> Any:
        return jax.device_put(tree, NamedSharding(mesh, spec))

    ww, pp, rows = put((x.ww, x.pp, x.rows), P("w"))
    return x._replace(ww=ww, pp=pp, rows=rows, zz=put(x.zz, P(None, "w")))


def sums(x: Problem, sharding: NamedSharding | None) -> dict[str, Any]:
    probes = Probes(x.ww, x.pp, x.weights, x.rows)
    how: Any = {"chunk_size": CHUNK, "sharding": sharding}
    return {
        "transpose": probe_transpose(
            x.zz, x.ww, x.pp, x.frame, ORDER, sum_over_probes=True, reducer=compensated_add, **how
        ),
        "gauss_newton": gauss_newton_product(probes, x.variations, x.frame, ORDER, **how),
        "misfit": misfit(probes, x.zz, x.point, x.frame, ORDER, **how),
    }


def rows(x: Problem, sharding: NamedSharding | None) -> dict[str, Any]:
    how: Any = {"chunk_size": CHUNK, "sharding": sharding}
    return {
        "transpose": probe_transpose(x.zz, x.ww, x.pp, x.frame, ORDER, sum_over_probes=False, **how),
        "jacobian": probe_jacobian(x.ww, x.pp, x.variations, x.frame, ORDER, **how),
        "point": point_probes(x.ww, x.pp, x.point, x.frame, ORDER, **how),
    }


compiled_sums: Any = quick_jit(sums, static_argnames="sharding")
compiled_rows: Any = quick_jit(rows, static_argnames="sharding")


@functools.cache
def program_of_sums() -> Any:
    return compiled_sums.lower(spread(problem()), rows_on_devices()).compile()


def test_sums_over_devices_are_those_of_one_device():
    assert_trees_close(program_of_sums()(spread(problem())), compiled_sums(problem(), None))


def test_sums_meet_in_one_reduction_outside_of_the_loop_over_chunks():
    text = program_of_sums().as_text()
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    assert count(text, "all-reduce") == 1
    assert bodies_of_loops(text)
    assert "all-reduce" not in bodies_of_loops(text)


def test_rows_stay_where_they_are_and_nothing_is_exchanged():
    program = compiled_rows.lower(spread(problem()), rows_on_devices()).compile()
    text = program.as_text()
    assert [count(text, operation) for operation in (*GATHERING, "all-reduce")] == [0] * (len(GATHERING) + 1)
    result = program(spread(problem()))
    assert {x.sharding.spec for x in jax.tree.leaves(result["transpose"])} == {P("w")}
    assert {z.sharding.spec for z in result["jacobian"]} == {P(None, "w")}
    assert_trees_close(result, compiled_rows(problem(), None))


def test_long_modes_that_are_projected_at_once_are_so_on_every_device():
    x = problem(stretch=8)
    assert two_loops(CHUNK, (x.ww,), x.frame, rows_on_devices()) == (None, NarrowLoop(CHUNK))
    for maps in (compiled_sums, compiled_rows):
        program = maps.lower(spread(x), rows_on_devices()).compile()
        assert [count(program.as_text(), operation) for operation in GATHERING] == [0] * len(GATHERING)
        assert_trees_close(program(spread(x)), maps(x, None))


def test_shard_map_around_the_kernels_is_the_same_in_values_and_memory():
    """What someone writes who has a mesh and `jax.shard_map`; `sums` without a sharding sees one device's rows."""
    local, replicated = Problem(P("w"), P("w"), P(None, "w"), P(), P(), P(), P(), P("w")), P()

    def per_device(x: Problem) -> Any:
        return jax.lax.psum(sums(x, None), "w")

    mesh = rows_on_devices().mesh
    by_hand: Any = quick_jit(jax.shard_map(per_device, mesh=mesh, in_specs=(local,), out_specs=replicated))
    program = by_hand.lower(spread(problem())).compile()
    assert_trees_close(program(spread(problem())), compiled_sums(problem(), None))
    assert scratch(program_of_sums()) <= 1.1 * scratch(program)


def test_rows_may_be_kept_by_shard_map_too():
    x = problem()

    def per_device(zz: Any, ww: Any, pp: Any, frame: Any) -> Any:
        return probe_transpose(zz, ww, pp, frame, ORDER, sum_over_probes=False, chunk_size=CHUNK)

    specs = (P(None, "w"), P("w"), P("w"), P())
    kept = jax.shard_map(per_device, mesh=rows_on_devices().mesh, in_specs=specs, out_specs=P("w"))
    assert_trees_close(quick_jit(kept)(x.zz, x.ww, x.pp, x.frame), compiled_rows(x, None)["transpose"])


def test_gradients_through_the_devices_are_those_of_one_device():
    rng = normal(3)
    matrix, points = rng(3, 3), rng(N_PROBES, 3)

    def loss(matrix: Any, sharding: NamedSharding | None) -> Any:
        def energy(x: Any) -> Any:
            return jnp.sum(jnp.sin(x @ matrix))

        if sharding is None:
            return energy(points) ** 2
        return over_shards(energy, jnp.asarray(points), add, sharding=sharding) ** 2

    gradient = quick_jit(jax.grad(loss), static_argnums=1)
    assert_trees_close(gradient(matrix, rows_on_devices()), gradient(matrix, None))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_several_mesh_axes_count_as_one_and_take_arrays_from_anywhere(kind):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(kind, kind))
    sharding = NamedSharding(mesh, P(("a", "b")))
    x = np.arange(16.0)
    result = over_shards(lambda x: (x.sum(), x), jnp.asarray(x), (add, concat(0)), sharding=sharding)
    assert n_shards(sharding) == DEVICES
    assert_trees_equal(result, (x.sum(), x))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_arrays_tell_where_their_rows_are(kind):
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(kind, kind))
    put = functools.partial(jax.device_put, np.ones((4, 8)))
    assert row_sharding(np.ones(8)) is None
    assert row_sharding(jnp.ones(8)) is None
    assert row_sharding(put(NamedSharding(mesh, P()))) is None
    assert row_sharding(put(NamedSharding(mesh, P("a"))), axis=1) is None
    found = row_sharding(put(NamedSharding(mesh, P("b", "a"))), axis=1)
    assert found is not None
    assert (found.spec, n_shards(found)) == (P("a"), 4)


def test_inside_jit_they_tell_on_explicit_axes():
    seen = []

    @jax.jit
    def look(x: Any) -> Any:
        seen.append(n_shards(row_sharding(x)))
        return x

    for kind in (AxisType.Explicit, AxisType.Auto):
        mesh = jax.make_mesh((DEVICES,), ("w",), axis_types=(kind,))
        look(jax.device_put(np.ones(DEVICES), NamedSharding(mesh, P("w"))))
    assert seen == [DEVICES, 1]


def test_rows_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="the 20 rows must split evenly over 8 devices"):
        over_shards(jnp.sum, jnp.ones(20), add, sharding=rows_on_devices())


def test_rows_are_concatenated_along_an_axis_that_is_counted_from_the_front():
    with pytest.raises(ValueError, match="along an axis >= 0; got -1"):
        over_shards(lambda x: x, jnp.ones(16), concat(-1), sharding=rows_on_devices())
