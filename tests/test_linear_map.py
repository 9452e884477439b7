"""A linear map with a known transpose: each transformation of JAX gives what it gives for the plain definition."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.linear_map import linear_map

A = jax.random.normal(jax.random.key(0), (4, 3))
X = jax.random.normal(jax.random.key(1), (3,))
INDEX = jnp.asarray([2, 0, 1, 2])


def plain(residuals, x):
    matrix, index = residuals
    return {"y": jnp.sin(matrix) @ x["a"], "z": x["b"][index]}


def transposed(residuals, y):
    matrix, index = residuals
    return {"a": jnp.sin(matrix).T @ y["y"], "b": jnp.zeros(3, y["z"].dtype).at[index].add(y["z"])}


def known(residuals, x):
    return linear_map(plain, transposed, residuals, x)


def loss(fun):
    def value(matrix, x):
        y = fun((matrix, INDEX), {"a": x, "b": x**2})
        return jnp.sum(y["y"] ** 3) + jnp.sum(jnp.sin(y["z"]))

    return value


def hessian_vector(fun):
    return lambda A, X: jax.jvp(jax.grad(fun, argnums=(0, 1)), (A, X), (2 * A, X))[1]


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(f, argnums=(0, 1)),
    "forward": lambda f: lambda A, X: jax.jvp(f, (A, X), (jnp.cos(A), X**2)),
    "forward over reverse": hessian_vector,
    "reverse over reverse": lambda f: jax.hessian(f, argnums=1),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f, argnums=(0, 1)), argnums=(0, 1)),
    "vmap of grad over residuals": lambda f: lambda A, X: jax.vmap(jax.grad(f), (0, None))(jnp.stack([A, 2 * A]), X),
    "grad of vmap over inputs": lambda f: jax.grad(
        lambda A, X: jax.vmap(f, (None, 0))(A, jnp.stack([X, 2 * X])).sum(), argnums=(0, 1)
    ),
    "grad of vmap over residuals": lambda f: jax.grad(
        lambda A, X: jax.vmap(f, (2, None))(jnp.stack([A, 2 * A], axis=2), X).sum(), argnums=(0, 1)
    ),
    "jit of grad of checkpoint": lambda f: jax.jit(jax.grad(jax.checkpoint(f), argnums=(0, 1))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transformation_is_that_of_the_definition(name):
    known_result, plain_result = (TRANSFORMS[name](loss(fun))(A, X) for fun in (known, plain))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12), known_result, plain_result)


def test_reverse_mode_runs_the_given_transpose():
    def wrong(residuals, y):
        return jax.tree.map(lambda x: 7 * x, transposed(residuals, y))

    def through(transpose):
        return jax.grad(loss(lambda residuals, x: linear_map(plain, transpose, residuals, x)), argnums=1)(A, X)

    np.testing.assert_allclose(through(wrong), 7 * through(transposed), rtol=1e-10)


def test_an_input_that_is_not_differentiated_is_left_alone():
    def value(a):
        return known((A, INDEX), {"a": a, "b": X})["y"].sum()

    np.testing.assert_allclose(jax.grad(value)(X), jnp.sin(A).sum(axis=0), rtol=1e-10)
