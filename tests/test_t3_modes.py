"""The modes of a T3 are the axes of its dense tensor."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, stacked, tensor

DENSE = np.asarray(tensor().to_dense())

INDICES: list[Any] = [
    3,
    (slice(None), -1),
    (1, 2, 3),
    (Ellipsis, 2),
    (slice(1, 4), Ellipsis, slice(None, None, -2)),
    (np.array([2, 0, 0]), 3),
    (slice(None), [1, -1, 4], slice(0, 2)),
    (slice(None), np.arange(6) % 2 == 0),
    Ellipsis,
    (),
    np.int32(2),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_is_that_of_the_dense_tensor(index):
    found = tensor()[index]
    dense = found.to_dense() if isinstance(found, t3k.TuckerTensorTrain) else found
    assert_trees_close(dense, DENSE[tuple(index) if isinstance(index, list) else index])


def test_an_array_stays_at_its_mode_beside_integers():
    assert_trees_close(tensor()[2, :, [0, 3]].to_dense(), DENSE[2][:, [0, 3]])


def test_traced_indices_and_iteration_work():
    assert_trees_close(jax.jit(lambda i: tensor()[i, :, -1])(4).to_dense(), DENSE[4, :, -1])
    assert len([slice.shape for slice in tensor()]) == SHAPE[0]


def test_contraction_with_vectors_and_matrices_is_that_of_the_dense_tensor():
    x, rng = tensor(), np.random.default_rng(0)
    w, M = rng.standard_normal(6), rng.standard_normal((3, 7))
    assert_trees_close(x.contract(w, 1).to_dense(), np.einsum("abc,b->ac", DENSE, w))
    assert_trees_close(x.contract((M, w), (-1, 1)).to_dense(), np.einsum("abc,b,pc->ap", DENSE, w, M))
    everything = tuple(rng.standard_normal(n) for n in SHAPE)
    assert_trees_close(x.contract(everything), np.einsum("abc,a,b,c->", DENSE, *everything))
    assert_trees_close(x.contract((), ()).to_dense(), DENSE)


@pytest.mark.parametrize("modes", [None, 0, (1,), (-1, 0), (0, 1), ()])
def test_sums_over_modes_are_those_of_the_dense_tensor(modes):
    found = tensor().sum(modes)
    dense = found.to_dense() if isinstance(found, t3k.TuckerTensorTrain) else found
    assert_trees_close(dense, DENSE.sum(modes))


def test_end_bonds_are_summed():
    x = tensor(tt_ranks=(2, 2, 2, 3))
    assert_trees_close(x[1:3, :, 0].to_dense(), x.to_dense()[1:3, :, 0])
    assert_trees_close(x.sum(0).to_dense(), x.to_dense().sum(0))
    assert_trees_close(x.sum(), x.to_dense().sum())
    assert_trees_close(x.reverse().to_dense(), x.to_dense().T)
    assert_trees_close(x.permute((1, 0, 2)).to_dense(), x.to_dense().transpose(1, 0, 2), 1e-11)


def test_stacks_are_loops():
    xs = stacked(2)
    dense = xs.to_dense()
    assert_trees_close(xs[1, 2:4].to_dense(), dense[:, 1, 2:4])
    assert_trees_close(xs[1, 2, 3], dense[:, 1, 2, 3])
    assert_trees_close(xs.sum(-1).to_dense(), dense.sum(-1))
    assert_trees_close(xs.permute((0, 2, 1)).to_dense(), dense.transpose(0, 1, 3, 2), 1e-11)
    assert_trees_close(t3k.concatenate([xs, xs], 1).to_dense(), jnp.concatenate([dense, dense], 2))


@pytest.mark.parametrize("mode", [0, 1, -1])
def test_joining_is_that_of_the_dense_tensors(mode):
    parts = [tensor(0), tensor(1), tensor(2)]
    joined = t3k.concatenate(parts, mode)
    assert_trees_close(joined.to_dense(), jnp.concatenate([x.to_dense() for x in parts], mode))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (-2, -1, 0)])
def test_a_permutation_is_the_transposed_dense_tensor(axes):
    assert_trees_close(tensor().permute(axes).to_dense(), DENSE.transpose(axes), 1e-11)


def test_a_permutation_keeps_its_tolerance_or_its_rank():
    x = tensor()
    loose = x.permute((1, 2, 0), rtol=0.3)
    assert loose.n_parameters < x.permute((1, 2, 0)).n_parameters
    assert np.linalg.norm(loose.to_dense() - DENSE.transpose(1, 2, 0)) <= 0.3 * np.linalg.norm(DENSE)
    assert max(x.permute((1, 2, 0), max_rank=1).tt_ranks) == 1


def test_padding_with_zeros_keeps_the_tensor_and_noise_changes_it_little():
    x = tensor()
    larger = (3, 4, 4), (1, 3, 3, 1)
    padded = x.resize(*larger)
    assert (padded.tucker_ranks, padded.tt_ranks) == larger
    assert_trees_close(padded.to_dense(), DENSE)
    noisy = x.resize(*larger, noise=1e-3, key=jax.random.key(0))
    difference = float(noisy.distance(x) / x.norm())
    assert 0 < difference < 0.05
    assert noisy.numerical_ranks() == noisy.minimal_ranks


def test_resizing_truncates_where_ranks_shrink():
    mixed = tensor().resize((3, 2, 2), (1, 2, 1, 1))
    assert (mixed.tucker_ranks, mixed.tt_ranks) == ((3, 2, 2), (1, 2, 1, 1))
    expected = tensor().round((2, 2, 2), (1, 2, 1, 1))
    assert_trees_close(mixed.to_dense(), expected.to_dense(), 1e-12)
    assert tensor().resize().tucker_ranks == TUCKER_RANKS


def test_dtypes_are_kept():
    x = tensor(dtype=jnp.float32)
    outputs = [x[0], x[:2, 1], x.sum(), x.sum(0), x.contract(np.ones(5), 0), x.reverse(), x.permute((1, 0, 2))]
    outputs += [t3k.concatenate([x, x]), x.resize((3, 3, 3), noise=0.1, key=jax.random.key(0)), x[1, 2, 3]]
    assert {leaf.dtype for leaf in jax.tree.leaves(outputs)} == {jnp.dtype(jnp.float32)}


BAD: list[Any] = [
    (lambda: tensor()[None], TypeError, "no new axes"),
    (lambda: tensor()[0.5], TypeError, "the index of mode 0 must be an int"),
    (lambda: tensor()[[[1]]], TypeError, "the index of mode 0 must be an int"),
    (lambda: tensor()[:, :, 7], IndexError, r"the index of mode 2 must be in \[-7, 7\); got 7 to 7"),
    (lambda: tensor()[0, 0, 0, 0], IndexError, "too many indices: the tensor has 3 modes; got 4"),
    (lambda: tensor()[..., ...], IndexError, "one ellipsis"),
    (lambda: tensor()[[0], [1]], IndexError, "only one mode may have an array of indices; got arrays for modes"),
    (lambda: tensor()[3:3], IndexError, "the index of mode 0 selects nothing"),
    (lambda: tensor().sum((0, 0)), ValueError, "modes must be distinct"),
    (lambda: tensor().sum(3), ValueError, r"modes must be in \[-3, 3\) for 3 modes; got \(3,\)"),
    (lambda: tensor().sum(cast(Any, 0.5)), TypeError, "modes must be an int"),
    (lambda: tensor().contract(np.ones(4), 0), ValueError, r"operands\[0\] must have shape \(5,\) or \(p, 5\)"),
    (lambda: tensor().contract((np.ones(5),)), ValueError, "one array for each of the 3 modes; got 1"),
    (lambda: tensor().permute((0, 1)), ValueError, "axes must hold each of the 3 modes once"),
    (lambda: stacked(2).permute((1, 0, 2), rtol=0.1), ValueError, "rtol needs a single tensor"),
    (lambda: tensor().resize(noise=0.1), ValueError, "noise needs a key"),
    (lambda: t3k.concatenate([]), ValueError, "tensors must have at least one tensor"),
    (lambda: t3k.concatenate([tensor(), tensor()[0]]), ValueError, r"tensors\[1\] must have 3 modes"),
    (lambda: t3k.concatenate([tensor(), tensor()[:, 1:]]), ValueError, r"tensors\[1\] must have the stack and shape"),
    (lambda: t3k.concatenate([tensor(), cast(Any, 3)]), TypeError, r"tensors\[1\] must be a TuckerTensorTrain"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_modes_are_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_ranks_of_joined_tensors_add_up():
    joined = t3k.concatenate([tensor(), tensor()], 0)
    assert joined.tt_ranks == tuple(r if i in (0, 3) else 2 * r for i, r in enumerate(TT_RANKS))
