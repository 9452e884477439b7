"""Coordinates are a vector space with the dot product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.frames import corewise_frame
from t3k.kernels.t3 import random_cores
from t3k.kernels.types import T3Cores
from t3k.kernels.variations import random_variations, variation_inner, variation_norm, zero_variations
from tests.structures import NAMES, assert_close, example, framed


def flat(v):
    return np.concatenate([np.asarray(leaf).reshape(-1) for leaf in jax.tree.leaves(v)])


@pytest.mark.parametrize("name", NAMES)
def test_inner_product_is_the_dot_product_of_all_entries(name):
    _, frame, v = framed(name)
    w = random_variations(jax.random.key(7), frame)
    assert_close(variation_inner(v, w), flat(v) @ flat(w))
    assert_close(variation_norm(v), np.linalg.norm(flat(v)))


def test_norm_of_the_zero_tangent_is_0_with_derivative_0():
    zero = zero_variations(framed("minimal")[1])
    value, gradient = jax.value_and_grad(variation_norm)(zero)
    assert value == 0
    assert not np.any(flat(gradient))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64])
def test_variations_have_the_dtype_of_the_frame(dtype):
    frame, _ = corewise_frame(example("over-large", dtype=dtype))
    v = random_variations(jax.random.key(0), frame)
    assert {leaf.dtype for leaf in jax.tree.leaves((v, variation_norm(v)))} == {jnp.dtype(dtype)}


def test_variations_of_a_stacked_frame_are_stacked():
    x = random_cores(jax.random.key(0), (3,) * 4, (2,) * 4, (2,) * 5)
    frame, _ = corewise_frame(T3Cores(jnp.stack(x.tucker), jnp.stack(x.tt)))
    assert [jnp.asarray(train).shape for train in zero_variations(frame)] == [(4, 2, 3), (4, 2, 2, 2)]
