import copy
import pickle
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import (
    SHAPE,
    TT_RANKS,
    TUCKER_RANKS,
    assert_trees_close,
    dense_samples,
    stacked,
    tensor,
    vectors,
)


def test_stacked_arrays_and_lists_are_cores_too():
    equal = t3k.TuckerTensorTrain(np.ones((3, 2, 4)), np.ones((3, 2, 2, 2)))
    listed = t3k.TuckerTensorTrain(np.ones((3, 2, 4)).tolist(), np.ones((3, 2, 2, 2)).tolist())
    assert equal.tt_ranks == (2, 2, 2, 2)
    assert_trees_close(equal.to_dense(), listed.to_dense())


def test_integer_cores_become_floats():
    x = t3k.TuckerTensorTrain([np.eye(2, dtype=int)] * 2, [np.ones((1, 2, 1), dtype=int)] * 2)
    assert x.dtype == jnp.float64
    assert x.entries(([0], [1])).tolist() == [1.0]


def test_end_bonds_are_summed():
    x = tensor(tt_ranks=(2, 2, 2, 2))
    dense = x.to_dense()
    minimal = x.minimal()
    assert minimal.tt_ranks[0] == minimal.tt_ranks[-1] == 1
    assert_trees_close(minimal.to_dense(), dense, 1e-12)
    assert_trees_close(x.norm(), jnp.linalg.norm(dense.ravel()))
    ww = vectors()
    expected = tuple(z[0] for z in dense_samples(dense, ww, ww, 0))
    assert_trees_close(x.probe(ww), expected)
    moved = t3k.MANIFOLD.retract(t3k.MANIFOLD.zeros(x.frame()))
    assert_trees_close(moved.to_dense(), dense, 1e-12)


def test_from_dense_and_back_is_exact_and_tolerance_is_kept():
    dense = tensor().to_dense()
    assert_trees_close(t3k.TuckerTensorTrain.from_dense(dense).to_dense(), dense, 1e-12)
    by_tolerance = t3k.TuckerTensorTrain.from_dense(dense, rtol=1e-10)
    assert (by_tolerance.tucker_ranks, by_tolerance.tt_ranks) == tensor().minimal_ranks
    noisy = dense + 1e-4 * np.random.default_rng(0).standard_normal(SHAPE)
    kept = t3k.TuckerTensorTrain.from_dense(noisy, TUCKER_RANKS, TT_RANKS)
    assert jnp.linalg.norm((kept.to_dense() - noisy).ravel()) < 2 * jnp.linalg.norm((noisy - dense).ravel())


@pytest.mark.parametrize("probes", [(), (1,), (4,), (2, 3)])
def test_samples_agree_with_the_dense_tensor(probes):
    x, ww, pp = tensor(), vectors(probes), vectors(probes, 1)
    flat = [tuple(a.reshape(-1, a.shape[-1]) for a in train) for train in (ww, pp)]
    dense = dense_samples(x.to_dense(), *flat, 2)
    expected = tuple(z.reshape(3, *probes, z.shape[-1]) for z in dense)
    found = x.probe_derivatives(ww, pp, 2)
    assert_trees_close(found, expected)
    assert_trees_close(x.probe(ww), tuple(z[0] for z in expected))
    applied = x.apply_derivatives(ww, pp, 1)
    assert_trees_close(applied[0], (found[0][0] * ww[0]).sum(-1))
    assert_trees_close(applied[1], (found[0][1] * ww[0]).sum(-1) + (found[0][0] * pp[0]).sum(-1))
    assert_trees_close(x.apply(ww), applied[0])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, list])
def test_entries_take_any_integers_and_count_negatives_from_the_end(dtype):
    x, dense = tensor(), tensor().to_dense()
    index = ([0, 4, 2], [5, 0, 1], [6, 3, 3])
    arrays = index if dtype is list else tuple(np.array(i, dtype) for i in index)
    assert_trees_close(x.entries(arrays), dense[tuple(map(np.array, index))])
    assert_trees_close(x.entries(([-1], [-6], [2])), dense[-1, -6, 2][None])


