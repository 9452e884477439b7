"""Frames are orthonormal and stand for their point at every mode, whatever the point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.frames import corewise_frame, minimal_cores, orthogonal_frame
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.t3 import ranks_of
from t3k.kernels.types import T3Cores
from tests.structures import NAMES, STRUCTURES, assert_close, dense_t3, example, frame_of, quick_jit, zeros_like


def points(name):
    x = example(name)
    return {"random": x, "zero": zeros_like(x), "deficient": jax.tree.map(jnp.ones_like, x)}


def assert_orthonormal(frame, tolerance=1e-12):
    wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), frame)
    for i, (U, O, L, R) in enumerate(zip(*wide, strict=True)):
        assert_close(U @ U.T, np.eye(U.shape[0]), tolerance)
        assert_close(np.einsum("akb,alb->kl", O, O), np.eye(O.shape[1]), tolerance)
        if i < len(frame.up) - 1:
            assert_close(np.einsum("akb,akc->bc", L, L), np.eye(L.shape[2]), tolerance)
        if i > 0:
            assert_close(np.einsum("akb,ckb->ac", R, R), np.eye(R.shape[0]), tolerance)


@pytest.mark.parametrize("point", ["random", "zero", "deficient"])
@pytest.mark.parametrize("name", NAMES)
def test_frame_is_orthonormal(name, point):
    assert_orthonormal(frame_of(points(name)[point])[0])


@pytest.mark.parametrize("point", ["random", "zero", "deficient"])
@pytest.mark.parametrize("name", NAMES)
def test_frame_represents_the_point_at_every_mode(name, point):
    x = points(name)[point]
    (up, down, left, right), at_point = frame_of(x)
    array = dense_t3(*x)
    assert_close(dense_t3(up, left), array)
    assert_close(dense_t3(up, right), array)
    for i, V in enumerate(at_point):
        assert_close(dense_t3((*up[:i], V, *up[i + 1 :]), (*left[:i], down[i], *right[i + 1 :])), array)


@pytest.mark.parametrize("name", NAMES)
def test_frame_has_minimal_ranks(name):
    frame, _ = frame_of(example(name))
    expected = STRUCTURES[name][0], *minimal_ranks(*STRUCTURES[name])
    for train in (frame.left, frame.right, frame.down):
        assert ranks_of(T3Cores(frame.up, train)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_minimal_cores_are_the_same_tensor_of_minimal_ranks(name):
    x = quick_jit(minimal_cores)(example(name))
    assert ranks_of(x)[1:] == minimal_ranks(*STRUCTURES[name])
    assert_close(dense_t3(*x), dense_t3(*example(name)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)])
def test_frame_keeps_the_dtype(dtype, tolerance):
    frame, at_point = frame_of(example("minimal", dtype=dtype))
    assert {leaf.dtype for leaf in jax.tree.leaves((frame, at_point))} == {jnp.dtype(dtype)}
    assert_orthonormal(frame, tolerance)


def test_a_stack_of_points_is_a_vmap():
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), example("minimal", 0), example("minimal", 1))
    frames, _ = quick_jit(jax.vmap(orthogonal_frame))(both)
    for j in range(2):
        assert_close(jax.tree.map(lambda leaf, j=j: leaf[j], frames), frame_of(example("minimal", j))[0])


def test_corewise_frame_is_the_cores_and_represents_the_point_at_every_mode():
    x = example("over-large")
    frame, at_point = corewise_frame(x)
    assert frame.down is frame.left is frame.right is x.tt
    assert frame.up is at_point is x.tucker
