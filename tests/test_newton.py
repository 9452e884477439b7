"""Optimizers as pure steps: they can be jitted, scanned and mapped, and a state knows how its fit stands."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t3k
from t3k.kernels import adam, gradient_descent, mc_sgd, newton
from t3k.kernels.objective import Objective
from t3k.kernels.rounds import run_steps
from t3k.kernels.status import Progress, Reason, Tolerances, judge
from tests.fit_problems import data_of, error, measure, near, randn, sample_of, zeros
from tests.trains import quick_jit

KIND = "apply"
OPTIONS = newton.NewtonOptions(tolerances=Tolerances(1e-9))


def measured(geometry=t3k.MANIFOLD, data=None):
    data = data_of(KIND) if data is None else data
    kernel, sample, data = t3k.apply_kind().prepare(near(), sample_of(KIND), data)
    return Objective(geometry.kernel, kernel), sample, data


@partial(quick_jit, static_argnums=(0, 1))
def scanned(objective, options, x, sample, data):
    def step(state, _):
        return newton.update(objective, options, state, sample, data)

    return jax.lax.scan(step, newton.init(objective, x), length=13)


def test_a_scanned_fit_ends_when_it_has_converged_and_keeps_its_point():
    objective, sample, data = measured()
    state, infos = scanned(objective, OPTIONS, near().cores, sample, data)
    assert Reason(int(state.status)) == Reason.SMALL_GRADIENT
    assert error(t3k.TuckerTensorTrain(*state.x)) < 1e-8
    taken = infos.accepted.tolist()
    assert taken == sorted(taken, reverse=True), "no step after the end"
    assert 2 < sum(taken) < 12


def test_many_fits_are_mapped_and_each_is_what_it_is_alone():
    objective, sample, data = measured()
    starts = [near(), randn(3), zeros()]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    states, _ = jax.vmap(scanned, in_axes=(None, None, 0, None, None))(objective, OPTIONS, stack.cores, sample, data)
    for i, start in enumerate(starts):
        alone, _ = scanned(objective, OPTIONS, start.cores, sample, data)
        assert int(states.status[i]) == int(alone.status)
        one = t3k.TuckerTensorTrain(*jax.tree.map(lambda x, i=i: x[i], states.x))
        assert error(one, t3k.TuckerTensorTrain(*alone.x)) < 1e-7


def test_a_compiled_fit_to_nan_says_so_and_does_not_move():
    objective, sample, data = measured()
    state, infos = scanned(objective, OPTIONS, near().cores, sample, data.at[0, 3].set(jnp.nan))
    assert Reason(int(state.status)) == Reason.NON_FINITE
    assert not bool(infos.accepted.any())
    assert error(t3k.TuckerTensorTrain(*state.x), near()) < 1e-12


@pytest.mark.parametrize("module", [newton, gradient_descent])
@pytest.mark.parametrize("geometry", [t3k.MANIFOLD, t3k.COREWISE])
def test_the_first_update_measures_the_start_and_leaves_it(module, geometry):
    objective, sample, data = measured(geometry)
    options = OPTIONS if module is newton else gradient_descent.GradientDescentOptions()
    start = module.init(objective, near().cores)
    state, info = quick_jit(module.update, static_argnums=(0, 1))(objective, options, start, sample, data)
    for new, old in zip(jax.tree.leaves(state.x), jax.tree.leaves(near().cores), strict=True):
        np.testing.assert_array_equal(new, old)
    frame, loss, gradient = objective.local(near().cores, sample, data)
    np.testing.assert_allclose(state.model.loss, loss)
    np.testing.assert_allclose(info.new_gradient_norm, state.reference_norm)
    for found, expected in zip(jax.tree.leaves(state.model), jax.tree.leaves((frame, loss, gradient)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (int(state.iteration), Reason(int(state.status))) == (0, Reason.RUNNING)


def test_over_ranked_starts_are_settled_before_a_loop():
    objective, *_ = measured()
    start = randn(0, tucker_ranks=(4, 5), tt_ranks=(2, 5, 1))
    state = newton.init(objective, start.cores)
    settled = t3k.TuckerTensorTrain(*state.x)
    assert (settled.tucker_ranks, settled.tt_ranks) == start.minimal_ranks
    assert error(settled, start) < 1e-12


def key_of(seed=0):
    return jax.random.key(seed)


def optax_of():
    return pytest.importorskip("optax")


@pytest.mark.parametrize("name", ["gradient_descent", "mc_sgd", "adam"])
def test_a_round_of_steps_is_the_steps_one_by_one(name):
    objective, sample, data = measured()
    module, options, init = {
        "gradient_descent": (gradient_descent, gradient_descent.GradientDescentOptions(), ()),
        "mc_sgd": (mc_sgd, mc_sgd.McSgdOptions(20), (key_of(),)),
        "adam": (adam, adam.AdamOptions(optax_of().adam(0.01), 20), (key_of(),)),
    }[name]
    start = (objective, options, near().cores, *init) if name == "adam" else (objective, near().cores, *init)
    state = module.init(*start)
    step = quick_jit(module.update, static_argnums=(0, 1))
    one = state
    for _ in range(3):
        one, info = step(objective, options, one, sample, data)
    three, last = quick_jit(partial(run_steps, module.update), static_argnums=(0, 1))(
        objective, options, state, sample, data, jnp.int32(3)
    )
    np.testing.assert_allclose(info.gradient_norm, last.gradient_norm, rtol=1e-9)
    for a, b in zip(jax.tree.leaves(one.x), jax.tree.leaves(three.x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_adam_on_cores_is_optax_step_by_step():
    optax = optax_of()
    transformation = optax.adam(0.02)
    objective, sample, data = measured(t3k.COREWISE)
    options = adam.AdamOptions(transformation)
    state = adam.init(objective, options, near().cores, key_of())
    step = quick_jit(adam.update, static_argnums=(0, 1))
    gradient = quick_jit(jax.grad(lambda cores: objective.value(cores, sample, data)))
    cores = near().cores
    with jax.numpy_dtype_promotion("standard"):
        theirs = transformation.init(cores)
        for _ in range(5):
            updates, theirs = transformation.update(gradient(cores), theirs, cores)
            cores = optax.apply_updates(cores, updates)
            state, _ = step(objective, options, state, sample, data)
            for a, b in zip(jax.tree.leaves(state.x), jax.tree.leaves(cores), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_weight_decay_shrinks_the_tensor_on_both_geometries():
    """A transformation that needs parameters sees the point as a tangent, or the cores."""
    optax = optax_of()
    for geometry, factor in ((t3k.MANIFOLD, 0.9), (t3k.COREWISE, 0.9**4)):
        objective, sample, data = measured(geometry, measure(KIND, near(), sample_of(KIND)))
        options = adam.AdamOptions(optax.chain(optax.add_decayed_weights(0.1), optax.scale(-1.0)))
        state = adam.init(objective, options, near().cores, key_of())
        state, _ = quick_jit(adam.update, static_argnums=(0, 1))(objective, options, state, sample, data)
        assert error(t3k.TuckerTensorTrain(*state.x), near() * factor) < 1e-10


def test_squares_keep_their_coordinates_and_moments_are_projected():
    transformation = optax_of().adam(0.01)
    objective, sample, data = measured()
    options = adam.AdamOptions(transformation)
    state = adam.init(objective, options, near().cores, key_of())
    step = quick_jit(adam.update, static_argnums=(0, 1))
    for _ in range(2):
        state, _ = step(objective, options, state, sample, data)
    moments = state.moments[0]
    assert all(bool((leaf >= 0).all()) for leaf in jax.tree.leaves(moments.nu))
    # The first moments are a tangent in the gauge of the last frame.
    for V, U in zip(moments.mu.tucker, state.frame.up, strict=True):
        np.testing.assert_allclose(V @ U.T, 0, atol=1e-10)


PROGRESS = {
    "loss": 1.0, "new_loss": 0.5, "new_gradient_norm": 1.0, "predicted_decrease": 0.5, "accepted": True
}  # fmt: skip
START = {"loss": np.inf, "predicted_decrease": 0.0}
NO_STEP = {"accepted": False, "new_loss": 1.0}
VERDICTS = [
    ({}, False, Reason.RUNNING),
    (START, True, Reason.RUNNING),
    ({**START, "accepted": False, "new_loss": np.inf}, True, Reason.NON_FINITE),
    ({**START, "new_gradient_norm": np.nan}, True, Reason.NON_FINITE),
    ({"new_gradient_norm": np.inf}, False, Reason.NON_FINITE),
    ({**START, "new_loss": 0.0}, True, Reason.ZERO_LOSS),
    ({"new_loss": 0.0}, False, Reason.ZERO_LOSS),
    ({**START, "new_gradient_norm": 0.0}, True, Reason.SADDLE),
    ({**START, "new_gradient_norm": 1e-9}, True, Reason.RUNNING),
    ({"new_gradient_norm": 1e-9}, False, Reason.SMALL_GRADIENT),
    ({**NO_STEP, "predicted_decrease": 1e-20}, False, Reason.WITHIN_ROUNDING),
    (NO_STEP, False, Reason.NO_DECREASE),
    ({"new_loss": 1 - 1e-7}, False, Reason.SMALL_DECREASE),
]


@pytest.mark.parametrize(("change", "starting", "expected"), VERDICTS)
def test_a_step_is_judged(change, starting, expected):
    step = Progress(**{name: jnp.asarray(value) for name, value in {**PROGRESS, **change}.items()})
    code = judge(step, jnp.float64(1.0), jnp.bool(starting), Tolerances(1e-8, 1e-6))
    assert Reason(int(code)) == expected
