"""Pymanopt's optimizers run on t3k's manifold and find what t3k's own do."""

import sys
from typing import Any

import jax
import numpy as np
import pytest

import t3k
from tests.fit_problems import data_of, error, near, sample_of, truth

pymanopt = pytest.importorskip("pymanopt")


def problem(**settings):
    return t3k.pymanopt_problem(t3k.MANIFOLD, "apply", sample_of("apply"), data_of("apply"), near(), **settings)


@pytest.mark.parametrize("name", ["TrustRegions", "ConjugateGradient", "SteepestDescent"])
def test_its_optimizers_recover_the_tensor(name):
    optimizer = getattr(pymanopt.optimizers, name)(verbosity=0, max_iterations=60, min_gradient_norm=1e-9)
    found = optimizer.run(problem(), initial_point=near()).point
    assert isinstance(found, t3k.TuckerTensorTrain)
    assert error(found) < 1e-5


def test_gradient_and_hessian_are_of_the_cost_to_first_order():
    fit = problem()
    manifold, x = fit.manifold, near()
    v, rest = manifold.random_tangent_vector(x), []
    slope = manifold.inner_product(x, fit.riemannian_gradient(x), v)
    for step in (1e-2, 1e-3):
        moved = fit.cost(manifold.retraction(x, np.float64(step) * v))
        rest.append(abs(moved - fit.cost(x) - step * slope))
    assert 1.8 < np.log10(rest[0] / rest[1]) < 2.2
    w = fit.riemannian_hessian(x, v)
    assert manifold.inner_product(x, w, v) > 0


def test_the_manifold_is_what_pymanopt_expects():
    manifold, x = problem().manifold, near()
    point = manifold.random_point()
    v = manifold.random_tangent_vector(x)
    assert manifold.dim == 14
    assert "shape (4, 5)" in str(manifold)
    np.testing.assert_allclose(manifold.norm(x, v), 1, rtol=1e-12)
    assert manifold.norm(x, manifold.zero_vector(x)) == 0
    np.testing.assert_allclose(manifold.norm(x, manifold.projection(x, v) - v), 0, atol=1e-12)
    np.testing.assert_allclose(manifold.norm(x, manifold.to_tangent_space(x, v) - v), 0, atol=1e-12)
    assert manifold.norm(point, manifold.transport(x, point, v)) <= 1 + 1e-12
    assert manifold.dist(x, truth()) == pytest.approx(float((x - truth()).norm()))


def test_what_does_not_fit_is_refused(monkeypatch):
    corewise: Any = t3k.COREWISE
    with pytest.raises(TypeError, match="geometry must be t3k.MANIFOLD or a t3k.SharedManifold"):
        t3k.pymanopt_problem(corewise, "apply", sample_of("apply"), data_of("apply"), near())
    monkeypatch.setitem(sys.modules, "pymanopt", None)
    with pytest.raises(ImportError, match=r"pip install 't3k\[pymanopt\]'"):
        problem()


def test_a_scalar_of_numpy_multiplies_a_tangent():
    v = t3k.MANIFOLD.randn(jax.random.key(0), near().frame())
    assert isinstance(np.float64(2.0) * v, t3k.T3Tangent)
