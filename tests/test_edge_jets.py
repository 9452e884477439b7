"""Laws of the edge-variable jets: they are the derivatives of the plain recursions along X + s P."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import edge_jets, sweeps
from t3k.kernels.jets import binomial_combine_tensor
from tests.edge_pipeline import T3k, forward_jets, project
from tests.trains import Problem, assert_trees_close, draw_frame, draw_problem, equal_cores, normal, quick_jit

D, ORDER = 3, 2
TRS = binomial_combine_tensor(ORDER)


def problem_of(d: int = D, order: int = ORDER, n_probes: int = 6) -> Problem:
    return draw_problem(normal(d), draw_frame(normal(1), d, end=(2, 1)), order, n_probes)


def push(equation: str, *operands: Any) -> Any:
    return jnp.einsum(equation, *operands)


def plain_variables(problem: Problem, s: Any) -> dict[str, Any]:
    """The edge variables of the probes X + s P by the recursions of the method, without any jet."""
    ww, pp, _, (V, H), (U, O, L, R), *_ = problem
    moved = [w + s * p for w, p in zip(ww, pp, strict=True)]
    xi, dxi = project(U, moved), project(V, moved)
    d, n = len(U), ww[0].shape[0]
    mu, sigma = [jnp.ones((n, L[0].shape[0]))], [jnp.zeros((n, R[0].shape[0]))]
    for i in range(d - 1):
        sigma.append(
            push("wa,wk,akb->wb", sigma[i], xi[i], R[i])
            + push("wa,wk,akb->wb", mu[i], xi[i], H[i])
            + push("wa,wk,akb->wb", mu[i], dxi[i], O[i])
        )
        mu.append(push("wa,wk,akb->wb", mu[i], xi[i], L[i]))
    nu, tau = [jnp.ones((n, R[-1].shape[2]))], [jnp.zeros((n, L[-1].shape[2]))]
    for i in reversed(range(1, d)):
        tau.insert(
            0,
            push("wb,wk,akb->wa", tau[0], xi[i], L[i])
            + push("wb,wk,akb->wa", nu[0], xi[i], H[i])
            + push("wb,wk,akb->wa", nu[0], dxi[i], O[i]),
        )
        nu.insert(0, push("wb,wk,akb->wa", nu[0], xi[i], R[i]))
    eta = [push("wa,akb,wb->wk", mu[i], O[i], nu[i]) for i in range(d)]
    deta = [
        push("wa,akb,wb->wk", sigma[i], R[i], nu[i])
        + push("wa,akb,wb->wk", mu[i], H[i], nu[i])
        + push("wa,akb,wb->wk", mu[i], L[i], tau[i])
        for i in range(d)
    ]
    z = [deta[i] @ U[i] + eta[i] @ V[i] for i in range(d)]
    frame_z = [eta[i] @ V[i] for i in range(d)]
    names = {"mu": mu, "nu": nu, "eta": eta, "sigma": sigma, "tau": tau, "deta": deta, "z": z, "frame_z": frame_z}
    return {name: tuple(variables) for name, variables in names.items()}


def derivative(fun: Any) -> Any:
    return lambda s: jax.jvp(fun, (s,), (jnp.ones_like(s),))[1]


@quick_jit
def both(problem):
    fun: Any = None
    orders: Any = None
    for _ in range(ORDER + 1):
        fun = (lambda s: plain_variables(problem, s)) if fun is None else derivative(fun)
        value = fun(jnp.zeros((), problem.ww[0].dtype))
        orders = [value] if orders is None else [*orders, value]
    expected = jax.tree.map(lambda *x: jnp.stack(x), *orders)
    return forward_jets(T3k, problem, TRS), expected


def test_jets_are_the_derivatives_of_the_plain_recursions():
    jets, expected = both(problem_of())
    assert_trees_close({name: jets[name] for name in expected}, expected)


def test_input_jets_have_the_value_and_the_direction():
    xi, dxi = normal(0)(5, 2), normal(1)(5, 2)
    (jet,) = edge_jets.build_input_jets((xi,), (dxi,))
    np.testing.assert_array_equal(jet, np.stack([xi, dxi]))


run = quick_jit(lambda problem: forward_jets(T3k, problem, TRS))


@pytest.mark.parametrize("probes", [(2, 3), ()])
def test_several_probe_axes_are_one_reshaped(probes):
    problem = problem_of(n_probes=6 if probes else 1)

    def reshape(x):
        return np.reshape(x, (*x.shape[:-2], *probes, x.shape[-1]))

    names = ("ww", "pp", "zz")
    several = problem._replace(**{name: tuple(map(reshape, getattr(problem, name))) for name in names})
    assert_trees_close(run(several), jax.tree.map(reshape, run(problem)))


def test_order_zero_is_the_first_entry():
    problem = problem_of()
    plain = quick_jit(lambda problem: forward_jets(T3k, problem, binomial_combine_tensor(0)))(problem)
    whole = run(problem)
    for name in plain:
        first = whole[name] if name in ("xi", "dxi") else jax.tree.map(lambda x: x[:1], whole[name])
        assert_trees_close(plain[name], first)


def test_scanned_runs_of_equal_cores_equal_unrolled_ones(monkeypatch):
    draw, d, trs = normal(3), 10, binomial_combine_tensor(1)
    _, O, L, _ = equal_cores(draw, d)
    xi = tuple(draw(2, 2, 3) for _ in range(d))

    def mu_and_tau(L, O, xi):
        nu = edge_jets.compute_nu_jets(L, xi, trs)
        return edge_jets.compute_mu_jets(L, xi, trs), edge_jets.compute_tau_jets(O, L, O, xi, xi, nu, trs)

    scanned = quick_jit(mu_and_tau)(L, O, xi)
    monkeypatch.setattr(sweeps, "MIN_SCAN", d)
    assert_trees_close(scanned, quick_jit(lambda *args: mu_and_tau(*args))(L, O, xi))


def test_stacked_trains_come_back_stacked_and_equal_tuples():
    draw = normal(2)
    cores, xi = tuple(draw(2, 3, 2) for _ in range(4)), tuple(draw(2, 5, 3) for _ in range(4))

    @quick_jit
    def mu_and_eta(cores, xi):
        mu, nu = edge_jets.compute_mu_jets(cores, xi, TRS), edge_jets.compute_nu_jets(cores, xi, TRS)
        return mu, nu, edge_jets.compute_eta_jets(cores, mu, nu, TRS)

    stacked = mu_and_eta(np.stack(cores), np.stack(xi))
    assert_trees_close(stacked, tuple(jnp.stack(train) for train in mu_and_eta(cores, xi)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes_are_kept(dtype):
    problem = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), problem_of())
    jets = jax.eval_shape(lambda problem: forward_jets(T3k, problem, TRS), problem)
    assert {str(x.dtype) for x in jax.tree.leaves(jets)} == {dtype}


WRONG = {
    "one mode less": lambda p: p._replace(frame=p.frame._replace(left=p.frame.left[:-1])),
    "left cores with a bond that does not match": lambda p: p._replace(
        frame=p.frame._replace(left=(np.ones((2, 2, 7)), *p.frame.left[1:]))
    ),
    "right cores with another Tucker index": lambda p: p._replace(
        frame=p.frame._replace(right=(*p.frame.right[:-1], np.ones((2, 7, 1))))
    ),
    "down cores with another bond": lambda p: p._replace(
        frame=p.frame._replace(down=(np.ones((2, 3, 7)), *p.frame.down[1:]))
    ),
    "variations with another bond": lambda p: p._replace(
        variations=p.variations._replace(tt=(np.ones((2, 2, 7)), *p.variations.tt[1:]))
    ),
    "directions of fewer probes": lambda p: p._replace(pp=tuple(x[1:] for x in p.pp)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_shape_fails_while_tracing_in_the_letters(wrong):
    with pytest.raises(AssertionError, match="has axes|modes, expected|right bond of"):
        jax.eval_shape(lambda problem: forward_jets(T3k, problem, TRS), WRONG[wrong](problem_of()))


def test_a_product_rule_of_another_order_fails_in_the_letters():
    cores: Any = (np.ones((1, 2, 1)),)
    xi: Any = (np.ones((2, 5, 2)),)
    mu = edge_jets.compute_mu_jets(cores, xi, binomial_combine_tensor(1))
    with pytest.raises(AssertionError, match=r"mu_jets\[0\] has axes 'tWa'"):
        edge_jets.compute_eta_jets(cores, mu, mu, TRS)
    with pytest.raises(AssertionError, match="trs has axes 'ttt'"):
        edge_jets.compute_mu_jets(cores, xi, np.ones((2, 2, 3)))
