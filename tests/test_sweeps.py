"""Laws of sweeps: a scanned run of equal cores does what an unrolled one does."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels import sweeps
from tests.trains import assert_trees_close, assert_trees_equal, normal, quick_jit

SHAPES = [(1, 3), (3, 3), (3, 3), (3, 3), (3, 3), (3, 2), (2, 2), (2, 1)]


def train():
    draw = normal(0)
    return [draw(*shape) for shape in SHAPES]


def step(carry: Any, core: Any) -> tuple[Any, Any]:
    following = jnp.tanh(carry @ core)
    return following, (carry, following.sum())


def backward(carry: Any, core: Any) -> tuple[Any, Any]:
    return core @ carry, carry


def by_hand(cores: Any) -> tuple[Any, Any]:
    carry, outputs = jnp.ones((1,)), []
    for core in cores:
        carry, output = step(carry, core)
        outputs.append(output)
    return carry, tuple(outputs)


def test_runs_cover_the_train_and_only_long_ones_are_scanned():
    assert sweeps.find_runs(train()) == ((0, 1), (1, 5), (5, 6), (6, 7), (7, 8))


def test_runs_end_where_dtype_or_structure_changes():
    x, y = np.zeros(2, np.float32), np.zeros(2, np.float64)
    assert sweeps.find_runs([x, x, x, y, y, y]) == ((0, 3), (3, 6))
    assert sweeps.find_runs([(x,), (x,), (x,), x, x, x]) == ((0, 3), (3, 6))
    assert sweeps.find_runs([x]) == ((0, 1),)


def test_unstacking_is_the_inverse_of_stacking():
    items = [(core, core.sum()) for core in train()]
    runs = sweeps.find_runs(items)
    assert_trees_equal(
        quick_jit(lambda items: sweeps.unstack_runs(runs, sweeps.stack_runs(runs, items)))(items), tuple(items)
    )


def test_a_sweep_is_a_loop_over_the_cores():
    cores = train()
    swept = quick_jit(lambda cores: sweeps.sweep_cores(step, jnp.ones((1,)), cores))(cores)
    assert_trees_close(swept, quick_jit(by_hand)(cores))


def test_a_reverse_sweep_goes_from_the_last_core_and_keeps_the_order_of_modes():
    cores = train()
    carry, entering = quick_jit(lambda cores: sweeps.sweep_cores(backward, jnp.ones((1,)), cores, reverse=True))(cores)
    for i in range(len(cores)):
        expected = np.ones(1)
        for core in reversed(cores[i + 1 :]):
            expected = core @ expected
        assert_trees_close(entering[i], expected)
    assert_trees_close(carry, cores[0] @ np.asarray(entering[0]))


@pytest.mark.parametrize("reverse", [False, True])
def test_settle_prepares_the_carry_of_scanned_runs_only(reverse):
    cores = [np.ones(2)] * 4 + [np.ones(3)]
    runs = sweeps.find_runs(cores)
    seen = []

    def settle(carry: Any, core: Any) -> Any:
        seen.append(core.shape)
        return (carry[0], jnp.zeros(()) if carry[1] is None else carry[1])

    def count(carry: Any, core: Any) -> tuple[Any, Any]:
        total = carry[0] + core.sum()
        return (total, None if carry[1] is None else carry[1] + 1), total

    grouped = sweeps.stack_runs(runs, cores)
    carry, totals = sweeps.sweep(count, (jnp.zeros(()), None), runs, grouped, reverse=reverse, settle=settle)
    assert seen == [(4, 2)]
    assert float(carry[0]) == 11
    assert float(carry[1]) == (4 if reverse else 5)
    expected = [11, 9, 7, 5, 3] if reverse else [2, 4, 6, 8, 11]
    assert [float(total) for total in sweeps.unstack_runs(runs, totals)] == expected


@pytest.mark.parametrize("more", [0, sweeps.MIN_BATCH])
def test_a_map_over_cores_is_a_loop(more):
    """Whether the modes of a run are taken one by one, or (in a long one) by one operation."""
    cores = [*train(), *[train()[-1]] * more]
    runs = sweeps.find_runs(cores)

    def mapped(cores):
        return sweeps.unstack_runs(
            runs, sweeps.map_cores(lambda core: core @ core.T, runs, sweeps.stack_runs(runs, cores))
        )

    assert_trees_close(quick_jit(mapped)(cores), tuple(core @ core.T for core in cores))


def test_the_program_of_a_sweep_does_not_grow_with_the_number_of_equal_cores():
    def size(d: int) -> int:
        grouped = (jax.ShapeDtypeStruct((d, 3, 3), np.float64),)
        program = jax.make_jaxpr(lambda grouped: sweeps.sweep(step, jnp.ones((3,)), ((0, d),), grouped))(grouped)
        return len(str(program).splitlines())

    assert size(12) == size(24)
