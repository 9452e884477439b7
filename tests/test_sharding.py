"""The api on several devices: maps and fits find their way by where the arrays lie."""

import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import t3k
from t3k.api import compiled
from t3k.api.kinds import as_kind
from t3k.api.sharding import spread_kind
from t3k.kernels import newton
from t3k.kernels.minibatches import draw_rows
from t3k.kernels.objective import Objective
from t3k.kernels.sharded_kind import ShardedKind
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, residuals, tensor, vectors
from tests.collectives import GATHERING, bodies_of_loops, count
from tests.trains import quick_jit

P = PartitionSpec
DEVICES, ORDER = 8, 1
N_PROBES = 60  # four zero probes make it 64
EXAMPLE = Path(__file__).parent.parent / "examples" / "sharded.py"


def zeros() -> t3k.TuckerTensorTrain:
    return t3k.TuckerTensorTrain.zeros(SHAPE, TUCKER_RANKS, TT_RANKS)


@functools.cache
def measured() -> tuple[Any, Any, Any]:
    x, sample = tensor(), (vectors((N_PROBES,)), vectors((N_PROBES,), 10))
    return x, sample, x.probe_derivatives(*sample, ORDER)


def mesh(kind: AxisType) -> jax.sharding.Mesh:
    return jax.make_mesh((DEVICES,), ("w",), axis_types=(kind,))


def on_devices(kind: AxisType = AxisType.Auto) -> tuple[Any, Any]:
    _, sample, data = measured()
    return t3k.shard_probes("probe_derivatives", sample, data, mesh(kind))


def fit(sample: Any, data: Any, **options: Any) -> Any:
    return t3k.newton_cg(t3k.MANIFOLD, "probe_derivatives", sample, data, zeros(), order=ORDER, **options)


# Maps.


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_maps_of_spread_arrays_have_the_values_of_one_device_and_spread_results(kind):
    x, (ww, pp), data = measured()
    sample, spread_data = on_devices(kind)
    kept = t3k.tv_probe_derivatives_transpose(spread_data, sample[0], sample[1], x.frame(), ORDER, chunk_size=3)
    expected = t3k.tv_probe_derivatives_transpose(data, ww, pp, x.frame(), ORDER, chunk_size=3)
    assert_trees_close(jax.tree.map(lambda g: np.asarray(g)[:N_PROBES], kept), expected)
    assert all(g.sharding.spec[0] == "w" for g in jax.tree.leaves(kept))
    z = x.probe_derivatives(*sample, ORDER, chunk_size=3)
    assert_trees_close(tuple(np.asarray(a)[:, :N_PROBES] for a in z), data)
    assert z[0].sharding.spec[:2] == (None, "w")


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_plain_jit_of_the_transpose_gathers_nothing(kind):
    """On automatic axes, arrays do not tell inside `jit` where they lie, so the caller does."""
    x, (ww, pp), data = measured()
    sample, spread_data = on_devices(kind)
    told = NamedSharding(mesh(kind), P("w")) if kind == AxisType.Auto else None

    @jax.jit
    def transpose(data, sample):
        return t3k.tv_probe_derivatives_transpose(
            data, sample[0], sample[1], x.frame(), ORDER, sum_over_probes=True, chunk_size=3, sharding=told
        )

    program = transpose.lower(spread_data, sample).compile()
    text = str(program.as_text())
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    assert count(text, "all-reduce") == 1
    assert "all-reduce" not in bodies_of_loops(text)
    expected = t3k.tv_probe_derivatives_transpose(data, ww, pp, x.frame(), ORDER, sum_over_probes=True)
    assert_trees_close(program(spread_data, sample), expected)


def test_stacks_of_tangents_and_probe_axes_are_spread_by_the_first_probe_axis():
    x, probes = tensor(), (2 * DEVICES, 3)
    spread: Any
    ww, zz = vectors(probes), residuals(probes, 0, (2,))
    place = functools.partial(jax.device_put, device=NamedSharding(mesh(AxisType.Auto), P("w")))
    one = t3k.tv_probe_derivatives_transpose(zz, ww, None, x.frame(), 0, chunk_size=4)
    spread = t3k.tv_probe_derivatives_transpose(zz, jax.tree.map(place, ww), None, x.frame(), 0, chunk_size=4)
    assert_trees_close(spread, one)
    assert spread[0][0].sharding.spec == P("w")


