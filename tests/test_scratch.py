"""Scratch memory: the budget's words, the measurement and the line through it."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

from t3k.kernels.scratch import LinearScratch, fit_scratch, parse_memory, scratch_bytes

MATRIX = jax.ShapeDtypeStruct((100, 100), jnp.float64)


def sine_square(x):
    return jnp.sin(x) @ x


@pytest.mark.parametrize(
    ("memory", "expected"),
    [("2GB", 2 * 10**9), ("1 GiB", 2**30), ("0.5mb", 5 * 10**5), ("10kB", 10**4), ("7", 7), ("7 B", 7), (12, 12)],
)
def test_memory_is_read_in_decimal_and_binary_units(memory, expected):
    assert parse_memory(memory) == expected


@pytest.mark.parametrize("memory", ["", "GB", "-1GB", "1 XB", "1e9", "nan", 0, -5, "0GB"])
def test_nonsense_memory_is_refused(memory):
    with pytest.raises(ValueError, match="memory must be a positive"):
        parse_memory(memory)


@pytest.mark.parametrize("memory", [True, 1.5, None, b"1GB"])
def test_memory_of_a_wrong_type_is_refused(memory):
    with pytest.raises(TypeError, match="memory must be a positive"):
        parse_memory(memory)


def test_scratch_is_that_of_the_intermediate():
    assert scratch_bytes(sine_square, MATRIX) == 80_000


def test_scratch_is_measured_inside_jit_grad_and_vmap_without_entering_the_program():
    seen = []

    @jax.jit
    def program(x):
        seen.append(scratch_bytes(lambda y: sine_square(y), MATRIX))
        return jnp.sum(x**2)

    x = jnp.ones((2, 3))
    jax.grad(program)(x), jax.vmap(program)(x)
    assert set(seen) == {80_000}
    assert "dot_general" not in str(jax.make_jaxpr(program)(x))


def test_a_program_is_compiled_once_for_each_key():
    traces = []

    def program(x, *, power):
        traces.append(power)
        return jnp.sin(x) @ x**power

    for _ in range(2):
        for power in (1, 2):
            scratch_bytes(program, MATRIX, power=power)
            scratch_bytes(lambda x, power=power: program(x, power=power), MATRIX, key=("same", power))
    assert sorted(traces) == [1, 1, 2, 2]


def test_a_measured_program_with_a_key_is_let_go():
    def program(x):
        return x @ x

    alive = weakref.ref(program)
    scratch_bytes(program, MATRIX, key="let go")
    del program
    gc.collect()
    assert alive() is None


def test_the_line_through_two_measurements_gives_the_chunk_for_a_budget():
    line = fit_scratch(lambda chunk: 1000 + 8 * chunk, 8, 32)
    assert line == LinearScratch(1000.0, 8.0)
    assert (line.at(100), line.largest_within(1800), line.largest_within(1007)) == (1800, 100, None)


def test_a_flat_or_falling_line_still_gives_a_chunk():
    assert fit_scratch(lambda chunk: 100, 8, 32).largest_within(200) is not None
    assert fit_scratch(lambda chunk: 1000 - chunk, 8, 32).per_row == 0.0
