"""Laws of the two assemblies: the sums that they are, exactly, whatever the chunk."""

import math
from typing import Any

import jax
import numpy as np
import pytest

from t3k.kernels import assembly
from t3k.kernels.jets import binomial_combine_tensor
from tests.trains import assert_trees_equal, normal, quick_jit, small_integers

W = 8
CHUNKS = [1, 4, 3, W, W + 1, 10 * W]
# mypy counts the arguments of a starred train as one.
assemble_tt: Any = assembly.assemble_tt_variation_jets
assemble_tucker: Any = assembly.assemble_tucker_variation_jets
TT_RANKS, N = ((1, 2, 3), (2, 3, 1)), ((3, 4), (2, 5))  # (a, k, b) and (m, o)


def draw_tt(draw, order, probes=(W,)):
    """sigma~, tau~, deta~, xi, mu and nu."""
    columns = (2, 0, 1, 1, 0, 2)
    return tuple(
        tuple(draw(2 if j == 3 else order + 1, *probes, ranks[column]) for ranks in TT_RANKS)
        for j, column in enumerate(columns)
    )


def draw_tucker(draw, order, probes=(W,)):
    """z~, dxi~, w, p and eta."""
    leads = ((order + 1,), (order + 1,), (), (), (order + 1,))
    columns = (1, 0, 1, 1, 0)
    return tuple(
        tuple(draw(*lead, *probes, sizes[column]) for sizes in N) for lead, column in zip(leads, columns, strict=True)
    )


def assemble(tt, tucker, order, n_probe, summed, chunk_size):
    trs = binomial_combine_tensor(order)
    return (
        assemble_tt(*tt, trs, n_probe, summed, chunk_size=chunk_size),
        assemble_tucker(*tucker, n_probe, summed, chunk_size=chunk_size),
    )


run = quick_jit(assemble, static_argnames=("order", "n_probe", "summed", "chunk_size"))


def by_hand(tt, tucker, order):
    """Kept gradients, one sum each, in numpy."""
    trs = binomial_combine_tensor(order).astype(float)
    linear = trs[:, :, :2]
    dG = tuple(
        np.einsum("trs,rwa,swk,twb->wakb", linear, mu, xi[: order + 1], sigma)
        + np.einsum("trs,twa,swk,rwb->wakb", linear, tau, xi[: order + 1], nu)
        + np.einsum("trs,rwa,twk,swb->wakb", trs, mu, deta, nu)
        for sigma, tau, deta, xi, mu, nu in zip(*tt, strict=True)
    )
    dU = tuple(
        np.einsum("twm,two->wmo", eta, z) + np.einsum("twm,two->wmo", dxi[:2], np.stack([w, p])[: order + 1])
        for z, dxi, w, p, eta in zip(*tucker, strict=True)
    )
    return dG, dU


@pytest.mark.parametrize("order", range(6))
def test_the_assemblies_are_exact_on_small_integers_at_every_order(order):
    tt, tucker = draw_tt(small_integers(order), order), draw_tucker(small_integers(order), order)
    expected = by_hand(tt, tucker, order)
    assert_trees_equal(run(tt, tucker, order, 1, False, None), expected)
    dense = jax.tree.map(lambda g: g.sum(0), expected)
    for chunk_size in (None, 3):
        assert_trees_equal(run(tt, tucker, order, 1, True, chunk_size), dense)


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_chunked_equals_dense_bit_for_bit_on_small_integers(chunk_size, summed):
    tt, tucker = draw_tt(small_integers(7), 2), draw_tucker(small_integers(7), 2)
    assert_trees_equal(run(tt, tucker, 2, 1, summed, chunk_size), run(tt, tucker, 2, 1, summed, None))


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("probes", [(2, 4), (8, 1), ()])
def test_several_probe_axes_are_one_reshaped(probes, summed):
    n = math.prod(probes)
    tt, tucker = (draw(small_integers(8), 2, probes) for draw in (draw_tt, draw_tucker))
    flat_tt = jax.tree.map(lambda x: x.reshape(x.shape[0], n, -1), tt)
    flat_tucker = tuple(
        jax.tree.map(lambda x, j=j: x.reshape(*(() if j in (2, 3) else (3,)), n, -1), train)
        for j, train in enumerate(tucker)
    )
    several, one = run(tt, tucker, 2, len(probes), summed, 3), run(flat_tt, flat_tucker, 2, 1, summed, 3)
    if not summed:
        one = jax.tree.map(lambda g: np.asarray(g).reshape(*probes, *g.shape[1:]), one)
    assert_trees_equal(several, one)


def test_no_probes_give_zeros():
    tt, tucker = draw_tt(normal(0), 1, (0,)), draw_tucker(normal(0), 1, (0,))
    dG, dU = run(tt, tucker, 1, 1, True, 3)
    assert_trees_equal(dG, tuple(np.zeros(ranks) for ranks in TT_RANKS))
    assert_trees_equal(dU, tuple(np.zeros(sizes) for sizes in N))
    assert [g.shape for g in run(tt, tucker, 1, 1, False, 3)[0]] == [(0, *ranks) for ranks in TT_RANKS]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_are_kept(dtype):
    args = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, dtype), (draw_tt(normal(0), 5), draw_tucker(normal(0), 5))
    )
    for summed in (True, False):
        gradients = jax.eval_shape(lambda *args, summed=summed: assemble(args[0], args[1], 5, 1, summed, 3), *args)
        assert {str(g.dtype) for g in jax.tree.leaves(gradients)} == {dtype}


@pytest.mark.parametrize(
    ("chunk_size", "error"), [(0, ValueError), (-3, ValueError), (2.5, TypeError), (True, TypeError)]
)
def test_bad_chunk_sizes_are_refused(chunk_size, error):
    tt, tucker = draw_tt(normal(0), 1), draw_tucker(normal(0), 1)
    with pytest.raises(error, match="chunk_size must be an int >= 1, None"):
        assemble_tt(*tt, binomial_combine_tensor(1), 1, True, chunk_size)
    with pytest.raises(error, match="chunk_size must be an int >= 1, None"):
        assemble_tucker(*tucker, 1, True, chunk_size)


def test_a_wrong_shape_fails_while_tracing_in_the_letters():
    tt, tucker = draw_tt(normal(0), 1), draw_tucker(normal(0), 1)
    for j, name in enumerate(("sigma_tildes", "tau_tildes", "deta_tildes", "xi_jets", "mu_jets", "nu_jets")):
        wrong = (*tt[:j], tuple(x[:, :-1] for x in tt[j]), *tt[j + 1 :])
        with pytest.raises(AssertionError, match="has axes '.W.'" if j == 0 else rf"{name}\[0\] has axes"):
            assemble_tt(*wrong, binomial_combine_tensor(1), 1, True)
    with pytest.raises(AssertionError, match="has axes 'tWb'"):
        assemble_tt(*tt, binomial_combine_tensor(1), 2, True)
    with pytest.raises(AssertionError, match=r"eta_jets\[0\] has axes 'tWm'"):
        assemble_tucker(*tucker[:4], tucker[0], 1, True)
