"""`jax.jacfwd` and `jax.jacrev` are the contract: layouts, arguments, dtypes, errors, transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacobian, chunked_jacrev, chunked_value_and_jacobian
from t3k.kernels.jacobian_consumers import (
    chunked_column_norms,
    chunked_diagonal,
    chunked_jtj,
    chunked_row_norms,
)

PAIRS = [(chunked_jacfwd, jax.jacfwd), (chunked_jacrev, jax.jacrev)]
BUILDERS = [
    chunked_jacfwd,
    chunked_jacrev,
    chunked_jacobian,
    chunked_value_and_jacobian,
    chunked_jtj,
    chunked_row_norms,
    chunked_column_norms,
    chunked_diagonal,
]
X = jnp.arange(1.0, 4.0)
Z = jax.lax.complex(X, X[::-1])
both_modes = pytest.mark.parametrize(("ours", "jaxs"), PAIRS)


def assert_trees_close(actual, expected, rtol=1e-12):
    assert str(jax.tree.structure(actual)) == str(jax.tree.structure(expected))
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, rtol=rtol, atol=1e-14)


def rotated(x):
    return x.astype(jnp.complex128) * (1 + 2j)


def tree_fun(p):
    return {"o": jnp.sin(p["a"]) * p["b"][0], "s": (jnp.sum(p["b"][1]) * p["c"], p["b"][0])}


TREE = {"a": jnp.arange(1.0, 5.0), "b": [jnp.float64(2.0), jnp.ones((2, 3))], "c": jnp.arange(2.0).reshape(1, 2)}


@both_modes
@pytest.mark.parametrize("chunk_size", [None, 1, 3, 5, 100, "auto"])
def test_pytrees_have_the_layout_of_jax(ours, jaxs, chunk_size):
    assert_trees_close(ours(tree_fun, chunk_size=chunk_size)(TREE), jax.jit(jaxs(tree_fun))(TREE))


@both_modes
@pytest.mark.parametrize("linearize", [True, False, "auto"])
def test_recomputing_equals_linearizing_once(ours, jaxs, linearize):
    assert_trees_close(ours(tree_fun, chunk_size=2, linearize=linearize)(TREE), jax.jit(jaxs(tree_fun))(TREE))


@both_modes
def test_a_list_of_two_is_not_mistaken_for_arguments(ours, jaxs):
    def product(p):
        return p[0] * p[1]

    assert_trees_close(ours(product, chunk_size=2)([X, X + 1]), jaxs(product)([X, X + 1]))


def three(x, y, z, *, scale=1.0, flag=False, name="sin"):
    wave = getattr(jnp, name)(x) * y
    return (wave * scale if flag else wave) + jnp.sum(z)


@both_modes
@pytest.mark.parametrize("argnums", [0, -1, 2, (0, 2), (-1, 0), [1], (1, -1)])
def test_argnums_may_be_several_and_negative(ours, jaxs, argnums):
    args = (X, X + 1, jnp.ones((2, 2)))
    assert_trees_close(ours(three, argnums, chunk_size=2)(*args), jaxs(three, argnums)(*args))


@both_modes
def test_other_arguments_may_be_anything(ours, jaxs):
    keywords = {"scale": 3.0, "flag": True, "name": "cos"}
    args = (X, X + 1, jnp.ones((2, 2)))
    assert_trees_close(ours(three, chunk_size=2)(*args, **keywords), jaxs(three)(*args, **keywords))


@both_modes
def test_auxiliary_data(ours, jaxs):
    def fun(x):
        return x**2, {"double": 2 * x, "count": 3}

    actual, expected = ours(fun, has_aux=True, chunk_size=2)(X), jaxs(fun, has_aux=True)(X)
    assert_trees_close(actual[0], expected[0])
    np.testing.assert_allclose(actual[1]["double"], expected[1]["double"])
    assert int(actual[1]["count"]) == 3
    with pytest.raises(TypeError, match="pair"):
        ours(lambda x: x, has_aux=True)(X)


@both_modes
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtypes_are_kept(ours, jaxs, dtype):
    x = X.astype(dtype)
    rtol = float(jnp.finfo(dtype).eps)
    assert_trees_close(ours(lambda x: x * x, chunk_size=2)(x), jaxs(lambda x: x * x)(x), rtol)


@both_modes
def test_mixed_dtypes(ours, jaxs):
    p = {"a": X, "b": X.astype(jnp.float32)}

    def fun(p):
        return p["a"] * p["b"].astype(jnp.float64), p["b"] ** 2

    with jax.numpy_dtype_promotion("standard"):  # which JAX's basis of mixed dtypes needs
        expected = jaxs(fun)(p)
    assert_trees_close(ours(fun, chunk_size=2)(p), expected)


@both_modes
def test_holomorphic_functions(ours, jaxs):
    z = Z
    assert_trees_close(ours(jnp.sin, holomorphic=True, chunk_size=2)(z), jaxs(jnp.sin, holomorphic=True)(z))
    for bad in (X, z):
        with pytest.raises(TypeError, match="requires complex"):
            ours(jnp.real, holomorphic=True)(bad)


def test_complex_is_accepted_where_jax_does():
    z = Z
    assert_trees_close(chunked_jacfwd(rotated, chunk_size=2)(X), jax.jacfwd(rotated)(X))
    real = chunked_jacrev(lambda z: jnp.abs(z) ** 2, chunk_size=2)(z)
    assert_trees_close(real, jax.jacrev(lambda z: jnp.abs(z) ** 2)(z))
    assert_trees_close(chunked_jacobian(lambda z: jnp.abs(z) ** 2, chunk_size=2)(z), real)
    assert chunked_jacobian(lambda x: rotated(x[:1]))(X).dtype == jnp.complex128


@pytest.mark.parametrize(
    ("ours", "jaxs", "fun", "x"),
    [
        (chunked_jacrev, jax.jacrev, rotated, X),
        (chunked_jacfwd, jax.jacfwd, lambda z: jnp.abs(z) ** 2, Z),
        (chunked_jacfwd, jax.jacfwd, jnp.conj, Z),
        (chunked_jacrev, jax.jacrev, jnp.conj, Z),
        (chunked_jacrev, jax.jacrev, lambda x: x.astype(float), jnp.arange(3)),
        (chunked_jacfwd, jax.jacfwd, lambda x: x.astype(float), jnp.arange(3)),
        (chunked_jacrev, jax.jacrev, lambda x: x.astype(int), X),
        (chunked_jacrev, jax.jacrev, lambda x: x, "text"),
        (chunked_jacfwd, jax.jacfwd, lambda x: "text", X),
        (chunked_jacfwd, jax.jacfwd, lambda x: x, True),
    ],
)
def test_what_jax_refuses_is_refused_alike(ours, jaxs, fun, x):
    with pytest.raises(TypeError):
        jaxs(fun)(x)
    with pytest.raises(TypeError):
        ours(fun)(x)


def test_integers_have_zero_derivatives_as_in_jax():
    def fun(x, k):
        return x * k, jnp.sum(x)

    args = (X, jnp.arange(3, dtype=jnp.int32).astype(jnp.int64))
    ours = chunked_jacrev(lambda x, k: x * k.astype(x.dtype), (0, 1), allow_int=True, chunk_size=2)(*args)
    assert_trees_close(ours, jax.jacrev(lambda x, k: x * k.astype(x.dtype), (0, 1), allow_int=True)(*args))

    def rounded(x):
        return {"twice": x * 2, "whole": x.astype(jnp.int32)}

    assert_trees_close(chunked_jacfwd(rounded, chunk_size=2)(X), jax.jacfwd(rounded)(X))


@both_modes
def test_empty_and_scalar_inputs_and_outputs(ours, jaxs):
    empty = jnp.zeros((0, 2))
    for fun, x in ((jnp.sin, empty), (jnp.sin, jnp.float64(1.0)), (lambda x: jnp.ones((0,)), X), (jnp.sin, 1.0)):
        actual, expected = ours(fun, chunk_size=2)(x), jaxs(fun)(x)
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(actual, expected)


@both_modes
def test_bad_argnums_are_refused(ours, jaxs):
    del jaxs
    with pytest.raises(ValueError, match="argnums=2"):
        ours(jnp.sin, 2)(X)
    for argnums in (1.0, "0", (0.5,)):
        with pytest.raises(TypeError, match="argnums must be"):
            ours(jnp.sin, argnums)
    with pytest.raises(TypeError, match="callable"):
        ours(3)


@pytest.mark.parametrize("builder", BUILDERS)
def test_chunk_size_means_the_same_everywhere(builder):
    for below in (0, -3):
        with pytest.raises(ValueError, match="chunk_size must be"):
            builder(jnp.sin, chunk_size=below)
    for bad in (True, 2.5, np.float64(2.0), np.True_):
        with pytest.raises(TypeError, match="chunk_size must be"):
            builder(jnp.sin, chunk_size=bad)
    with pytest.raises(ValueError, match="chunk_size must be"):
        builder(jnp.sin, chunk_size="big")
    with pytest.raises(ValueError, match="memory"):
        builder(jnp.sin, chunk_size=2, memory="1GB")
    with pytest.raises(ValueError, match="linearize"):
        builder(jnp.sin, linearize="often")
    builder(jnp.sin, chunk_size=np.int64(2))(X)


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="mode must be"):
        chunked_jacobian(jnp.sin, mode="sideways")


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
def test_the_value_comes_with_the_jacobian(mode):
    value, jacobian = chunked_value_and_jacobian(tree_fun, mode=mode, chunk_size=3)(TREE)
    assert_trees_close(value, tree_fun(TREE))
    assert_trees_close(jacobian, jax.jacfwd(tree_fun)(TREE))
    (value, aux), _ = chunked_value_and_jacobian(lambda x: (x, 2 * x), has_aux=True)(X)
    np.testing.assert_allclose(aux, 2 * value)


@pytest.mark.parametrize(("shape", "mode"), [((3, 5), "fwd"), ((5, 3), "rev"), ((4, 4), "fwd")])
def test_auto_mode_follows_the_sizes(shape, mode):
    n, m = shape
    A = jnp.ones((m, n))
    text = str(jax.make_jaxpr(chunked_jacobian(lambda x: A @ x, chunk_size=1))(jnp.ones(n)))
    assert f"length={n if mode == 'fwd' else m}" in text
