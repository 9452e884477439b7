"""Points, tangents and projections of the manifold, against dense tensors."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, stacked, tensor

RANKS = SHAPE, TUCKER_RANKS, TT_RANKS


def point(seed=0, dtype=None):
    return t3k.MANIFOLD.random_point(jax.random.key(seed), *RANKS, dtype)


def test_random_points_have_norm_1_and_orthonormal_cores():
    x = point()
    assert_trees_close(x.norm(), jnp.ones(()))
    for U, L in zip(x.tucker_cores, x.tt_cores[:-1], strict=False):
        assert_trees_close(U @ U.T, jnp.eye(len(U)))
        assert_trees_close(jnp.einsum("akb,akc->bc", L, L), jnp.eye(L.shape[2]))
    over = t3k.MANIFOLD.random_point(jax.random.key(0), (2, 3), (9, 9), (2, 9, 2))
    assert (over.tucker_ranks, over.tt_ranks) == ((2, 2), (1, 2, 1))
    assert point(dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_unit_tangents_have_norm_1_and_zero_stays_zero():
    frame = point().frame()
    vs = t3k.MANIFOLD.random_unit(jax.random.key(1), frame, (2, 3))
    assert_trees_close(t3k.MANIFOLD.norm(vs), jnp.ones((2, 3)))
    assert_trees_close(jnp.linalg.norm(vs.to_dense().reshape(6, -1), axis=1), jnp.ones(6))
    zero = t3k.MANIFOLD.unit(t3k.MANIFOLD.zeros(frame))
    assert_trees_close(t3k.MANIFOLD.norm(zero), jnp.zeros(()))


def test_the_distance_of_tangents_is_that_of_the_tensors():
    frame = point().frame()
    v, w = (t3k.MANIFOLD.randn(jax.random.key(seed), frame) for seed in (1, 2))
    assert_trees_close(t3k.MANIFOLD.distance(v, w), jnp.linalg.norm((v.to_dense() - w.to_dense()).ravel()), 1e-12)


def test_projection_of_a_t3_and_of_its_entries_agree_and_are_orthogonal():
    frame, y = point().frame(), tensor(3)
    projected = t3k.MANIFOLD.project_tensor(y, frame)
    assert_trees_close(t3k.MANIFOLD.project_tensor(y.to_dense(), frame).variations, projected.variations, 1e-12)
    rest = y.to_dense() - projected.to_dense()
    v = t3k.MANIFOLD.random_unit(jax.random.key(4), frame)
    assert abs(float(jnp.vdot(rest, v.to_dense()))) < 1e-12 * float(y.norm())
    assert_trees_close(t3k.MANIFOLD.project_tensor(projected.to_t3(), frame).variations, projected.variations, 1e-12)


def test_stacks_of_tensors_are_projected_onto_one_frame_or_each_onto_its_own():
    ys, frame = stacked(2, 5), point().frame()
    on_one = t3k.MANIFOLD.project_tensor(ys, frame)
    assert on_one.tangent_stack_shape == (2,)
    single = t3k.MANIFOLD.project_tensor(tensor(6), frame)
    assert_trees_close(jax.tree.map(lambda leaf: leaf[1], on_one.variations), single.variations, 1e-12)
    own = t3k.MANIFOLD.project_tensor(ys, ys.frame())
    assert own.tangent_stack_shape == ()
    assert_trees_close(own.to_dense(), ys.to_dense(), 1e-12)


def test_the_retraction_has_no_acceleration_along_the_manifold():
    """Of second order: the projection of ``retract(t v) - X - t v`` on the tangent space is of order t^3."""
    x = point()
    frame = x.frame()
    v = t3k.MANIFOLD.random_unit(jax.random.key(2), frame)

    def along(t):
        moved = t3k.MANIFOLD.retract(t * v)
        return float(t3k.MANIFOLD.norm(t3k.MANIFOLD.project_tensor(moved - x, frame) - t * v))

    coarse, fine = along(0.04), along(0.02)
    assert fine < coarse / 7


def test_the_gradient_of_a_sampled_loss_is_the_projected_transpose():
    """<grad, v> is the derivative along the retraction, for a loss of probes."""
    x = point()
    frame = x.frame()
    v = t3k.MANIFOLD.random_unit(jax.random.key(3), frame)
    rng = np.random.default_rng(0)
    ww = tuple(rng.standard_normal((3, n)) for n in SHAPE)
    transposed = t3k.T3Tangent.probe_transpose(x.probe(ww), ww, frame, sum_over_probes=True)
    slope = float(t3k.MANIFOLD.inner(t3k.MANIFOLD.project(transposed), v))

    def loss(t):
        return sum(float((z**2).sum()) / 2 for z in t3k.MANIFOLD.retract(t * v).probe(ww))

    np.testing.assert_allclose(slope, (loss(1e-5) - loss(-1e-5)) / 2e-5, rtol=1e-7)


BAD: list[Any] = [
    (lambda: t3k.MANIFOLD.project_tensor(tensor()[0], point().frame()), ValueError, "shape of the frame"),
    (lambda: t3k.MANIFOLD.project_tensor(cast(Any, "a"), point().frame()), TypeError, "tensor must be an array"),
    (lambda: t3k.MANIFOLD.random_point(jax.random.key(0), (2, 3), (1,), (1, 1, 1)), ValueError, "must have 2 entries"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()
