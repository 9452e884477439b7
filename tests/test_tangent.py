import copy
import pickle
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import assert_trees_close, dense_samples, residuals, stacked, tensor, vectors

ORDER = 1


def tangent(stack=(), seed=1):
    return t3k.MANIFOLD.randn(jax.random.key(seed), tensor().frame(), stack)


def transpose(r, ww, pp, frame, kept):
    return t3k.T3Tangent.probe_derivatives_transpose(r, ww, pp, frame, ORDER, sum_over_probes=not kept)


@pytest.mark.parametrize("probes", [(), (1,), (2, 3)])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_derivatives_are_those_of_the_dense_tangent(probes, stack):
    v, ww, pp = tangent(stack), vectors(probes), vectors(probes, 1)
    zz = v.probe_derivatives(ww, pp, ORDER)
    flat = [tuple(a.reshape(-1, a.shape[-1]) for a in train) for train in (ww, pp)]
    dense = v.to_dense().reshape(-1, *v.shape)
    expected = [dense_samples(one, *flat, ORDER) for one in dense]
    stacked_up = jax.tree.map(lambda *z: jnp.stack(z, 2).reshape(ORDER + 1, *probes, *stack, z[0].shape[-1]), *expected)
    assert_trees_close(zz, stacked_up)


@pytest.mark.parametrize("probes", [(), (1,), (2, 3)])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_transpose_is_the_adjoint(probes, stack):
    """<J v, r> = <v, J^T r>, for probes that are summed and for probes that are kept apart."""
    v, ww, pp = tangent(), vectors(probes), vectors(probes, 1)
    r = residuals(probes, ORDER, stack)
    zz = v.probe_derivatives(ww, pp, ORDER)
    kept = transpose(r, ww, pp, v.frame, kept=True)
    assert kept.stack_shape == (*probes, *stack)
    lift = (slice(None),) * (1 + len(probes)) + (None,) * len(stack)
    axes_of = [(0, a.ndim - 1) for a in r]
    expected = sum((a * z[lift]).sum(axis=axes) for a, z, axes in zip(r, zz, axes_of, strict=True))
    assert_trees_close(t3k.COREWISE.inner(kept, _spread(v, kept)), expected)
    summed = transpose(r, ww, pp, v.frame, kept=False)
    assert summed.stack_shape == stack
    over = tuple(range(len(probes)))
    assert_trees_close(summed.variations, jax.tree.map(lambda leaf: leaf.sum(over), kept.variations), 1e-12)


def _spread(v, like):
    """v as a stack of equal tangents."""
    spread = jax.tree.map(lambda a, b: jnp.broadcast_to(a, b.shape), v.variations, like.variations)
    return t3k.T3Tangent(v.frame, spread)


def test_a_stack_of_base_points_is_a_loop_over_them():
    xs, ww, pp = stacked(2), vectors((2, 2)), vectors((2, 2), 1)
    frames = xs.frame()
    vs = t3k.MANIFOLD.randn(jax.random.key(3), frames, (3,))
    assert vs.stack_shape == (3, 2)
    r = residuals((2, 2), ORDER, (3, 2))
    zz, gg = vs.probe_derivatives(ww, pp, ORDER), transpose(r, ww, pp, frames, kept=False)
    kk = transpose(r, ww, pp, frames, kept=True)
    for c in range(2):
        frame = jax.tree.map(lambda leaf, c=c: leaf[c], frames)
        v = t3k.T3Tangent(frame, jax.tree.map(lambda leaf, c=c: leaf[:, c], vs.variations))
        assert_trees_close(v.probe_derivatives(ww, pp, ORDER), tuple(z[..., c, :] for z in zz))
        one = tuple(a[..., c, :] for a in r)
        assert_trees_close(transpose(one, ww, pp, frame, kept=False).variations, _at(gg, c, 1), 1e-11)
        assert_trees_close(transpose(one, ww, pp, frame, kept=True).variations, _at(kk, c, 3), 1e-11)


def _at(v, c, axis):
    return jax.tree.map(lambda leaf: jnp.take(leaf, c, axis=axis), v.variations)


