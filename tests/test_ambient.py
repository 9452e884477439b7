"""The transposes of dense sampling are the adjoints of how a T3 is sampled, for every kind, chunk and layout."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels.ambient import ambient_probes, ambient_samples
from tests.api_problems import SHAPE, assert_trees_close, tensor, vectors
from tests.trains import quick_jit

W, ORDER = 7, 2


def sample_of(kind: str, rows: tuple[int, ...] = (W,)) -> Any:
    rng = np.random.default_rng(0)
    at: Any = tuple(rng.integers(0, N, rows) for N in SHAPE) if kind.startswith("entries") else vectors(rows)
    return (at, vectors(rows, 1)) if kind.endswith("_derivatives") else at


def measured(kind: str, x: t3k.TuckerTensorTrain, sample: Any) -> Any:
    return getattr(x, kind)(*sample, ORDER) if kind.endswith("_derivatives") else getattr(x, kind)(sample)


def inner(a: Any, b: Any) -> float:
    return sum(float(jnp.vdot(x, y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.mark.parametrize(
    "kind", ["entries", "apply", "probe", "entries_derivatives", "apply_derivatives", "probe_derivatives"]
)
@pytest.mark.parametrize("chunk_size", [3, None])
def test_it_is_the_adjoint_of_sampling_a_t3(kind, chunk_size):
    x, sample = tensor(), sample_of(kind)
    y = measured(kind, x, sample)
    r = jax.tree.map(lambda z: jnp.asarray(np.random.default_rng(1).standard_normal(z.shape)), y)
    order = ORDER if kind.endswith("_derivatives") else None
    back = t3k.ambient_transpose(kind, r, sample, SHAPE, order=order, chunk_size=chunk_size)
    assert back.shape == SHAPE
    np.testing.assert_allclose(inner(y, r), inner(x.to_dense(), back), rtol=1e-10)


def test_dense_samples_are_those_of_the_t3():
    x, (ww, pp) = tensor(), sample_of("apply_derivatives")
    dense, index = x.to_dense(), sample_of("entries")
    assert_trees_close(
        quick_jit(ambient_samples, static_argnums=3)(dense, ww, pp, ORDER), x.apply_derivatives(ww, pp, ORDER)
    )
    assert_trees_close(quick_jit(ambient_probes, static_argnums=3)(dense, ww, pp, 4), x.probe_derivatives(ww, pp, 4))
    assert_trees_close(ambient_samples(dense, tuple(map(jnp.asarray, index)), None, 0)[0], x.entries(index))


def test_several_sample_axes_count_as_one_and_one_mode_is_enough():
    sample = sample_of("apply", (2, 3))
    r = jnp.arange(6.0).reshape(2, 3)
    flat = tuple(w.reshape(6, -1) for w in sample)
    assert_trees_close(
        t3k.ambient_transpose("apply", r, sample, SHAPE), t3k.ambient_transpose("apply", r.ravel(), flat, SHAPE)
    )
    # The probe of a vector is the vector itself, whatever probes it.
    back = t3k.ambient_transpose("probe", (jnp.ones((4, 5)),), (jnp.ones((4, 5)),), (5,))
    assert_trees_close(back, 4.0 * np.ones(5))


def test_with_the_projection_it_is_the_riemannian_gradient():
    x, ww = tensor(), sample_of("apply")
    r = jnp.arange(1.0, W + 1)
    frame = x.frame()
    bare = t3k.T3Tangent.apply_transpose(r, ww, frame, sum_over_probes=True)
    dense = t3k.ambient_transpose("apply", r, ww, SHAPE)
    assert_trees_close(
        t3k.MANIFOLD.project_tensor(dense, frame).variations, t3k.MANIFOLD.project(bare).variations, 1e-10
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"r\[0\] must have shape \(1, 7\)"):
        t3k.ambient_transpose("apply", np.ones(6), sample_of("apply"), SHAPE)
    with pytest.raises(IndexError, match="must be in"):
        t3k.ambient_transpose("entries", np.ones(1), ([9], [0], [0]), SHAPE)

    class Own(t3k.Kind):
        pass

    with pytest.raises(TypeError, match="kind must be one of t3k's own; got Own"):
        t3k.ambient_transpose(Own(), np.ones(1), (), SHAPE)
