"""What chunking is for: scratch, by XLA's own account of the compiled program, on abstract shapes."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacrev
from t3k.kernels.jacobian_consumers import (
    chunked_column_norms,
    chunked_diagonal,
    chunked_jtj,
    chunked_jtr,
    chunked_row_norms,
)

MB = 10**6


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float64)


def analyse(fun, *shapes) -> Any:
    return jax.jit(fun).lower(*shapes).compile().memory_analysis()


def scratch(fun, *shapes):
    return analyse(fun, *shapes).temp_size_in_bytes


def two_sums(x):
    return jnp.stack([jnp.sum(jnp.sin(x)), jnp.sum(x**2)])


def layer(x, weight):
    return jnp.tanh(weight @ jnp.sin(x))


def network(x, weights):
    for weight in weights:
        x = jnp.tanh(weight @ x)
    return x


@pytest.mark.parametrize("linearize", [True, False, "auto"])
def test_no_identity_is_formed(linearize):
    jacobian = chunked_jacfwd(two_sums, chunk_size=16, linearize=linearize)
    assert scratch(jacobian, shape(20_000)) <= 8 * MB
    assert scratch(chunked_jacrev(two_sums, chunk_size=1), shape(20_000)) <= MB


@pytest.mark.parametrize("builder", [chunked_jacfwd, chunked_jacrev])
@pytest.mark.parametrize("chunk_size", [32, 33])  # 33 does not divide 2000
def test_chunks_go_into_their_place_in_the_result(builder, chunk_size):
    analysis = analyse(builder(layer, chunk_size=chunk_size), shape(2000), shape(2000, 2000))
    assert analysis.temp_size_in_bytes <= 1.5 * MB
    assert analysis.output_size_in_bytes == 2000 * 2000 * 8


@pytest.mark.parametrize("builder", [chunked_jacfwd, chunked_jacrev])
def test_blocks_of_several_leaves_go_into_their_places_too(builder):
    def fun(p):
        return jnp.tanh(p["a"] * 2), p["b"] * jnp.sum(p["a"])

    assert scratch(builder(fun, chunk_size=32), {"a": shape(1000), "b": shape(1000)}) <= MB


@pytest.mark.parametrize("builder", [chunked_jacfwd, chunked_jacrev])
def test_gradients_of_a_jacobian_keep_one_chunk_of_residuals(builder):
    def gradient(chunk_size):
        jacobian = builder(network, chunk_size=chunk_size)
        return jax.grad(lambda x, weights: jnp.sum(jacobian(x, weights) ** 2))

    shapes = shape(500), [shape(500, 500)] * 20
    assert scratch(gradient(10), *shapes) <= 10 * MB
    if builder is chunked_jacfwd:
        assert scratch(gradient(None), *shapes) > 50 * MB


def tall(x, matrix):
    return jnp.sin(matrix @ x)


TALL = shape(200), shape(20_000, 200)
J_BYTES = 20_000 * 200 * 8


@pytest.mark.parametrize("builder", [chunked_jtj, chunked_row_norms, chunked_column_norms])
@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_products_never_store_the_jacobian(builder, mode):
    assert scratch(builder(tall, mode=mode, chunk_size=8), *TALL) < J_BYTES / 7


def test_one_pullback_and_a_diagonal_never_store_it_either():
    assert scratch(chunked_jtr(tall), *TALL) < J_BYTES / 50
    assert scratch(chunked_diagonal(layer, chunk_size=8), shape(2000), shape(2000, 2000)) < MB


def test_a_seed_costs_its_directions_only():
    x, seed = shape(20_000), shape(20_000, 3)
    assert scratch(lambda x, s: chunked_jacfwd(jnp.sin, chunk_size=1, seed=s)(x), x, seed) < 2 * MB


def stacked(x):
    for _ in range(20):
        x = x * (1 - x)
    return jnp.sum(x.reshape(100, -1), axis=1)


def test_recomputing_saves_the_residuals():
    once, anew = (
        scratch(chunked_jacfwd(stacked, chunk_size=1, linearize=flag), shape(100_000)) for flag in (True, False)
    )
    assert anew < once / 2


def test_auto_recomputes_where_the_residuals_do_not_fit():
    auto = scratch(chunked_jacfwd(stacked, chunk_size="auto", memory="12MB"), shape(100_000))
    assert auto <= 12 * MB
