"""The api on several devices: maps and fits find their way by where the arrays lie."""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import t3k
from t3k.api import compiled
from t3k.api.sharding import spread_kind
from t3k.kernels import newton
from t3k.kernels.objective import Objective
from tests.api_problems import SHAPE, TT_RANKS, TUCKER_RANKS, assert_trees_close, residuals, tensor, vectors
from tests.collectives import GATHERING, bodies_of_loops, count

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
    kept = t3k.tv_probe_derivatives_transpose(spread_data, *sample, x.frame(), ORDER, chunk_size=3)
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
            data, *sample, x.frame(), ORDER, sum_over_probes=True, chunk_size=3, sharding=told
        )

    program = transpose.lower(spread_data, sample).compile()
    text = program.as_text()
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    assert count(text, "all-reduce") == 1
    assert "all-reduce" not in bodies_of_loops(text)
    expected = t3k.tv_probe_derivatives_transpose(data, ww, pp, x.frame(), ORDER, sum_over_probes=True)
    assert_trees_close(program(spread_data, sample), expected)


def test_stacks_of_tangents_and_probe_axes_are_spread_by_the_first_probe_axis():
    x, probes = tensor(), (2 * DEVICES, 3)
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
    sample, data = on_devices()
    kind, probes, zz = t3k.probe_derivatives_kind(ORDER, chunk_size=3).prepare(zeros(), sample, data)
    objective = Objective(t3k.MANIFOLD.kernel, spread_kind(kind, probes))
    step = compiled.optimizer_step(newton.update, True)
    state = newton.init(objective, zeros().cores)
    text = step.lower(objective, newton.NewtonOptions(), state, probes, zz).compile().as_text()
    assert [count(text, operation) for operation in GATHERING] == [0] * len(GATHERING)
    # The misfit at the start, the products of CG, the trials of the line search, and what it may have left by rounding.
    assert count(text, "all-reduce") == 4


def test_auto_sizes_a_chunk_for_one_device():
    kind, _, _ = t3k.probe_derivatives_kind(ORDER).prepare(zeros(), *on_devices())
    assert kind.chunk_size == 64 // DEVICES


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
    assert pp == ()


def test_what_cannot_be_spread_is_refused():
    ww, zz = vectors((6,)), vectors((5,))
    with pytest.raises(ValueError, match=r"equally many probes at every mode; got \[5, 6\]"):
        t3k.shard_probes("probe", ww, zz)
    with pytest.raises(ValueError, match="must divide evenly over the devices; got 6"):
        t3k.shard_probes("probe", ww[:1], ww[:1])
    with pytest.raises(ValueError, match='kind must be "probe"'):
        t3k.shard_probes("prob", ww, ww)
    with pytest.raises(ValueError, match=r"data\[1\] must have an axis for the probes"):
        t3k.shard_probes("probe", ww, (zz[0], zz[1][:, 0]))
