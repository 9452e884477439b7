"""Chunked Jacobians on several devices: right values, factor exactly 1, no gathering."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacrev
from t3k.kernels.jacobian_consumers import chunked_jtj

AUTO = jax.sharding.AxisType.Auto
P = jax.sharding.PartitionSpec
PAIRS = pytest.mark.parametrize(("ours", "jaxs"), [(chunked_jacfwd, jax.jacfwd), (chunked_jacrev, jax.jacrev)])
CHUNKS = pytest.mark.parametrize("chunk_size", [2, 3, "auto"])


def mesh():
    return jax.make_mesh((jax.device_count(),), ("d",), axis_types=(AUTO,))


def data():
    n = jax.device_count()
    return jnp.linspace(0.1, 1.0, 7), jnp.arange(4.0 * n * 7).reshape(4 * n, 7) / 100


def text_of(program, *args):
    return str(program.lower(*args).compile().as_text())


def residuals(x, rows):
    return jnp.sin(rows @ x)


@PAIRS
@CHUNKS
def test_a_jacobian_by_what_varies_over_devices(ours, jaxs, chunk_size):
    """Each device has its own point, so that nothing is communicated."""
    points = jnp.linspace(0.0, 1.0, 7 * jax.device_count()).reshape(-1, 7)

    def local(build):
        return jax.shard_map(
            lambda x: build(lambda v: jnp.sin(v) * jnp.sum(v))(x[0])[None],
            mesh=mesh(),
            in_specs=P("d"),
            out_specs=P("d"),
        )

    program = jax.jit(local(lambda fun: ours(fun, chunk_size=chunk_size)))
    np.testing.assert_allclose(program(points), jax.jit(local(jaxs))(points), rtol=1e-12)
    text = text_of(program, points)
    assert not any(word in text for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute"))


@PAIRS
@CHUNKS
def test_a_jacobian_of_local_rows_by_a_shared_point(ours, jaxs, chunk_size):
    x, rows = data()

    def local(build):
        # The point is made to vary first, so that reverse mode does not sum over the devices.
        def block(x, rows):
            return build(residuals)(jax.lax.pcast(x, ("d",), to="varying"), rows)

        return jax.shard_map(block, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d"))

    program = jax.jit(local(lambda fun: ours(fun, chunk_size=chunk_size)))
    np.testing.assert_allclose(program(x, rows), jaxs(residuals)(x, rows), rtol=1e-12)
    assert "all-gather" not in text_of(program, x, rows)


@PAIRS
def test_inside_shard_map_a_shared_point_means_what_it_means_in_jax(ours, jaxs):
    x, rows = data()

    def local(build):
        return jax.shard_map(
            lambda x, rows: build(residuals)(x, rows), mesh=mesh(), in_specs=(P(), P("d")), out_specs=P("d"),
            check_vma=False,
        )  # fmt: skip

    actual = jax.jit(local(lambda fun: ours(fun, chunk_size=3)))(x, rows)
    np.testing.assert_allclose(actual, jax.jit(local(jaxs))(x, rows), rtol=1e-12)


@pytest.mark.parametrize("chunk_size", [3, "auto"])
def test_functions_with_collectives_work_though_they_cannot_be_measured(chunk_size):
    x, rows = data()

    def fun(x, rows):
        return jax.lax.psum(jnp.sin(rows @ x) @ rows, "d")

    def local(build):
        return jax.shard_map(lambda x, rows: build(fun)(x, rows), mesh=mesh(), in_specs=(P(), P("d")), out_specs=P())

    actual = jax.jit(local(lambda fun: chunked_jacfwd(fun, chunk_size=chunk_size)))(x, rows)
    dense = jax.jacfwd(lambda x: jnp.sin(rows @ x) @ rows)(x)
    np.testing.assert_allclose(actual, dense, rtol=1e-10)


@PAIRS
def test_plain_jit_on_sharded_rows_needs_no_gathering(ours, jaxs):
    x, rows = data()
    where = jax.sharding.NamedSharding(mesh(), P("d"))
    sharded = jax.device_put(rows, where)
    if ours is chunked_jacfwd:
        program = jax.jit(ours(residuals, chunk_size=3), out_shardings=where)
        assert "all-gather" not in text_of(program, x, sharded)
    else:
        program = jax.jit(ours(residuals, chunk_size=3))
    np.testing.assert_allclose(program(x, sharded), jaxs(residuals)(x, rows), rtol=1e-12)


def test_jtj_of_sharded_rows_is_summed_once():
    x, rows = data()
    sharded = jax.device_put(rows, jax.sharding.NamedSharding(mesh(), P("d")))
    J = jax.jacfwd(residuals)(x, rows)
    for mode in ("fwd", "rev"):
        gram = jax.jit(chunked_jtj(residuals, mode=mode, chunk_size=3))(x, sharded)
        np.testing.assert_allclose(gram, J.T @ J, rtol=1e-10)


@PAIRS
def test_gradients_on_devices_have_factor_one(ours, jaxs):
    x, rows = data()

    def loss(build):
        def local(x, rows):
            return jax.lax.psum(jnp.sum(build(residuals)(jax.lax.pcast(x, ("d",), to="varying"), rows) ** 2), "d")

        return jax.shard_map(local, mesh=mesh(), in_specs=(P(), P("d")), out_specs=P())

    actual = jax.jit(jax.grad(loss(lambda fun: ours(fun, chunk_size=3))))(x, rows)
    dense = jax.grad(lambda x: jnp.sum(jaxs(residuals)(x, rows) ** 2))(x)
    np.testing.assert_allclose(actual, dense, rtol=1e-10)
