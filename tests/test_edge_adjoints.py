"""Laws of the adjoint jets: what they are the adjoints of."""

import jax
import numpy as np
import pytest

from t3k.kernels import assembly, edge_adjoints, sweeps
from t3k.kernels.edge_jets import (
    assemble_tangent_z_jets,
    compute_deta_jets,
    compute_sigma_jets,
    compute_tau_jets,
)
from t3k.kernels.jets import binomial_combine_tensor
from tests.edge_pipeline import T3k, all_jets, assemblies, forward_jets
from tests.trains import assert_trees_close, draw_frame, draw_problem, equal_cores, normal, quick_jit

D, ORDER = 3, 2
TRS = binomial_combine_tensor(ORDER)


def problem_of(n_probes=3):
    return draw_problem(normal(D), draw_frame(normal(1), D, end=(2, 1)), ORDER, n_probes)


@quick_jit
def reverse_mode(problem):
    """Adjoints of the tangent jets by JAX's own reverse mode, in the same order as `by_the_adjoint_sweeps`."""
    _, _, zz, (V, H), (U, O, L, R), *_ = problem
    jets = forward_jets(T3k, problem, TRS)

    def forward(H, V, dxi, deta_shift):
        sigma = compute_sigma_jets(H, R, O, jets["xi"], dxi, jets["mu"], TRS)
        tau = compute_tau_jets(H, L, O, jets["xi"], dxi, jets["nu"], TRS)
        deta = compute_deta_jets(H, L, R, jets["mu"], jets["nu"], sigma, tau, TRS)
        deta = tuple(x + y for x, y in zip(deta, deta_shift, strict=True))
        return assemble_tangent_z_jets(U, V, jets["eta"], deta)

    shift = jax.tree.map(lambda x: 0 * x, jets["deta"])
    return jax.vjp(forward, H, V, jets["dxi"], shift)[1](zz)


@quick_jit
def by_the_adjoint_sweeps(problem):
    jets = all_jets(T3k, problem, TRS)
    tucker, tt = assemblies(assembly, problem, jets, TRS, 1, kept=False, chunk_size=2)
    return tucker, tt, jets


def test_deta_tilde_and_dxi_tilde_are_the_adjoints_of_deta_and_dxi():
    problem = problem_of()
    _, _, jets = by_the_adjoint_sweeps(problem)
    _, _, dxi, deta = reverse_mode(problem)
    assert_trees_close(jets["deta_tilde"], deta)
    assert_trees_close(jax.tree.map(lambda x: x[:2], jets["dxi_tilde"]), dxi)


def test_the_assembled_gradient_is_that_of_reverse_mode():
    problem = problem_of()
    tucker, tt, jets = by_the_adjoint_sweeps(problem)
    H, V, dxi, _ = reverse_mode(problem)
    assert_trees_close(tt, H)
    # V acts directly, and through dxi = V (w + s p).
    inputs = zip(V, dxi, problem.ww, problem.pp, strict=True)
    expected = tuple(v + np.einsum("wm,wo->mo", x[0], w) + np.einsum("wm,wo->mo", x[1], p) for v, x, w, p in inputs)
    assert_trees_close(tucker, expected)


def test_scanned_runs_of_equal_cores_equal_unrolled_ones(monkeypatch):
    draw, d, trs = normal(2), 10, binomial_combine_tensor(1)
    _, _, L, R = equal_cores(draw, d)
    xi, deta = (tuple(draw(2, 2, 3) for _ in range(d)) for _ in range(2))
    mu, nu = (tuple(draw(2, 2, core.shape[axis]) for core in L) for axis in (0, 2))

    def adjoints(L, R, xi, deta, mu, nu):
        tau = edge_adjoints.compute_tau_tilde_jets(L, xi, deta, mu, trs)
        return tau, edge_adjoints.compute_sigma_tilde_jets(R, xi, deta, nu, trs)

    args = L, R, xi, deta, mu, nu
    scanned = quick_jit(adjoints)(*args)
    monkeypatch.setattr(sweeps, "MIN_SCAN", d)
    assert_trees_close(scanned, quick_jit(lambda *args: adjoints(*args))(*args))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_are_kept(dtype):
    problem = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), problem_of())
    jets = jax.eval_shape(lambda problem: all_jets(T3k, problem, TRS), problem)
    assert {str(x.dtype) for x in jax.tree.leaves(jets)} == {dtype}


def test_a_wrong_shape_fails_while_tracing_in_the_letters():
    problem = problem_of()
    jets = jax.eval_shape(lambda problem: all_jets(T3k, problem, TRS), problem)
    shorter = {
        name: jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape[1:]), x.dtype), jets[name]) for name in jets
    }
    L, R, O = problem.frame.left, problem.frame.right, problem.frame.down
    with pytest.raises(AssertionError, match=r"ztildes\[0\] has axes 'tWo'"):
        edge_adjoints.compute_deta_tilde_jets(problem.frame.up, problem.zz[::-1])
    with pytest.raises(AssertionError, match=r"deta_tildes\[0\] has axes 'tWk'"):
        edge_adjoints.compute_tau_tilde_jets(L, jets["xi"], shorter["deta_tilde"], jets["mu"], TRS)
    with pytest.raises(AssertionError, match=r"nu_jets\[0\] has axes 'tWb'"):
        edge_adjoints.compute_sigma_tilde_jets(R, jets["xi"], jets["deta_tilde"], shorter["nu"], TRS)
    with pytest.raises(AssertionError, match=r"sigma_tildes\[0\] has axes 'tWb'"):
        edge_adjoints.compute_dxi_tilde_jets(O, jets["mu"], jets["nu"], jets["tau_tilde"], jets["tau_tilde"], TRS)