def test_order_zero_is_the_plain_probe():
    v, ww = tangent(), vectors()
    assert_trees_close(v.probe(ww), tuple(z[0] for z in v.probe_derivatives(ww, ww, 2)))
    r = residuals((4,), 0)
    plain = t3k.T3Tangent.probe_transpose(tuple(z[0] for z in r), ww, v.frame, sum_over_probes=True)
    full = t3k.T3Tangent.probe_derivatives_transpose(r, ww, ww, v.frame, 0, sum_over_probes=True)
    assert_trees_close(plain.variations, full.variations)


def test_no_probes_give_no_gradient():
    empty = tuple(np.zeros((0, n)) for n in tensor().shape)
    r = tuple(np.zeros((2, 0, n)) for n in tensor().shape)
    gradient = t3k.T3Tangent.probe_derivatives_transpose(r, empty, empty, tensor().frame(), 1, sum_over_probes=True)
    assert all(not leaf.any() for leaf in jax.tree.leaves(gradient.variations))
    assert [z.shape for z in tensor().probe(empty)] == [(0, 5), (0, 6), (0, 7)]


def test_raw_trains_are_frames_and_variations_too():
    v, ww = tangent(), vectors()
    zz = t3k.tv_probe_derivatives(ww, ww, tuple(v.variations), tuple(v.frame), ORDER)
    assert_trees_close(zz, v.probe_derivatives(ww, ww, ORDER))
    gradient = t3k.tv_probe_derivatives_transpose(zz, ww, ww, tuple(v.frame), ORDER, True, chunk_size=2)
    assert_trees_close(tuple(gradient), tuple(transpose(zz, ww, ww, v.frame, kept=False).variations))


def test_arithmetic_stays_in_the_frame():
    v, w = tangent(), tangent(seed=2)
    assert_trees_close((v + 2 * w - v / 2).to_dense(), 0.5 * v.to_dense() + 2 * w.to_dense())
    assert_trees_close((-v).to_dense(), -v.to_dense())
    assert_trees_close(v.to_t3(include_point=True).to_dense(), tensor().to_dense() + v.to_dense(), 1e-12)


def test_geometry_has_the_metric_of_tensors():
    v, w = tangent((2,)), tangent((2,), 2)
    dense = [x.to_dense().reshape(2, -1) for x in (v, w)]
    assert_trees_close(t3k.MANIFOLD.inner(v, w), (dense[0] * dense[1]).sum(-1), 1e-12)
    assert_trees_close(t3k.MANIFOLD.norm(v), jnp.linalg.norm(dense[0], axis=-1), 1e-12)
    loose = t3k.COREWISE.randn(jax.random.key(5), v.frame)
    same = t3k.MANIFOLD.project_oblique(loose)
    assert_trees_close(same.to_dense(), loose.to_dense(), 1e-11)
    assert_trees_close(t3k.MANIFOLD.transport(v.__class__(v.frame, _first(v)), v.frame).variations, _first(v), 1e-11)


def _first(v):
    return jax.tree.map(lambda leaf: leaf[0], v.variations)


@pytest.mark.parametrize("geometry", [t3k.MANIFOLD, t3k.COREWISE])
def test_retraction_is_of_second_order(geometry):
    x = tensor().minimal()
    frame = geometry.frame(x)
    v = geometry.randn(jax.random.key(2), frame)
    point, direction = x.to_dense(), v.to_dense()
    errors = [
        float(jnp.linalg.norm((geometry.retract(v * t).to_dense() - point - t * direction).ravel()))
        for t in (1e-2, 1e-3)
    ]
    assert errors[1] < errors[0] / 50


def test_gradient_through_probe_and_retraction_is_finite_and_right():
    """Also at v = 0, where the truncation has singular values of exactly zero."""
    frame, ww = tensor().frame(), vectors()

    @jax.jit
    def loss(variations):
        moved = t3k.MANIFOLD.retract(t3k.T3Tangent(frame, variations))
        return sum(jnp.sin(z).sum() for z in moved.probe(ww))

    direction = tangent(seed=4).variations
    gradient, slope = jax.jit(jax.grad(loss)), jax.jit(lambda v: jax.jvp(loss, (v,), (direction,))[1])
    for v in (t3k.MANIFOLD.zeros(frame).variations, (0.3 * tangent(seed=3)).variations):
        forward, backward = (jax.tree.map(lambda x, y, h=h: x + h * y, v, direction) for h in (1e-5, -1e-5))
        central = (loss(forward) - loss(backward)) / 2e-5
        inner = sum(
            jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(gradient(v)), jax.tree.leaves(direction), strict=True)
        )
        np.testing.assert_allclose(float(inner), float(central), rtol=1e-6)
        np.testing.assert_allclose(float(slope(v)), float(central), rtol=1e-6)


