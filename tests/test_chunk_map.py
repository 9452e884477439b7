"""`chunk_map` is `jax.vmap`, in the memory of a chunk."""

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.chunk_map import chunk_map
from t3k.kernels.reducers import add, compensated_add, concat

SIZES = [None, 1, 2, 3, 5, 7, 8, 70, "auto"]


def model(row):
    return {"wave": jnp.sin(row["a"]) * row["b"], "sum": jnp.sum(row["a"])}


def rows(n=7):
    return {"a": jnp.arange(3.0 * n).reshape(n, 3), "b": jnp.arange(float(n))}


def assert_trees_close(actual, expected, rtol=1e-12):
    assert str(jax.tree.structure(actual)) == str(jax.tree.structure(expected))
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, rtol=rtol)


@pytest.mark.parametrize("chunk_size", SIZES)
def test_chunk_map_equals_vmap(chunk_size):
    assert_trees_close(chunk_map(model, rows(), chunk_size=chunk_size), jax.vmap(model)(rows()))


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("chunk_size", [None, 1, 4, "auto"])
def test_none_and_one_row(n, chunk_size):
    assert_trees_close(chunk_map(model, rows(n), chunk_size=chunk_size), jax.vmap(model)(rows(n)))
    summed = chunk_map(model, rows(n), chunk_size=chunk_size, reduce=add)
    assert_trees_close(summed, jax.tree.map(lambda y: jnp.sum(y, axis=0), jax.vmap(model)(rows(n))))


@pytest.mark.parametrize("chunk_size", [None, 2, 7])
def test_axes_are_those_of_vmap(chunk_size):
    xs = {"a": jnp.arange(12.0).reshape(3, 4), "b": jnp.arange(8.0).reshape(4, 2), "c": jnp.ones(5)}
    axes = {"a": -1, "b": 0, "c": None}

    def fun(x):
        return jnp.sum(x["a"]) * x["c"], x["b"]

    actual = chunk_map(fun, xs, chunk_size=chunk_size, in_axes=axes, out_axes=(-1, 0))
    assert_trees_close(actual, jax.vmap(fun, in_axes=(axes,), out_axes=(-1, 0))(xs))


@pytest.mark.parametrize("chunk_size", [None, 1, 3, 7])
def test_each_output_is_reduced_its_own_way(chunk_size):
    actual = chunk_map(model, rows(), chunk_size=chunk_size, reduce={"wave": compensated_add, "sum": concat()})
    dense = jax.vmap(model)(rows())
    assert_trees_close(actual, {"wave": jnp.sum(dense["wave"], axis=0), "sum": dense["sum"]})


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "bfloat16", "complex64"])
def test_dtypes_are_those_of_vmap_and_sum(dtype):
    xs = jnp.arange(5).astype(dtype)
    assert chunk_map(lambda x: x, xs, chunk_size=2).dtype == xs.dtype
    assert chunk_map(lambda x: x, xs, chunk_size=2, reduce=add).dtype == jnp.sum(xs).dtype


def test_rows_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"equally many.*\[4, 6\]"):
        chunk_map(lambda x: x[0], (jnp.ones(4), jnp.ones(6)), chunk_size=2)
    with pytest.raises(ValueError, match="shape \\(\\)"):
        chunk_map(lambda x: x, jnp.float64(1.0), chunk_size=2)
    with pytest.raises(ValueError, match="must have rows"):
        chunk_map(lambda x: x, jnp.ones(3), in_axes=None)
    with pytest.raises(ValueError, match="tree prefix"):
        chunk_map(lambda x: x, jnp.ones(3), in_axes=(0, 0))


def test_what_is_no_reducer_or_axis_is_refused():
    with pytest.raises(TypeError, match="reducers"):
        chunk_map(lambda x: x, jnp.ones(3), reduce=jnp.add)
    with pytest.raises(TypeError, match="out_axes"):
        chunk_map(lambda x: x, jnp.ones(3), out_axes=1.5)
    with pytest.raises(ValueError, match="memory"):
        chunk_map(lambda x: x, jnp.ones(3), chunk_size=2, memory="1GB")


@pytest.mark.parametrize("chunk_size", [None, 3, 4])
def test_fun_is_traced_once_and_eager_calls_compile_once(chunk_size):
    traces = []

    def fun(x):
        traces.append(x)
        return jnp.sin(x)

    for shift in range(3):
        chunk_map(fun, jnp.arange(7.0) + shift, chunk_size=chunk_size)
    assert len(traces) == 1


def test_the_program_goes_with_its_function():
    big = jnp.ones(1000)

    def fun(x):
        return jnp.sum(big * x)

    chunk_map(fun, jnp.arange(4.0), chunk_size=2)
    alive = weakref.ref(fun)
    del fun
    gc.collect()
    assert alive() is None


def temp_bytes(fun, *shapes):
    analysis: Any = jax.jit(fun).lower(*shapes).compile().memory_analysis()
    return analysis.temp_size_in_bytes


def wide(x):
    return jnp.sum(jnp.cumsum(jnp.outer(x, x).ravel()).reshape(100, 100), axis=1)


def test_a_chunk_that_does_not_divide_costs_what_a_divisor_does():
    xs = jax.ShapeDtypeStruct((1000, 100), jnp.float64)
    divisor, other = (temp_bytes(lambda x, c=c: chunk_map(wide, x, chunk_size=c), xs) for c in (8, 9))
    assert other < 1.2 * divisor < temp_bytes(jax.vmap(wide), xs) / 20


def test_a_budget_is_kept():
    xs = jax.ShapeDtypeStruct((1000, 100), jnp.float64)
    assert temp_bytes(lambda x: chunk_map(wide, x, chunk_size="auto", memory="2MB"), xs) <= 2 * 10**6
    with pytest.raises(ValueError, match="one direction at a time needs"):
        jax.eval_shape(lambda x: chunk_map(wide, x, chunk_size="auto", memory="1kB"), xs)


def test_gradients_keep_one_chunk_of_residuals():
    xs = jax.ShapeDtypeStruct((1000, 100), jnp.float64)

    def loss(chunk_size):
        return jax.grad(lambda x: chunk_map(lambda r: jnp.sum(wide(r) ** 2), x, chunk_size=chunk_size, reduce=add))

    assert temp_bytes(loss(8), xs) < 4 * 10**6 < temp_bytes(loss(None), xs) / 10
    x = jnp.linspace(0.0, 1.0, 700).reshape(7, 100)
    np.testing.assert_allclose(loss(3)(x), loss(None)(x), rtol=1e-12)


def test_under_jit_and_vmap():
    stacked = jax.tree.map(lambda x: jnp.stack([x, x + 1]), rows())
    actual = jax.jit(jax.vmap(lambda x: chunk_map(model, x, chunk_size=3)))(stacked)
    assert_trees_close(actual, jax.vmap(jax.vmap(model))(stacked))


def test_under_shard_map_on_all_devices_without_communication():
    n = jax.device_count()
    mesh = jax.make_mesh((n,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    xs = jnp.arange(15.0 * n).reshape(5 * n, 3)

    def local(x):
        each, total = chunk_map(lambda r: (jnp.sin(r), r), x, chunk_size=2, reduce=(concat(), add))
        return each, jax.lax.psum(total, "d")

    program = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=(spec, jax.sharding.PartitionSpec())))
    each, total = program(xs)
    np.testing.assert_allclose(each, jnp.sin(xs))
    np.testing.assert_allclose(total, jnp.sum(xs, axis=0))
    text = str(program.lower(xs).compile().as_text())
    assert "all-gather" not in text
    assert text.count("all-reduce(") <= 1