def test_entry_derivatives_move_unit_vectors():
    x, pp = tensor(), vectors((3,), 1)
    index = ([0, 4, 2], [5, 0, 1], [6, 3, 3])
    units = tuple(np.eye(n)[list(i)] for n, i in zip(SHAPE, index, strict=True))
    assert_trees_close(x.entries_derivatives(index, pp, 2), x.apply_derivatives(units, pp, 2))


def test_a_stack_of_tensors_is_a_loop_over_them():
    xs, ww, pp = stacked(3), vectors((2, 2)), vectors((2, 2), 1)
    assert xs.stack_shape == (3,)
    loop = [tensor(i) for i in range(3)]
    assert_trees_close(xs.to_dense(), jnp.stack([x.to_dense() for x in loop]))
    assert_trees_close(xs.norm(), jnp.stack([x.norm() for x in loop]))
    zs = xs.probe_derivatives(ww, pp, 1)
    assert_trees_close(zs, jax.tree.map(lambda *z: jnp.stack(z, 3), *(x.probe_derivatives(ww, pp, 1) for x in loop)))
    assert_trees_close(xs.apply(ww), jnp.stack([x.apply(ww) for x in loop], -1))
    assert_trees_close(xs.entries(([0], [1], [2])), jnp.stack([x.entries(([0], [1], [2])) for x in loop], -1))
    assert_trees_close((xs + xs).to_dense(), 2 * xs.to_dense())


def test_transformations_and_copies_work_on_it():
    x = tensor()
    assert_trees_close(jax.jit(lambda y: y.norm())(x), x.norm())
    assert_trees_close(jax.vmap(lambda y: y.norm())(stacked(2)), stacked(2).norm())
    gradient = jax.grad(lambda y: 0.5 * y.norm() ** 2)(x)
    assert isinstance(gradient, t3k.TuckerTensorTrain)
    assert_trees_close(gradient.tt_cores[0].shape, x.tt_cores[0].shape)
    for same in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), jax.tree.map(lambda leaf: leaf, x)):
        assert_trees_close(same, x)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float64])
def test_dtypes_are_kept(dtype):
    x, ww = tensor(dtype=dtype), vectors()
    outputs = [x.to_dense(), x.norm(), x.minimal(), x + x, 2 * x, x.probe_derivatives(ww, ww, 1), x.apply(ww)]
    outputs += [x.entries(([0], [0], [0])), x.frame(), x.round((1, 1, 1), (1, 1, 1, 1))]
    assert {leaf.dtype for leaf in jax.tree.leaves(outputs)} == {jnp.dtype(dtype)}


@pytest.mark.parametrize(
    ("shape", "n", "r"),
    [
        ((4,), (2,), (1, 1)),
        ((4, 5), (2, 2), (1, 2, 1)),
        ((1, 5, 1), (1, 2, 1), (1, 1, 1, 1)),
        ((3, 3), (1, 1), (1, 1, 1)),
    ],
)
def test_short_trains_and_sizes_of_one_work(shape, n, r):
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), shape, n, r)
    ww = vectors((2,), 0, shape)
    expected = dense_samples(x.to_dense(), ww, ww, 2)
    assert_trees_close(x.probe_derivatives(ww, ww, 2), expected, 1e-11)
    moved = t3k.MANIFOLD.retract(t3k.MANIFOLD.zeros(x.frame()))
    assert_trees_close(moved.to_dense(), x.to_dense(), 1e-12)


def test_over_large_ranks_are_reduced_where_that_is_exact():
    x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (3, 4), (5, 6), (1, 9, 1))
    assert x.minimal_ranks == ((3, 3), (1, 3, 1))
    assert_trees_close(x.minimal().to_dense(), x.to_dense(), 1e-12)
    assert x.frame().tucker_ranks == (3, 3)


