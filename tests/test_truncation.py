"""Truncation: exact when ranks suffice, quasi-optimal otherwise, with first derivatives that are right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.ranks import cap_ranks, minimal_ranks
from t3k.kernels.t3 import add, ranks_of, to_dense
from t3k.kernels.truncation import project_to_ranks, truncate, truncate_tolerance
from tests.structures import (
    NAMES,
    STRUCTURES,
    assert_close,
    best_bound,
    dense_t3,
    example,
    plus,
    quick_jit,
    round_to,
    times,
    zeros_like,
)


@pytest.mark.parametrize("name", NAMES)
def test_truncation_is_exact_when_the_ranks_suffice(name):
    x = example(name)
    doubled = add(x, x)
    rounded = round_to(doubled, *STRUCTURES[name][1:])
    assert_close(dense_t3(*rounded), 2 * dense_t3(*x))
    assert ranks_of(rounded)[1:] == minimal_ranks(*STRUCTURES[name])


@pytest.mark.parametrize(
    ("name", "n", "r"),
    [
        ("minimal", (2, 2, 2), (1, 2, 2, 1)),
        ("over-large", (2, 3, 2), (1, 2, 2, 1)),
        ("a run", (1, 2, 2, 2, 1), (1, 1, 2, 2, 1, 1)),
        ("matrix", (2, 1), (1, 2, 1)),
    ],
)
def test_truncation_is_within_the_bound_of_the_discarded_singular_values(name, n, r):
    array = dense_t3(*example(name))
    rounded = round_to(example(name), n, r)
    n, r = minimal_ranks(array.shape, n, r)
    assert ranks_of(rounded) == (array.shape, n, r)
    assert np.linalg.norm((dense_t3(*rounded) - array).reshape(-1)) <= best_bound(array, n, r) * (1 + 1e-12)


def test_truncation_of_a_matrix_is_the_best_one():
    array = dense_t3(*example("matrix"))
    rounded = dense_t3(*round_to(example("matrix"), (1, 1), (1, 1, 1)))
    assert_close(jnp.linalg.norm(rounded - array), np.linalg.svd(array, compute_uv=False)[1])


@pytest.mark.parametrize("name", NAMES)
def test_result_is_left_orthogonal(name):
    x = round_to(example(name), *STRUCTURES[name][1:])
    for U, G in zip(x.tucker, x.tt[:-1], strict=False):
        assert_close(np.einsum("akb,akc->bc", G, G), np.eye(G.shape[2]))
        assert_close(U @ U.T, np.eye(U.shape[0]))


@pytest.mark.parametrize("name", ["matrix", "over-large"])
def test_zero_truncates_to_zero_with_a_finite_derivative(name):
    zero = zeros_like(example(name))
    value, tangent = quick_jit(
        lambda x, v: jax.jvp(lambda y: to_dense(truncate(y, *STRUCTURES[name][1:])), (x,), (v,))
    )(zero, example(name))
    assert not np.any(value)
    assert np.all(np.isfinite(tangent))


@pytest.mark.parametrize(
    ("name", "n", "r"),
    [
        ("one mode", (1,), (1, 1)),
        ("over-large", (2, 3, 2), (1, 2, 2, 1)),
    ],
)
def test_gradient_is_that_of_central_differences(name, n, r):
    x, v, step = example(name), example(name, seed=1), 1e-5

    def function(x):
        return jnp.sum(jnp.sin(to_dense(truncate(x, n, r)) / 4))

    loss = quick_jit(function)
    difference = (loss(plus(x, times(step, v))) - loss(plus(x, times(-step, v)))) / (2 * step)
    gradient = quick_jit(jax.grad(function))(x)
    along = sum(jnp.sum(a * b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(v), strict=True))
    assert_close(along, difference, 1e-7)


@pytest.mark.parametrize("rtol", [0.5, 0.1, 1e-12])
def test_tolerance_is_honoured(rtol):
    x = example("a run")
    rounded, array = truncate_tolerance(x, rtol), dense_t3(*x)
    error = np.linalg.norm((dense_t3(*rounded) - array).reshape(-1))
    assert error <= rtol * np.linalg.norm(array.reshape(-1))
    assert sum(ranks_of(rounded)[2]) <= sum(STRUCTURES["a run"][2])


def test_tolerance_finds_the_ranks_of_the_tensor():
    x = example("minimal")
    assert ranks_of(truncate_tolerance(add(x, x), 1e-10)) == STRUCTURES["minimal"]


def test_absolute_tolerance_counts_too():
    x = example("minimal")
    assert ranks_of(truncate_tolerance(x, 0.0, atol=1e6))[1:] == ((1, 1, 1), (1, 1, 1, 1))


def test_caps_are_honoured_edge_by_edge():
    caps = list(np.array([1, 3, 3])), list(np.array([1, 1, 3, 1]))
    _, n, r = ranks_of(truncate_tolerance(example("minimal"), 1e-12, 0.0, *caps))
    assert (n, r) == (cap_ranks(n, caps[0]), cap_ranks(r, caps[1])) == ((1, 3, 3), (1, 1, 3, 1))
    assert ranks_of(round_to(example("minimal"), (1, 3, 3), (1, 1, 3, 1)))[1:] == (n, r)


def test_tolerance_refuses_to_be_traced():
    with pytest.raises(TypeError, match="truncate_tolerance chooses ranks"):
        quick_jit(lambda x: truncate_tolerance(x, 1e-3))(example("matrix"))


def test_ranks_that_are_not_minimal_are_cut_as_they_come():
    x = project_to_ranks(example("minimal"), (1, 3, 3), (1, 2, 3, 1))
    assert ranks_of(x)[1:] == ((1, 3, 3), (1, 1, 3, 1))


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 5e-2)])
def test_dtype_is_kept(dtype, tolerance):
    x = example("minimal", dtype=dtype)
    rounded = round_to(add(x, x), *STRUCTURES["minimal"][1:])
    assert {leaf.dtype for leaf in jax.tree.leaves(rounded)} == {jnp.dtype(dtype)}
    assert_close(dense_t3(*rounded), 2 * dense_t3(*x), tolerance)


def test_a_stack_of_tensors_is_a_vmap():
    ranks = (2, 2, 2), (1, 2, 2, 1)
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), example("minimal", 0), example("minimal", 1))
    stacked = quick_jit(jax.vmap(lambda x: to_dense(truncate(x, *ranks))))(both)
    for j in range(2):
        assert_close(stacked[j], dense_t3(*round_to(example("minimal", j), *ranks)))
