"""Chunked Jacobians equal `jax.jacfwd` and `jax.jacrev`, whatever the pytrees, dtypes, arguments and chunk sizes.

Structures come from small sets, since each is a compilation; values come from a key.
"""

import functools
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels.chunk_map import chunk_map
from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacobian, chunked_jacrev
from t3k.kernels.jacobian_consumers import chunked_jtj, chunked_row_norms
from t3k.kernels.reducers import add, compensated_add, concat

#: One leaf; several; nested with a scalar and an empty leaf.
STRUCTURES: dict[str, Any] = {
    "array": (5,),
    "pair": [(2, 2), (3,)],
    "nested": {"a": (), "b": [(0, 3), {"c": (2, 1, 2)}]},
}
CHUNKS = st.sampled_from([None, 1, 2, 3, 4, 50, "auto"])
DTYPES = st.sampled_from(["float32", "float64"])
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def sample(name: str, dtype: str, seed: int) -> Any:
    structure: Any
    shapes, structure = jax.tree.flatten(STRUCTURES[name], is_leaf=lambda node: isinstance(node, tuple))
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    return structure.unflatten([jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)])


def total(tree: Any) -> jax.Array:
    return functools.reduce(jnp.add, [jnp.sum(leaf) for leaf in jax.tree.leaves(tree)])


def mixed(x: Any, y: Any) -> Any:
    """Every output depends on every input."""
    return {"waves": jax.tree.map(lambda a: jnp.sin(a) * total(y), x), "product": total(x) * total(y) ** 2}


def assert_trees_close(actual: Any, expected: Any, dtype: str) -> None:
    assert str(jax.tree.structure(actual)) == str(jax.tree.structure(expected))
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, rtol=10 * TOLERANCE[dtype], atol=TOLERANCE[dtype])


@functools.cache
def dense(jacobian: Any, argnums: Any) -> Any:
    return jax.jit(jacobian(mixed, argnums))


@hypothesis.given(
    x_name=st.sampled_from(sorted(STRUCTURES)),
    y_name=st.sampled_from(["array", "nested"]),
    dtype=DTYPES,
    argnums=st.sampled_from([0, -1, (0, 1), (1, 0), (-2,)]),
    chunk_size=CHUNKS,
    mode=st.sampled_from(["fwd", "rev"]),
    linearize=st.sampled_from([True, False, "auto"]),
    seed=st.integers(0, 9),
)
@hypothesis.settings(max_examples=15)
def test_chunked_jacobians_equal_jax(x_name, y_name, dtype, argnums, chunk_size, mode, linearize, seed):
    x, y = sample(x_name, dtype, seed), sample(y_name, dtype, seed + 100)
    ours, jaxs = (chunked_jacfwd, jax.jacfwd) if mode == "fwd" else (chunked_jacrev, jax.jacrev)
    actual = ours(mixed, argnums, chunk_size=chunk_size, linearize=linearize)(x, y)
    assert_trees_close(actual, dense(jaxs, argnums)(x, y), dtype)


def folded(x: Any) -> Any:
    """One argument, and fewer leaves: the products below compile a program for each pair of them."""
    return jnp.sin(jnp.stack(jax.tree.leaves(jax.tree.map(jnp.sum, x)))) * total(x)


@hypothesis.given(name=st.sampled_from(["array", "pair"]), chunk_size=st.sampled_from([1, 2, 3]))
@hypothesis.settings(max_examples=4)
def test_modes_agree_and_so_do_products(name, chunk_size):
    x, fun = sample(name, "float64", 0), folded
    options = {"chunk_size": chunk_size}
    forward = chunked_jacobian(fun, mode="fwd", **options)(x)
    assert_trees_close(chunked_jacobian(fun, mode="rev", **options)(x), forward, "float64")
    assert_trees_close(
        chunked_jtj(fun, mode="fwd", **options)(x), chunked_jtj(fun, mode="rev", **options)(x), "float64"
    )
    assert_trees_close(
        chunked_row_norms(fun, mode="fwd", **options)(x), chunked_row_norms(fun, mode="rev", **options)(x), "float64"
    )


@hypothesis.given(chunk_size=st.sampled_from([1, 2]), mode=st.sampled_from(["fwd", "rev"]))
def test_gradients_of_chunked_jacobians_equal_those_of_dense_ones(chunk_size, mode):
    x = sample("pair", "float64", 1)

    def loss(jacobian):
        return lambda x: total(jax.tree.map(jnp.square, jacobian(folded)(x)))

    chunked = functools.partial(chunked_jacobian, mode=mode, chunk_size=chunk_size)
    assert_trees_close(jax.jit(jax.grad(loss(chunked)))(x), jax.jit(jax.grad(loss(jax.jacrev)))(x), "float64")


@hypothesis.given(
    n=st.sampled_from([0, 1, 6, 7]),
    chunk_size=st.sampled_from([None, 1, 2, 4, 7, 70]),
    reducer=st.sampled_from([add, compensated_add, concat(), concat(-1)]),
    axis=st.sampled_from([0, 1, -1]),
)
def test_chunk_map_equals_vmap(n, chunk_size, reducer, axis):
    rows = jax.random.normal(jax.random.key(n), (n, 3))
    actual = chunk_map(jnp.sin, jnp.moveaxis(rows, 0, axis), chunk_size=chunk_size, in_axes=axis, reduce=reducer)
    whole = jnp.sin(rows)
    expected = jnp.moveaxis(whole, 0, reducer.axis) if isinstance(reducer, concat) else jnp.sum(whole, axis=0)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@hypothesis.given(values=st.lists(st.integers(-8, 8), min_size=3, max_size=3), chunk_size=st.sampled_from([1, 2, None]))
def test_small_integers_are_exact(values, chunk_size):
    """Where no operation rounds, chunked equals dense to the bit."""
    x = jnp.asarray(values, float)
    np.testing.assert_array_equal(
        chunked_jacfwd(cubes, chunk_size=chunk_size)(x), jnp.diag(3 * x**2) + jnp.outer(jnp.ones(3), 2 * x)
    )


def cubes(x):
    return x**3 + jnp.sum(x**2)