# Fits.


def test_a_fit_on_all_devices_is_the_fit_on_one():
    _, sample, data = measured()
    expected, _ = fit(sample, data)
    found, stats = fit(*on_devices(), chunk_size=3)
    assert stats.status == "converged"
    assert stats.chunk_size == 3
    assert_trees_close(found.to_dense(), expected.to_dense(), 1e-10)


def test_its_compiled_step_gathers_nothing_and_reduces_what_the_loops_over_chunks_have_summed():
    kind, sample, data = t3k.probe_derivatives_kind(ORDER, chunk_size=3).prepare(zeros(), *on_devices())
    objective = Objective(t3k.MANIFOLD.kernel, spread_kind(kind, sample))
    state = compiled.optimizer_init(newton.init, objective, zeros().cores)
    step = compiled.optimizer_step(newton.update, True).lower(objective, newton.NewtonOptions(), state, sample, data)
    text = str(step.compile().as_text())
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    # The misfit at the start, the products of CG, the trials of the line search, and the size of the data.
    assert count(text, "all-reduce") <= 4


def test_auto_sizes_a_chunk_for_one_device():
    kind: Any = t3k.probe_derivatives_kind(ORDER).prepare(zeros(), *on_devices()).kind
    assert kind.chunk_size == 64 // DEVICES


@dataclass(frozen=True)
class SquaredApplies(t3k.Kind):
    def measure(self, x: Any, sample: Any) -> Any:
        return x.apply(sample) ** 2


@pytest.mark.parametrize("kind", ["apply", "entries", SquaredApplies()])
def test_every_kind_is_measured_by_all_devices_as_by_one(kind):
    rng = np.random.default_rng(5)
    at: Any = tuple(rng.integers(0, N, 16) for N in SHAPE) if kind == "entries" else vectors((16,))
    user_kind, (frame, point) = as_kind(kind, None, None, 1), t3k.MANIFOLD.kernel.frame(tensor().cores)

    def measure(kernel, sample, data, frame, point):
        return (*kernel.misfit(sample, data, point, frame, gradient=True), kernel.squares(sample, data, point, frame))

    found = []
    for sample, data in ((at, np.ones(16)), t3k.shard_probes(kind, at, np.ones(16))):
        kernel, *prepared = user_kind.prepare(tensor(), sample, data)
        kernel = spread_kind(kernel, prepared[0])
        found.append(quick_jit(measure, static_argnums=0)(kernel, *prepared, frame, point))
    assert isinstance(kernel, ShardedKind)
    assert_trees_close(found[1], found[0])


@pytest.mark.parametrize("by_index", [False, True])
def test_applies_and_entries_of_spread_arrays_have_the_values_of_one_device(by_index):
    """Their transposes too, summed by one reduction and without gathering."""
    v = t3k.MANIFOLD.randn(jax.random.key(3), tensor().frame())
    rng, n = np.random.default_rng(6), 2 * DEVICES
    at: Any = tuple(rng.integers(0, N, n) for N in SHAPE) if by_index else vectors((n,))
    forward = t3k.tv_entries_derivatives if by_index else t3k.tv_apply_derivatives
    back = t3k.tv_entries_derivatives_transpose if by_index else t3k.tv_apply_derivatives_transpose
    place = functools.partial(jax.device_put, device=NamedSharding(mesh(AxisType.Explicit), P("w")))
    spread_at, pp, zz = jax.tree.map(place, at), vectors((n,), 10), rng.standard_normal((2, n))
    y = forward(spread_at, pp, v.variations, v.frame, 1, chunk_size=1)
    assert y.sharding == NamedSharding(mesh(AxisType.Explicit), P(None, "w"))
    assert_trees_close(np.asarray(y), forward(at, pp, v.variations, v.frame, 1))

    def summed(at: Any, pp: Any, zz: Any) -> Any:
        return back(zz, at, pp, v.frame, 1, True, 1)

    program = jax.jit(summed).lower(spread_at, jax.tree.map(place, pp), zz).compile()
    text = str(program.as_text())
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    assert count(text, "all-reduce") == 1
    assert_trees_close(program(spread_at, jax.tree.map(place, pp), zz), summed(at, pp, zz))


