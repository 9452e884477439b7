"""Agreement with t3toolbox on every jet, both assemblies and the whole maps.

The peer runs in numpy here, so that it needs no compilation; its formulas are the same in JAX.
"""

from typing import Any

import jax
import numpy as np
import pytest

from t3k.kernels import assembly
from t3k.kernels.jets import binomial_combine_tensor
from t3k.kernels.probe_maps import probe_jacobian, probe_transpose
from t3k.kernels.sample_maps import sample_jacobian, sample_transpose
from tests.edge_pipeline import T3k, all_jets, assemblies
from tests.trains import Problem, assert_trees_close, draw_frame, draw_problem, normal, quick_jit

peer: Any = pytest.importorskip("t3toolbox.backend.sampling_derivatives")
pytestmark = pytest.mark.peers

jacobian = quick_jit(probe_jacobian, static_argnames=("order", "chunk_size"))
transpose = quick_jit(probe_transpose, static_argnames=("order", "chunk_size", "sum_over_probes"))


def problem_of(d: int, order: int, end: tuple[int, int], n_probes: int = 3) -> Problem:
    return draw_problem(normal(d), draw_frame(normal(order), d, end), order, n_probes)


def reshape_probes(problem: Problem, probes: tuple[int, ...]) -> Problem:
    """The same problem with the probe axis made into several."""

    def reshape(x: np.ndarray) -> np.ndarray:
        return x.reshape(*x.shape[:-2], *probes, x.shape[-1])

    return problem._replace(**{name: tuple(map(reshape, getattr(problem, name))) for name in ("ww", "pp", "zz")})


@pytest.mark.parametrize(
    ("d", "order", "end"),
    [(2, 5, (2, 2)), (3, 4, (2, 1)), (4, 3, (1, 1)), (5, 1, (1, 2)), (6, 0, (1, 1)), (6, 2, (2, 2))],
)
def test_every_jet_is_that_of_t3toolbox(d, order, end):
    problem, trs = problem_of(d, order, end), binomial_combine_tensor(order)
    assert_trees_close(quick_jit(lambda problem: all_jets(T3k, problem, trs))(problem), all_jets(peer, problem, trs))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("probes", [(6,), (2, 3)])
@pytest.mark.parametrize(("d", "order", "end"), [(2, 5, (2, 2)), (4, 1, (1, 1))])
def test_both_assemblies_are_those_of_t3toolbox(d, order, end, probes, kept):
    problem, trs = reshape_probes(problem_of(d, order, end, 6), probes), binomial_combine_tensor(order)
    jets = all_jets(peer, problem, trs)
    assemble = quick_jit(
        lambda problem, jets: assemblies(assembly, problem, jets, trs, len(probes), kept, chunk_size=4)
    )
    assert_trees_close(assemble(problem, jets), assemblies(peer, problem, jets, trs, len(probes), kept))


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_the_transpose_is_that_of_t3toolbox_at_every_order(d):
    # A transpose of a lower order is that of order 5 with zeros above, which spares compiling it.
    problem = problem_of(d, 5, (2, 2) if d < 4 else (1, 1))
    ww, pp, zz, _, frame, *_ = problem
    for order in range(6):
        residual = tuple(z[: order + 1] for z in zz)
        padded = tuple(np.concatenate([z[: order + 1], np.zeros_like(z[order + 1 :])]) for z in zz)
        gradient = transpose(padded, ww, pp, frame, order=5, chunk_size=2, sum_over_probes=True)
        expected = peer.tv_probe_derivatives_transpose(residual, ww, pp, frame, order, sum_over_probes=True)
        assert_trees_close(tuple(gradient), expected)


@pytest.mark.parametrize(("d", "order"), [(2, 0), (3, 1), (4, 2), (5, 3), (6, 4)])
def test_the_kept_transpose_is_that_of_t3toolbox(d, order):
    ww, pp, zz, _, frame, *_ = problem_of(d, order, (2, 1))
    gradient = transpose(zz, ww, pp, frame, order=order, chunk_size=None, sum_over_probes=False)
    assert_trees_close(tuple(gradient), peer.tv_probe_derivatives_transpose(zz, ww, pp, frame, order))


@pytest.mark.parametrize(("d", "order"), [(2, 1), (4, 5), (5, 0), (6, 2)])
def test_the_jacobian_is_that_of_t3toolbox(d, order):
    ww, pp, _, variations, frame, *_ = problem_of(d, order, (1, 2))
    zz = jacobian(ww, pp, variations, frame, order=order, chunk_size=2)
    assert_trees_close(zz, peer.tv_probe_derivatives(ww, pp, tuple(variations), tuple(frame), order))


@pytest.mark.parametrize("kind", ["apply", "entries"])
@pytest.mark.parametrize(("d", "order"), [(2, 3), (4, 1)])
def test_applies_and_entries_and_their_transposes_are_those_of_t3toolbox(kind, d, order):
    ww, pp, _, variations, frame, *_ = problem_of(d, order, (1, 2))
    index = np.random.default_rng(0).integers(0, 2, (d, 3))
    at, residual = ww if kind == "apply" else index, normal(5)(order + 1, 3)

    @quick_jit
    def both(at, pp, residual, variations, frame):
        return (
            sample_jacobian(at, pp, variations, frame, order, chunk_size=2),
            sample_transpose(residual, at, pp, frame, order, sum_over_probes=False, chunk_size=None),
        )

    y, gradient = both(at, pp, residual, variations, frame)
    forward, transpose = (getattr(peer, f"tv_{kind}_derivatives{suffix}") for suffix in ("", "_transpose"))
    assert_trees_close(y, forward(at, pp, tuple(variations), tuple(frame), order))
    assert_trees_close(tuple(gradient), transpose(residual, at, pp, tuple(frame), order))


def test_stacks_of_tangents_and_base_points_are_those_of_t3toolbox():
    d, order = 3, 2
    problems = [draw_problem(normal(s), draw_frame(normal(s), d), order, 3) for s in range(6)]
    ww, pp, *_ = problems[0]
    # V = 2 tangents at each of C = 3 base points: residuals (t, w, v, c, o), cores (c, ...).
    zz = tuple(np.stack(x, 2).reshape(order + 1, 3, 2, 3, -1) for x in zip(*(p.zz for p in problems), strict=True))
    frames = jax.tree.map(lambda *x: np.stack(x), *(p.frame for p in problems[:3]))

    def one(zz, frame):
        return probe_transpose(zz, ww, pp, frame, order, sum_over_probes=True, chunk_size=2)

    stacked = jax.vmap(jax.vmap(one, in_axes=(2, 0)), in_axes=(2, None))  # v, then c
    gradient = quick_jit(stacked)(zz, frames)
    expected = peer.tv_probe_derivatives_transpose(zz, ww, pp, tuple(frames), order, sum_over_probes=True)
    assert_trees_close(tuple(gradient), expected)
