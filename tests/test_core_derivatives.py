"""Derivatives of a T3's samples by its cores: right in every mode, and as lean as the streamed transpose."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from t3k.kernels.core_derivatives import t3_probes, t3_samples
from t3k.kernels.frames import corewise_frame
from t3k.kernels.probe_maps import point_probes
from t3k.kernels.sample_maps import point_samples
from t3k.kernels.types import T3Cores
from tests.trains import assert_trees_close, normal, quick_jit

SIZES, TUCKER, BONDS, ORDER, W, CHUNK = (4, 5), (2, 2), (1, 2, 1), 1, 5, 3


def draw_cores(seed: int) -> T3Cores:
    draw = normal(seed)
    tt = tuple(draw(a, k, b) for a, k, b in zip(BONDS[:-1], TUCKER, BONDS[1:], strict=True))
    return T3Cores(tuple(draw(k, o) for k, o in zip(TUCKER, SIZES, strict=True)), tt)


X, ALONG = draw_cores(0), draw_cores(1)
WW, PP = (tuple(normal(seed)(W, size) for size in SIZES) for seed in (2, 3))
INDEX = tuple(jax.random.randint(jax.random.key(i), (W,), 0, size) for i, size in enumerate(SIZES))


def probes(x: T3Cores, pp: Any) -> Any:
    return t3_probes(WW, pp, x, ORDER, chunk_size=CHUNK)


def plain_probes(x: T3Cores, pp: Any) -> Any:
    frame, point = corewise_frame(x)
    return point_probes(WW, pp, point, frame, ORDER, chunk_size=None)


def entries(x: T3Cores, pp: Any) -> Any:
    return t3_samples(INDEX, pp, x, ORDER, chunk_size=CHUNK)


def plain_entries(x: T3Cores, pp: Any) -> Any:
    return point_samples(INDEX, pp, corewise_frame(x)[0], ORDER, chunk_size=None)


def loss(measure: Any) -> Any:
    return lambda x, pp: sum(jnp.sum(jnp.sin(z)) for z in jax.tree.leaves(measure(x, pp)))


def hessian_product(fun: Any) -> Any:
    return lambda x, pp: jax.jvp(lambda x: jax.grad(fun)(x, pp), (x,), (ALONG,))[1]


MODES = {
    "reverse, by cores and directions": lambda f: jax.value_and_grad(f, argnums=(0, 1)),
    "forward": lambda f: lambda x, pp: jax.jvp(f, (x, pp), (ALONG, WW))[1],
    "forward over reverse": hessian_product,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("measure", "plain"), [(probes, plain_probes), (entries, plain_entries)])
def test_every_mode_gives_the_derivative_of_the_plain_map(mode, measure, plain):
    derivative = MODES[mode]
    expected = quick_jit(derivative(loss(plain)))(X, PP)
    assert_trees_close(quick_jit(derivative(loss(measure)))(X, PP), expected)


def test_stacks_are_differentiated_one_by_one():
    stack = jax.tree.map(lambda *xs: jnp.stack(xs), X, ALONG)
    gradients = quick_jit(jax.vmap(jax.grad(loss(probes)), in_axes=(0, None)))(stack, PP)
    expected = [quick_jit(jax.grad(loss(plain_probes)))(x, PP) for x in (X, ALONG)]
    assert_trees_close(gradients, jax.tree.map(lambda *xs: jnp.stack(xs), *expected))


def scratch(n_probes: int, pull_back: Any) -> int:
    """Bytes that a pull-back of given cotangents needs, at a size where the jets of all probes would be seen."""

    def array(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    x: Any = ((array(8, 16),) * 2, (array(1, 8, 8), array(8, 8, 1)))
    ww, zz = (array(n_probes, 16),) * 2, (array(ORDER + 1, n_probes, 16),) * 2
    analysis: Any = jax.jit(pull_back).lower(T3Cores(*x), ww, zz).compile().memory_analysis()
    return analysis.temp_size_in_bytes


def pull_back_to_cores(x: T3Cores, ww: Any, zz: Any) -> Any:
    return jax.vjp(lambda x: t3_probes(ww, ww, x, ORDER, chunk_size=64), x)[1](zz)


def test_reverse_mode_takes_the_memory_of_one_chunk():
    few, many = (scratch(n_probes, pull_back_to_cores) for n_probes in (1000, 100_000))
    assert abs(many - few) < 0.05 * few