def test_a_person_can_read_it():
    text = repr(tensor())
    assert text == "TuckerTensorTrain(5 x 6 x 7; Tucker ranks (2, 3, 2), TT ranks (1, 2, 2, 1), 62 parameters, float64)"
    assert "stack (2,)" in repr(stacked(2))
    assert "TuckerTensorTrain" in repr(jax.tree.map(lambda leaf: None, tensor()))


BAD = [
    (lambda: t3k.TuckerTensorTrain("ab", "cd"), TypeError, "tucker_cores must be a sequence"),
    (
        lambda: t3k.TuckerTensorTrain([np.ones((2, 3)) * 1j], [np.ones((1, 2, 1))]),
        TypeError,
        r"tucker_cores\[0\] must be real",
    ),
    (
        lambda: t3k.TuckerTensorTrain([np.ones((2, 3))], [np.ones((1, 4, 1))]),
        ValueError,
        r"tt_cores\[0\] must have shape",
    ),
    (
        lambda: t3k.TuckerTensorTrain([np.ones((2, 3))] * 2, [np.ones((1, 2, 3)), np.ones((2, 2, 1))]),
        ValueError,
        r"tt_cores\[1\]",
    ),
    (lambda: t3k.TuckerTensorTrain([np.ones((2, 3))], []), ValueError, "at least one mode"),
    (
        lambda: t3k.TuckerTensorTrain.zeros((3, 4), (2,), (1, 2, 1)),
        ValueError,
        "tucker_ranks must have 2 entries; got 1",
    ),
    (lambda: t3k.TuckerTensorTrain.zeros((3, 4), (2, 0), (1, 2, 1)), ValueError, "tucker_ranks must be ints >= 1"),
    (
        lambda: t3k.TuckerTensorTrain.zeros((3, 4), cast(Any, (2, 2.0)), (1, 2, 1)),
        TypeError,
        "tucker_ranks must be a sequence of ints",
    ),
    (lambda: t3k.TuckerTensorTrain.from_dense(3.0), ValueError, "at least one axis"),
    (lambda: t3k.TuckerTensorTrain.from_dense(np.ones((2, 2)), rtol=-1), ValueError, "rtol must be a finite number"),
    (lambda: tensor().probe(vectors()[:2]), ValueError, "ww must have one array for each of the 3 modes; got 2"),
    (lambda: tensor().probe(vectors((4,), 0, (5, 6, 8))), ValueError, r"ww\[2\] must have shape \(4, 7\)"),
    (lambda: tensor().probe(tuple(w * 1j for w in vectors())), TypeError, r"ww\[0\] must be real"),
    (lambda: tensor().probe_derivatives(vectors(), vectors((3,)), 1), ValueError, r"pp\[0\] must have shape \(4, 5\)"),
    (lambda: tensor().probe_derivatives(vectors(), None, 1), ValueError, "pp must be given"),
    (lambda: tensor().probe_derivatives(vectors(), vectors(), -1), ValueError, "order must be an int >= 0; got -1"),
    (lambda: tensor().probe_derivatives(vectors(), vectors(), True), TypeError, "order must be an int >= 0; got True"),
    (lambda: tensor().entries(([0], [0], [7])), IndexError, r"index\[2\] must be in \[-7, 7\)"),
    (lambda: tensor().entries(([0], [0], [0.5])), TypeError, r"index\[2\] must hold integers"),
    (lambda: tensor().entries(([0], [0])), ValueError, "index must have one array"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("chunk", [0, -3, 2.5, True, "big"])
def test_bad_chunk_sizes_are_refused(chunk):
    with pytest.raises((TypeError, ValueError), match="chunk_size must be an int >= 1"):
        tensor().probe(vectors(), chunk_size=chunk)
    with pytest.raises((TypeError, ValueError), match="chunk_size must be an int >= 1"):
        tensor().apply(vectors(), chunk_size=chunk)
