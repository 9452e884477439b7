"""Laws of the geometry on random points, tangents and tensors of a few structures."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t3k.kernels.dense import dense_t3, dense_tangent
from t3k.kernels.frames import orthogonal_frame
from t3k.kernels.gauge import gauge_residual, oblique_gauge, orthogonal_gauge
from t3k.kernels.products import inner, norm
from t3k.kernels.retraction import retract
from t3k.kernels.t3 import random_cores, scale
from t3k.kernels.tangents import project_dense, project_t3, tangent_to_t3, transport
from t3k.kernels.variations import random_variations, variation_inner

STRUCTURES: list[Any] = [
    ((4,), (3,), (2, 2)),
    ((3, 4), (2, 2), (1, 2, 1)),
    ((3, 1, 4), (4, 2, 2), (2, 2, 5, 1)),
]
#: Points of full rank, of deficient rank, and zero, by number, so that they share a compilation.
KINDS = [0, 1, 2]
CASES = {
    "structure": st.sampled_from(STRUCTURES),
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 2**31 - 1),
}
SETTINGS = settings(max_examples=15, deadline=None, derandomize=True)


def point(key, structure: Any, kind):
    x = random_cores(key, structure[0], structure[1], structure[2], jnp.float64)
    deficient = x._replace(tt=tuple(jnp.broadcast_to(G[:1, :, :1], G.shape) for G in x.tt))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[kind], x, deficient, scale(x, 0.0))


def draw(structure: Any, kind, seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    x = point(keys[0], structure, kind)
    frame, at_point = orthogonal_frame(x)
    v, w = random_variations(keys[1], frame), random_variations(keys[2], frame)
    return x, frame, at_point, v, w, random_cores(keys[3], structure[0], structure[1], structure[2], jnp.float64)


def flat(tree):
    return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(tree)])


def frame_laws(x, frame, at_point, v, w, y):
    up, down, left, right = frame
    stand_ins = [
        dense_t3((*up[:i], V, *up[i + 1 :]), (*left[:i], down[i], *right[i + 1 :])) for i, V in enumerate(at_point)
    ]
    array = dense_t3(*x)
    return {
        "rows of U are orthonormal": (flat([U @ U.T for U in up]), flat([jnp.eye(len(U)) for U in up])),
        "L stands for x": (dense_t3(up, left), array),
        "R stands for x": (dense_t3(up, right), array),
        "V^x stands for x at every mode": (jnp.stack(stand_ins), jnp.stack([array] * len(stand_ins))),
        "inner is the dense inner product": (inner(x, y), jnp.sum(array * dense_t3(*y))),
        "norm is the dense norm": (norm(x), jnp.sqrt(jnp.sum(array**2))),
    }


def tangent_laws(x, frame, at_point, v, w, y):
    gauged, tangent, array = oblique_gauge(frame, v), dense_tangent(frame, v), dense_t3(*y)
    dropped, projected = orthogonal_gauge(frame, v), project_t3(frame, y)
    return {
        "oblique gauge is a gauge": (gauge_residual(frame, gauged), jnp.zeros(())),
        "oblique gauge keeps the tangent": (dense_tangent(frame, gauged), tangent),
        "orthogonal gauge is idempotent": (flat(orthogonal_gauge(frame, dropped)), flat(dropped)),
        "orthogonal gauge is self-adjoint": (
            variation_inner(dropped, w),
            variation_inner(v, orthogonal_gauge(frame, w)),
        ),
        "coordinates carry the inner product": (
            variation_inner(gauged, oblique_gauge(frame, w)),
            jnp.sum(tangent * dense_tangent(frame, w)),
        ),
        "doubled ranks are the tangent": (dense_t3(*tangent_to_t3(frame, v)), tangent),
        "projection leaves tangents alone": (flat(transport(frame, v, frame)), flat(gauged)),
        "projection is self-adjoint": (variation_inner(projected, gauged), jnp.sum(array * tangent)),
        "projection is that of the entries": (flat(projected), flat(project_dense(frame, array))),
    }


def retraction_laws(x, frame, at_point, v, w, y):
    def moved(t):
        return dense_t3(*retract(frame, jax.tree.map(lambda leaf: t * leaf, v)))

    value, slope = jax.jvp(moved, (0.0,), (1.0,))
    return {"retraction of 0 is x": (value, dense_t3(*x)), "its slope is the tangent": (slope, dense_tangent(frame, v))}


def compiled(laws):
    return jax.jit(
        lambda structure, kind, seed: laws(*draw(structure, kind, seed)),
        static_argnums=0,
        compiler_options={"xla_backend_optimization_level": 0},
    )


FRAME_LAWS, TANGENT_LAWS, RETRACTION_LAWS = map(compiled, (frame_laws, tangent_laws, retraction_laws))


def condition(array):
    """The largest ratio of singular values that are not rounding, over the unfoldings that ranks are ranks of."""
    shape = array.shape
    unfoldings = [array.reshape(math.prod(shape[:i]), -1) for i in range(1, len(shape))]
    unfoldings += [np.moveaxis(array, i, 0).reshape(shape[i], -1) for i in range(len(shape))]
    spectra = [np.linalg.svd(matrix, compute_uv=False) for matrix in unfoldings]
    return max(s[0] / s[s > 1e-11 * s[0]][-1] for s in spectra)


def assert_laws(laws, tolerance):
    for name, (got, expected) in laws.items():
        scale_of = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale_of, err_msg=name)


@SETTINGS
@given(**CASES)
def test_frames_are_orthonormal_and_stand_for_their_point(structure, kind, seed):
    assert_laws(FRAME_LAWS(structure, kind, seed), 1e-11)


@SETTINGS
@given(**CASES)
def test_gauges_and_projections_are_what_they_say(structure, kind, seed):
    assert_laws(TANGENT_LAWS(structure, kind, seed), 1e-11)


@SETTINGS
@given(structure=CASES["structure"], seed=CASES["seed"])
def test_retraction_starts_at_the_point_along_the_tangent(structure, seed):
    laws = RETRACTION_LAWS(structure, 0, seed)
    # The curvature of the manifold grows with the inverse of the smallest singular value, and rounding with its square.
    rounding = 100 * float(np.finfo(float).eps) * condition(np.asarray(laws["retraction of 0 is x"][1])) ** 2
    assert_laws(laws, max(1e-7, rounding))


def test_the_condition_of_a_point_leaves_out_what_is_not_of_its_rank():
    assert condition(np.diag([4.0, 2.0, 1e-15])) == 2.0