def test_transformations_and_copies_work_on_tangents_and_frames():
    v, ww = tangent(), vectors()
    assert_trees_close(jax.jit(lambda u: u.probe(ww))(v), v.probe(ww))
    many = tangent((2,))
    axes = jax.tree.map(lambda a, b: 0 if a.ndim > b.ndim else None, many, v)
    assert_trees_close(jax.vmap(lambda u: u.to_dense(), in_axes=(axes,))(many), many.to_dense())
    for same in (copy.deepcopy(v), pickle.loads(pickle.dumps(v)), jax.tree.map(lambda leaf: leaf, v)):
        assert_trees_close(same, v)
    assert pickle.loads(pickle.dumps(t3k.MANIFOLD)) == t3k.MANIFOLD
    assert hash(copy.deepcopy(t3k.COREWISE)) == hash(t3k.COREWISE)
    assert len({t3k.MANIFOLD, t3k.COREWISE}) == 2
    assert "T3Tangent(shape (5, 6, 7)" in repr(v)
    assert "T3Frame(shape (5, 6, 7)" in repr(v.frame)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_dtypes_are_kept(dtype):
    frame, ww = tensor(dtype=dtype).frame(), vectors()
    v = t3k.MANIFOLD.randn(jax.random.key(0), frame)
    zz = v.probe_derivatives(ww, ww, ORDER)
    outputs = [v, zz, transpose(zz, ww, ww, frame, kept=False), t3k.MANIFOLD.retract(v), t3k.MANIFOLD.norm(v)]
    assert {leaf.dtype for leaf in jax.tree.leaves(outputs)} == {jnp.dtype(dtype)}


def test_a_second_call_with_equal_shapes_does_not_trace():
    from t3k.api import compiled

    frame, transposes = tensor().frame(), cast(Any, compiled.probe_transpose)
    for seed in (0, 1):
        ww = vectors((5,), seed)
        traced = transposes._cache_size()
        transpose(residuals((5,), ORDER, seed=seed), ww, ww, frame, kept=False)
        if seed:
            assert transposes._cache_size() == traced


def refusals():
    v, ww, r = tangent(), vectors(), residuals((4,), ORDER)
    frame = v.frame
    yield lambda: t3k.tv_probe_derivatives(ww, ww, v.variations, "frame", 1), TypeError, "frame must be a T3Frame or"
    yield (
        lambda: t3k.T3Frame(frame.up, frame.down, frame.left, frame.right[:2]),
        ValueError,
        r"frame.right must have 3 cores",
    )
    wrong = frame.right[0], frame.right[1][:1], frame.right[2]
    yield lambda: t3k.T3Frame(frame.up, frame.down, frame.left, wrong), ValueError, r"frame.right\[1\] must have shape"
    yield (
        lambda: t3k.T3Tangent(frame, (v.variations.tucker, v.variations.tt[:2])),
        ValueError,
        "as many tt as tucker cores",
    )
    bad = t3k.T3Variations(v.variations.tucker[::-1], v.variations.tt)
    yield lambda: t3k.T3Tangent(frame, bad), ValueError, r"variations.tucker\[0\] must have shape \(2, 5\)"
    yield (
        lambda: transpose(r[:2], ww, ww, frame, kept=False),
        ValueError,
        "ztildes must have one array for each of the 3",
    )
    yield (
        lambda: transpose(residuals((4,), 2), ww, ww, frame, kept=False),
        ValueError,
        r"ztildes\[0\] must have shape \(2, 4, 5\)",
    )
    yield lambda: transpose(residuals((3,), 1), ww, ww, frame, kept=False), ValueError, r"ztildes\[0\] must have shape"
    for chunk in (0, -3, 2.5, True, "big"):
        yield (
            lambda chunk=chunk: v.probe_derivatives(ww, ww, 1, chunk_size=chunk),
            (TypeError, ValueError),
            "chunk_size must be an int >= 1, None",
        )


def test_bad_input_is_refused_in_words():
    for call, error, message in refusals():
        with pytest.raises(error, match=message):
            call()
