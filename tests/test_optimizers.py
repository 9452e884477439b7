"""What holds for every optimizer, on every kind of measurement and both geometries."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from tests.fit_problems import (
    DERIVATIVES,
    GEOMETRIES,
    KINDS,
    data_of,
    error,
    measure,
    near,
    order_of,
    sample_of,
    truth,
    zeros,
)

#: Optimizer, and settings with which it gets somewhere on the tiny problems.
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "newton_cg": (t3k.newton_cg, {}),
    "gradient_descent": (t3k.gradient_descent, {"max_iterations": 20}),
    "mc_sgd": (t3k.mc_sgd, {"batch_size": 40, "max_iterations": 50}),
    "adam": (t3k.adam, {"learning_rate": 0.01, "max_iterations": 100}),
}
DESCENT = ("newton_cg", "gradient_descent")


def run(name, geometry="manifold", kind="apply", x0=None, data=None, **settings):
    optimizer, defaults = OPTIMIZERS[name]
    settings = {"order": order_of(kind), **defaults, **settings}
    data = data_of(kind) if data is None else data
    return optimizer(GEOMETRIES[geometry], kind, sample_of(kind), data, near() if x0 is None else x0, **settings)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", [*KINDS, *DERIVATIVES])
def test_newton_recovers_the_tensor_from_every_kind(kind, geometry):
    x, stats = run("newton_cg", geometry, kind)
    assert stats.status == "converged", str(stats)
    assert error(x) < 1e-8


@pytest.mark.parametrize("name", ["gradient_descent", "mc_sgd", "adam"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", [*KINDS, *DERIVATIVES])
def test_every_other_optimizer_lowers_the_loss_of_every_kind(name, kind, geometry):
    x, stats = run(name, geometry, kind)
    assert stats.losses[-1] < 0.1 * stats.losses[0], str(stats)
    assert error(x) < error(near())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_history_ends_with_the_point_that_is_returned(name):
    x, stats = run(name)
    found = measure("apply", x, sample_of("apply")) - data_of("apply")
    assert stats.losses[-1] == pytest.approx(float((found**2).sum() / 2), rel=1e-6, abs=1e-25)
    assert len(stats.losses) == len(stats.steps) == len(stats.step_sizes) + 1 == len(stats.gradient_norms) + 1
    assert (stats.steps[0], stats.steps[-1]) == (0, stats.iterations)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_callback_stops_every_optimizer_where_it_says_so(name):
    seen = []

    def callback(info):
        seen.append(info)
        return info.iteration == 2

    settings = {} if name in DESCENT else {"check_every": 1}
    x, stats = run(name, callback=callback, **settings)
    assert (stats.status, stats.iterations, [info.iteration for info in seen]) == ("stopped", 2, [1, 2])
    assert all(bool((a == b).all()) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(seen[-1].x), strict=True))
    assert seen[-1].loss == stats.losses[-1]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_start_that_overflows_is_never_passed_off_as_converged(name):
    huge = data_of("apply") * 1e200
    x, stats = run(name, data=huge)
    assert stats.status == "non_finite"
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(x))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_zeros_fit_on_the_manifold_and_corewise_they_are_said_to_be_a_saddle(name):
    _, stats = run(name, x0=zeros())
    assert stats.losses[-1] < stats.losses[0]
    x, stats = run(name, "corewise", x0=zeros())
    assert stats.status == "line_search_failed"
    assert "saddle" in stats.message
    assert float(x.norm()) == 0


def test_adam_that_diverges_returns_the_last_finite_point():
    """Steps of a growing length: finite for a while, then not."""
    optax = pytest.importorskip("optax")
    grow = optax.sgd(lambda count: 10.0 ** (4 * count))
    x, stats = run("adam", "corewise", transformation=grow, check_every=1)
    assert stats.status == "non_finite"
    assert stats.iterations == 2
    assert np.isfinite(stats.losses).all()
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(x))


@pytest.mark.parametrize("name", ["newton_cg", "mc_sgd"])
def test_a_sample_of_weight_zero_does_not_count_whatever_it_holds(name):
    data = data_of("apply").at[7].set(jnp.nan)
    weight = np.ones(60)
    weight[7] = 0
    x, stats = run(name, data=data, sample_weight=weight)
    assert stats.losses[-1] < 0.1 * stats.losses[0]
    assert error(x) < error(near())


def test_validation_ends_a_fit_and_brings_back_the_best_point():
    kind = "apply"
    rng = np.random.default_rng(0)
    noisy = data_of(kind) + 0.05 * rng.standard_normal(60)
    held_out = sample_of(kind, 60, 5)
    validation = held_out, measure(kind, truth(), held_out)
    x, stats = run("adam", data=noisy, validation=validation, patience=3, check_every=5, max_iterations=400)
    assert stats.status == "stopped"
    assert f"iteration {stats.iterations}" in stats.message
    assert len(stats.validation_losses) == len(stats.losses)
    assert stats.validation_losses[-1] == min(stats.validation_losses)
    found = measure(kind, x, held_out) - validation[1]
    assert stats.validation_losses[-1] == pytest.approx(float((found**2).sum() / 2), rel=1e-6)


def test_the_same_key_gives_the_same_fit_and_another_key_another():
    runs = [run("mc_sgd", key=jax.random.key(seed))[1].losses for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_a_loss_that_has_settled_ends_a_stochastic_fit():
    rng = np.random.default_rng(0)
    noisy = data_of("apply") + 0.05 * rng.standard_normal(60)
    _, stats = run("mc_sgd", data=noisy, loss_tolerance=1e-3, max_iterations=5000, check_every=5)
    assert (stats.status, "has not fallen further" in stats.message) == ("converged", True)


def test_fewer_equations_than_parameters_are_spoken_of():
    kind = "apply"
    sample = sample_of(kind, 9)
    _, stats = t3k.newton_cg(t3k.MANIFOLD, kind, sample, truth().apply(sample), zeros(), max_iterations=3)
    assert "fewer equations (9) than free parameters (14)" in stats.message
    _, stats = run("newton_cg", kind=kind)
    assert "fewer" not in stats.message


REFUSALS = [
    (lambda: run("newton_cg", regularizer=0.1), TypeError, "regularizer must be a t3k.Regularizer"),
    (lambda: run("newton_cg", validation=3), TypeError, r"validation must be \(sample, data\)"),
    (lambda: run("newton_cg", patience=0), ValueError, "patience must be ints >= 1"),
    (lambda: run("mc_sgd", batch_size=0), ValueError, "batch_size must be ints >= 1"),
    (lambda: run("mc_sgd", check_every=0), ValueError, "check_every must be ints >= 1"),
    (lambda: run("newton_cg", sample_weight=np.ones(3)), ValueError, r"sample_weight must have shape \(60,\)"),
    (
        lambda: run("newton_cg", weight=np.ones(3)),
        ValueError,
        "weight must hold a finite number for each of the 1 orders",
    ),
    (lambda: run("newton_cg", kind="probe", weight=np.ones((3, 1))), ValueError, "weight must have a row for each of"),
    (lambda: run("newton_cg", data=np.ones((3, 60))), ValueError, r"data must have shape \(60,\)"),
    (lambda: run("newton_cg", data=np.full(60, np.nan)), ValueError, "data must be finite"),
    (
        lambda: run("newton_cg", kind="apply_derivatives", order=None),
        ValueError,
        'order must be given for the kind "apply_derivatives"',
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSALS)
def test_bad_input_is_refused_in_words(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
