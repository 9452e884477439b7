"""Applies and entries of tangents and their transposes, for all stacks, through the public functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels.dense import dense_apply_derivatives
from tests.api_problems import SHAPE, assert_trees_close, stacked, tensor, vectors

ORDER = 1
C, V, W = (2,), (3,), (2, 2)

dense = jax.jit(dense_apply_derivatives, static_argnums=3)


def indices(probes, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(-size, size, probes) for size in SHAPE)


def samples(kind, probes):
    at = vectors(probes) if kind == "apply" else indices(probes)
    units = at if kind == "apply" else tuple(np.eye(N)[x] for x, N in zip(at, SHAPE, strict=True))
    return at, vectors(probes, 1), units


def functions(kind):
    if kind == "apply":
        return t3k.tv_apply_derivatives, t3k.tv_apply_derivatives_transpose
    return t3k.tv_entries_derivatives, t3k.tv_entries_derivatives_transpose


@pytest.mark.parametrize("kind", ["apply", "entries"])
def test_stacks_of_samples_tangents_and_points_are_those_of_the_dense_tangents(kind):
    at, pp, units = samples(kind, W)
    v = t3k.MANIFOLD.randn(jax.random.key(0), t3k.MANIFOLD.frame(stacked(2)), V)
    forward, _ = functions(kind)
    found = forward(at, pp, v.variations, v.frame, ORDER, 3)
    assert found.shape == (ORDER + 1, *W, *V, *C)
    flat = [tuple(x.reshape(4, -1) for x in train) for train in (units, pp)]
    tensors = v.to_dense().reshape(6, *SHAPE)
    expected = np.stack([dense(tensor, *flat, ORDER) for tensor in tensors], axis=-1)
    np.testing.assert_allclose(found, expected.reshape(found.shape), atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["apply", "entries"])
@pytest.mark.parametrize("summed", [False, True])
def test_the_transpose_is_the_adjoint_for_every_stack(kind, summed):
    at, pp, _ = samples(kind, W)
    v = t3k.MANIFOLD.randn(jax.random.key(0), t3k.MANIFOLD.frame(stacked(2)), V)
    forward, transpose = functions(kind)
    r = np.random.default_rng(0).standard_normal((ORDER + 1, *W, *V, *C))
    gradient = t3k.T3Tangent(v.frame, tuple(transpose(r, at, pp, v.frame, ORDER, summed, 3)))
    assert gradient.stack_shape == ((*V, *C) if summed else (*W, *V, *C))
    pairs = zip(jax.tree.leaves(gradient.variations), jax.tree.leaves(v.variations), strict=True)
    axes = len(gradient.stack_shape)
    inner = sum((np.asarray(x) * np.asarray(y)).sum(axis=tuple(range(axes, x.ndim))) for x, y in pairs)
    product = (r * np.asarray(forward(at, pp, v.variations, v.frame, ORDER, 3))).sum(axis=0)
    np.testing.assert_allclose(inner, product.sum(axis=(0, 1)) if summed else product, atol=1e-12)


def test_the_methods_of_a_tangent_are_the_functions():
    v = t3k.MANIFOLD.randn(jax.random.key(0), tensor().frame())
    for kind in ("apply", "entries"):
        at, pp, _ = samples(kind, (4,))
        forward, transpose = functions(kind)
        expected = forward(at, pp, v.variations, v.frame, ORDER)
        assert_trees_close(getattr(v, f"{kind}_derivatives")(at, pp, ORDER), expected, 0)
        assert_trees_close(getattr(v, kind)(at), expected[0])
        r = jnp.ones((1, 4))
        gradient = transpose(r, at, None, v.frame, 0, True)
        assert_trees_close(
            getattr(t3k.T3Tangent, f"{kind}_transpose")(r[0], at, v.frame, True).variations.cores, gradient
        )


def test_of_a_point_they_are_those_of_its_dense_tensor():
    x = tensor()
    index = indices((4,))
    assert_trees_close(x.entries(index, chunk_size=3), x.to_dense()[index])
    assert_trees_close(x.apply(vectors((4,)), chunk_size=3), dense(x.to_dense(), vectors((4,)), vectors((4,)), 0)[0])


REFUSALS = [
    (
        lambda v, w: t3k.tv_apply_derivatives(w[:2], None, v.variations, v.frame, 0),
        ValueError,
        "ww must have one array",
    ),
    (lambda v, w: t3k.tv_apply_derivatives(w, None, v.variations, v.frame, 1), ValueError, "pp must be given"),
    (lambda v, w: t3k.tv_entries_derivatives(w, None, v.variations, v.frame, 0), TypeError, "must hold integers"),
    (lambda v, w: v.entries(([9], [0], [0])), IndexError, r"index\[0\] must be in \[-5, 5\)"),
    (lambda v, w: v.entries([[0]]), ValueError, "index must have one array of integers for each"),
    (lambda v, w: v.entries([[0], [0], [0, 1]]), ValueError, r"index\[2\] must have the shape of index\[0\]"),
    (
        lambda v, w: t3k.tv_apply_derivatives_transpose(np.ones((2, 4)), w, w, v.frame, 2),
        ValueError,
        "ztildes must have",
    ),
    (lambda v, w: v.apply(w, chunk_size=0), ValueError, "chunk_size must be an int >= 1"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSALS)
def test_bad_input_is_refused_in_words(call, kind, message):
    v = t3k.MANIFOLD.zeros(tensor().frame())
    with pytest.raises(kind, match=message):
        call(v, vectors((4,)))
