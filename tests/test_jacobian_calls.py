"""Calling chunked Jacobians: one trace, one compilation, transformations, seeds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacrev
from tests.test_jacobian_contract import TREE, X, assert_trees_close, both_modes, tree_fun


@both_modes
def test_functions_may_branch_on_values_when_called_eagerly(ours, jaxs):
    traces = []

    def fun(x, k, eps):
        traces.append(k)
        return (x * k if x[0] < 2 else x) + (1.0 if eps > 0 else 0.0)

    for shift in (0.0, 5.0):
        assert_trees_close(ours(fun, chunk_size=2)(X + shift, 3, 0.1), jaxs(fun)(X + shift, 3, 0.1))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(ours(fun))(X, 3, 0.1)


@both_modes
@pytest.mark.parametrize("chunk_size", [None, 2, "auto"])
def test_fun_is_traced_once_and_eager_calls_compile_once(ours, jaxs, chunk_size):
    del jaxs
    traces = []

    def fun(x, scale):
        traces.append(x)
        return jnp.sin(x) * scale

    for turn in range(3):
        ours(fun, chunk_size=chunk_size)(X + turn, float(turn))
    assert len(traces) == 1
    assert ours(fun) == ours(fun)
    assert hash(ours(fun)) == hash(ours(fun))
    assert ours(fun) != ours(fun, chunk_size=3)


def test_measuring_does_not_trace_fun_again():
    traces = []

    def fun(x):
        traces.append(x)
        return jnp.sum(jnp.sin(jnp.outer(x, x)) @ jnp.cos(jnp.outer(x, x)), axis=1)

    chunked_jacfwd(fun, chunk_size="auto")(jnp.linspace(0.0, 1.0, 200))
    assert len(traces) == 1


def test_static_values_are_told_apart_by_type():
    def fun(x, k):
        return x * (10.0 if k is True else 1.0)

    jacobian = chunked_jacfwd(fun, chunk_size=2)
    assert (float(jacobian(X, 1)[0, 0]), float(jacobian(X, True)[0, 0])) == (1.0, 10.0)


def test_methods_partials_and_unhashable_callables_work():
    class Model:
        __hash__ = None  # type: ignore[assignment]

        def __init__(self, scale):
            self.scale = scale

        def __eq__(self, other):
            return self.scale == other.scale

        def __call__(self, x):
            return self.scale * x

    for fun in (Model(2.0), Model(2.0).__call__, functools.partial(jnp.multiply, 2.0)):
        np.testing.assert_allclose(chunked_jacfwd(fun, chunk_size=2)(X), 2 * jnp.eye(3))


@both_modes
def test_under_jit_vmap_and_grad(ours, jaxs):
    def loss(build):
        return lambda p: sum(jnp.sum(block**2) for block in jax.tree.leaves(build(tree_fun)(p)))

    chunked = functools.partial(ours, chunk_size=3)
    assert_trees_close(jax.jit(jax.grad(loss(chunked)))(TREE), jax.jit(jax.grad(loss(jaxs)))(TREE))
    stacked = jax.tree.map(lambda x: jnp.stack([x, x + 1]), TREE)
    assert_trees_close(jax.jit(jax.vmap(chunked(tree_fun)))(stacked), jax.jit(jax.vmap(jaxs(tree_fun)))(stacked))
    hessian = chunked(jaxs(lambda x: jnp.sum(jnp.sin(x) ** 2)))
    assert_trees_close(jax.jit(hessian)(X), jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 2))(X))


@both_modes
def test_fun_may_close_over_what_is_being_differentiated(ours, jaxs):
    def loss(build):
        return lambda w: jnp.sum(build(lambda x: jnp.sin(w * x))(X) ** 2)

    chunked = functools.partial(ours, chunk_size=2)
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        assert_trees_close(transform(loss(chunked))(X + 1), jax.grad(loss(jaxs))(X + 1))


def test_custom_rules_are_used():
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))
    np.testing.assert_allclose(chunked_jacrev(clipped, chunk_size=2)(X), 0.5 * jnp.eye(3))
    with pytest.raises(TypeError):
        chunked_jacfwd(clipped)(X)


@both_modes
def test_a_seed_compresses_the_jacobian(ours, jaxs):
    A = jnp.arange(12.0).reshape(4, 3)

    def fun(x):
        return jnp.sin(A @ x)

    forward = ours is chunked_jacfwd
    seed = jnp.arange(15.0).reshape(3, 5) if forward else jnp.arange(20.0).reshape(5, 4)
    dense = jaxs(fun)(X)
    expected = dense @ seed if forward else seed @ dense
    for chunk_size in (None, 2, 3, "auto"):
        for given in (seed, seed.astype(int)):
            np.testing.assert_allclose(ours(fun, chunk_size=chunk_size, seed=given)(X), expected, rtol=1e-12)
    for bad in (seed.T, [seed], seed[0]):
        with pytest.raises(ValueError, match="seed"):
            ours(fun, seed=bad)(X)


def test_a_coloured_tridiagonal_jacobian_is_recovered_from_three_directions():
    x = jnp.linspace(0.0, 1.0, 10)

    def stencil(x):
        return jnp.sin(x).at[1:].add(x[:-1] ** 2).at[:-1].add(x[1:] ** 3)

    colours = jnp.arange(10) % 3
    compressed = chunked_jacfwd(stencil, chunk_size=2, seed=jax.nn.one_hot(colours, 3, dtype=x.dtype))(x)
    dense = jax.jacfwd(stencil)(x)
    rows, columns = np.nonzero(np.asarray(dense))
    np.testing.assert_allclose(compressed[rows, colours[columns]], dense[rows, columns])


def test_a_seed_over_pytrees_has_the_inputs_structure():
    seed = jax.tree.map(lambda x: jnp.ones((*x.shape, 2)), TREE)
    actual = chunked_jacfwd(tree_fun, chunk_size=1, seed=seed)(TREE)
    column = jax.jvp(tree_fun, (TREE,), (jax.tree.map(jnp.ones_like, TREE),))[1]
    assert_trees_close(actual, jax.tree.map(lambda c: jnp.stack([c, c], axis=-1), column))
