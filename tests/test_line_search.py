import jax.numpy as jnp

from t3k.kernels.line_search import backtrack

POINT = jnp.zeros(())


def search(fun, slope, **options):
    return backtrack(lambda step: (step, fun(step)), POINT, fun(POINT), jnp.asarray(slope), **options)


def test_a_full_step_that_decreases_enough_is_taken():
    result = search(lambda t: (t - 1.0) ** 2, -2.0)
    assert bool(result.accepted)
    assert (float(result.step_size), float(result.value), float(result.point)) == (1.0, 0.0, 1.0)


def test_too_long_steps_are_halved():
    result = search(lambda t: (t - 0.2) ** 2, -0.4)
    assert bool(result.accepted)
    assert float(result.step_size) == 0.25


def test_values_that_are_not_finite_are_steps_that_are_too_long():
    result = search(lambda t: jnp.where(t > 0.3, jnp.nan, -t), -1.0)
    assert bool(result.accepted)
    assert float(result.step_size) == 0.25


def test_a_direction_of_ascent_is_not_accepted():
    result = search(lambda t: t, -1.0, max_halvings=5)
    assert not bool(result.accepted)
    assert float(result.step_size) == 2.0**-4