def test_each_device_draws_its_share_of_a_minibatch_among_its_own_rows():
    rows = np.arange(4 * DEVICES)
    sample, data = t3k.shard_probes("entries", tuple(rows % N for N in SHAPE), 1.0 * rows)
    kernel, *prepared = t3k.entries_kind().prepare(tensor(), sample, data)
    kind = spread_kind(kernel, prepared[0])
    draw = jax.jit(functools.partial(draw_rows, kind), static_argnums=1)
    index, drawn = draw(jax.random.key(0), 2 * DEVICES, *prepared)
    assert drawn.sharding.spec == P(None, "probes")
    found = np.asarray(drawn[0])
    assert (found // 4 == np.arange(2 * DEVICES) // 2).all()
    assert len(set(found % 4)) > 1  # not the same draw on every device
    assert all((np.asarray(at) == found % N).all() for at, N in zip(index.at, SHAPE, strict=True))
    text = str(draw.lower(jax.random.key(0), 2 * DEVICES, *prepared).compile().as_text())
    assert [count(text, operation) for operation in (*GATHERING, "all-reduce")] == [0] * 5


def test_minibatches_fit_on_all_devices():
    options: Any = {"order": ORDER, "max_iterations": 60, "check_every": 20, "key": jax.random.key(1)}
    x0 = t3k.TuckerTensorTrain.randn(jax.random.key(4), SHAPE, TUCKER_RANKS, TT_RANKS)
    fit_batches = functools.partial(t3k.mc_sgd, t3k.MANIFOLD, "probe_derivatives", *on_devices(), x0, **options)
    _, stats = fit_batches(batch_size=5 * DEVICES)
    assert stats.losses[-1] < 1e-2 * stats.losses[0]
    with pytest.raises(ValueError, match="batch_size must be a multiple of the 8 devices of the samples; got 30"):
        fit_batches(batch_size=30)


@pytest.mark.slow
def test_two_processes_fit_their_own_probes_together():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--processes", "2", "--probes", "320", "--size", "8", "--rank", "2"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "320 probes on 8 devices of 2 processes" in done.stdout
    assert "fit: converged" in done.stdout
    assert "0 all-gathers, 1 all-reduce," in done.stdout


# shard_probes.


def test_probes_are_spread_over_what_was_asked_for_and_filled_up_with_zeros():
    ww, zz = vectors((6,)), vectors((6,), 1)
    spread, data = t3k.shard_probes("probe", ww, zz, jax.devices()[:4])
    assert [w.shape for w in spread] == [(8, size) for size in SHAPE]
    assert len(spread[0].sharding.device_set) == 4
    assert_trees_close(tuple(np.asarray(w)[:6] for w in spread), ww, 0)
    assert not any(np.asarray(x)[6:].any() for x in (*spread, *data))
    (_, pp), _ = t3k.shard_probes(t3k.probe_derivatives_kind(0), (ww, None), tuple(z[None] for z in zz))
    assert pp is None


def test_what_cannot_be_spread_is_refused():
    ww, zz = vectors((6,)), vectors((5,))
    with pytest.raises(ValueError, match=r"equally many samples in every array; got \[5, 6\]"):
        t3k.shard_probes("probe", ww, zz)
    with pytest.raises(ValueError, match="must divide evenly over the 8 devices; got 6"):
        t3k.shard_probes("probe", ww[:1], ww[:1])
    with pytest.raises(ValueError, match="must divide evenly over the 8 devices; got 6"):
        t3k.shard_probes("entries", tuple(np.arange(6) for _ in SHAPE), np.ones(6))
    with pytest.raises(ValueError, match='kind must be "probe"'):
        t3k.shard_probes("prob", ww, ww)
    with pytest.raises(ValueError, match=r"must have an axis for the samples; got shape \(\)"):
        t3k.shard_probes("apply", ww, 3.0)
