"""J^T J, J^T r, norms and the diagonal equal those of the stored Jacobian."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.jacobian_consumers import (
    chunked_column_norms,
    chunked_diagonal,
    chunked_jtj,
    chunked_jtr,
    chunked_row_norms,
)

X = {"a": jnp.arange(1.0, 4.0), "b": jnp.ones((2, 1))}
MODES = pytest.mark.parametrize("mode", ["fwd", "rev", "auto"])
CHUNKS = pytest.mark.parametrize("chunk_size", [None, 2, 4])


def fun(p):
    return jnp.sin(jnp.outer(p["a"], p["a"])), jnp.sum(p["b"]) * p["a"][:2]


def dense():
    """The Jacobian as a matrix, from JAX."""
    flat, unravel = jax.flatten_util.ravel_pytree(X)
    return jax.jacfwd(lambda v: jax.flatten_util.ravel_pytree(fun(unravel(v)))[0])(flat)


def split(vector, tree):
    return jax.flatten_util.ravel_pytree(tree)[1](vector)


def assert_trees_close(actual, expected):
    assert str(jax.tree.structure(actual)) == str(jax.tree.structure(expected))
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-14)


@MODES
@CHUNKS
def test_jtj(mode, chunk_size):
    blocks = chunked_jtj(fun, mode=mode, chunk_size=chunk_size)(X)
    assert str(jax.tree.structure(blocks)) == str(jax.tree.structure(jax.hessian(lambda p: jnp.sum(fun(p)[0]))(X)))
    gram = dense().T @ dense()
    assert_trees_close(blocks["a"], {"a": gram[:3, :3], "b": gram[:3, 3:].reshape(3, 2, 1)})
    assert_trees_close(blocks["b"], {"a": gram[3:, :3].reshape(2, 1, 3), "b": gram[3:, 3:].reshape(2, 1, 2, 1)})


@pytest.mark.parametrize("linearize", [True, False])
@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_jtj_recomputed_and_under_jit_and_grad(linearize, mode):
    def loss(gram):
        return lambda p: sum(jnp.sum(g**2) for g in jax.tree.leaves(gram(p)))

    chunked = chunked_jtj(fun, mode=mode, chunk_size=2, linearize=linearize)
    whole = chunked_jtj(fun, mode="rev", chunk_size=None)
    assert_trees_close(jax.jit(jax.grad(loss(chunked)))(X), jax.jit(jax.grad(loss(whole)))(X))


def test_jtr_is_of_the_value_or_of_a_residual():
    y = fun(X)
    flat = jax.flatten_util.ravel_pytree(y)[0]
    assert_trees_close(chunked_jtr(fun)(X), split(dense().T @ flat, X))
    ones = jax.tree.map(jnp.ones_like, y)
    assert_trees_close(chunked_jtr(fun, residual=ones)(X), split(dense().T @ jnp.ones_like(flat), X))
    value, gradient = chunked_jtr(fun, with_value=True)(X)
    assert_trees_close((value, gradient), (y, chunked_jtr(fun)(X)))
    with pytest.raises(ValueError, match="seed has"):
        chunked_jtr(fun, residual=jnp.ones(3))(X)


@MODES
@CHUNKS
def test_norms(mode, chunk_size):
    rows = chunked_row_norms(fun, mode=mode, chunk_size=chunk_size)(X)
    assert_trees_close(rows, split(jnp.linalg.norm(dense(), axis=1), fun(X)))
    columns = chunked_column_norms(fun, mode=mode, chunk_size=chunk_size)(X)
    assert_trees_close(columns, split(jnp.linalg.norm(dense(), axis=0), X))


def test_the_gradient_of_a_vanishing_norm_is_zero():
    gradient = jax.grad(lambda x: jnp.sum(chunked_row_norms(lambda x: x**2, chunk_size=1)(x)))(jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(gradient, [0.0, 2.0])


@MODES
@CHUNKS
def test_the_diagonal(mode, chunk_size):
    def square(p):
        return {"u": jnp.sin(p["a"]) * jnp.sum(p["b"]), "v": p["b"][:, 0] ** 2 * p["a"][0]}

    actual = chunked_diagonal(square, mode=mode, chunk_size=chunk_size)(X)
    jacobian = jax.jacfwd(square)(X)
    expected = {"u": jnp.diag(jacobian["u"]["a"]), "v": jnp.diag(jacobian["v"]["b"][..., 0])}
    assert_trees_close(actual, expected)


def test_products_that_are_not_defined_are_refused():
    with pytest.raises(ValueError, match="same sizes"):
        chunked_diagonal(lambda x: x[:2])(jnp.ones(3))
    for build in (chunked_jtj, chunked_jtr):
        with pytest.raises(TypeError, match="real"):
            build(jnp.abs)(jnp.ones(3, complex))
    with pytest.raises(TypeError):
        chunked_jtj(jnp.sin)(jnp.arange(3))


def test_float32_stays_float32():
    x = jnp.ones(3, jnp.float32)
    for build in (chunked_jtj, chunked_jtr, chunked_row_norms, chunked_column_norms, chunked_diagonal):
        assert build(jnp.sin)(x).dtype == jnp.float32
