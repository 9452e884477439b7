"""A kind on several devices is the same kind: values, hashes and settings."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t3k.kernels.measurements import ProbeKind
from t3k.kernels.probe_maps import Probes
from t3k.kernels.sharded_kind import ShardedKind
from tests.trains import assert_trees_close, draw_frame, draw_problem, normal, quick_jit


def spread_kind() -> ShardedKind:
    sharding = NamedSharding(Mesh(np.asarray(jax.devices()), ("w",)), PartitionSpec("w"))
    return ShardedKind(ProbeKind(1, 3), sharding)


def test_a_spread_kind_measures_as_the_kind_does():
    x = draw_problem(normal(0), draw_frame(normal(1), 2), 1, 16)

    def both(kind):
        sample = Probes(x.ww, x.pp, x.weights, x.rows)
        value = kind.misfit(sample, x.zz, x.point, x.frame, gradient=False)
        squares = kind.squares(sample, x.zz, x.point, x.frame)
        return value, kind.gauss_newton(sample, x.variations, x.frame), squares

    measure = quick_jit(both, static_argnums=0)
    assert_trees_close(measure(spread_kind()), measure(ProbeKind(1, 3)))


def test_it_hashes_by_value_and_tells_the_settings_of_the_kind():
    assert len({spread_kind(), spread_kind()}) == 1
    assert (spread_kind().order, spread_kind().chunk_size) == (1, 3)
