"""Samples of a T3 and of stacks of them: probes, applies and entries, and their derivatives along X + s P."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from t3k.api import compiled, validate
from t3k.api.chunk_size import auto_chunk
from t3k.api.indices import flat_indices
from t3k.api.probe_vectors import flat_vectors
from t3k.api.problem_shape import ProblemShape
from t3k.api.stacks import over_points, split_axis
from t3k.kernels.chunking import check_chunk_size
from t3k.kernels.scratch import check_memory
from t3k.kernels.sharded import n_shards, row_sharding
from t3k.kernels.stored_arrays import reading
from t3k.kernels.types import Array, T3Cores

__all__ = ["apply_derivatives", "entries_derivatives", "probe_derivatives", "resolve_chunk"]


def resolve_chunk(
    chunk_size: Any,
    up: Any,
    tt: Any,
    order: int,
    n_probes: int,
    n_tangent: int = 1,
    operation: str = "transpose",
    *,
    kind: str = "probe",
    memory: Any = None,
) -> int | None:
    """The chunk that `chunk_size` stands for, from the shapes of ``up`` and TT cores (with their stack axes).

    `memory` bounds the scratch of ``"auto"``, which is that of an operation of a kind (see `problem_shape`).

    Raises:
      TypeError, ValueError: see `check_chunk_size` and `check_memory`; or if one row at a time is more than `memory`.
    """
    checked = check_chunk_size(chunk_size, auto=True)
    budget = check_memory(memory, checked)
    if n_probes == 0 or not isinstance(checked, str):
        return None if n_probes == 0 or checked is None else int(checked)
    stacked = n_tangent * int(np.prod(up[0].shape[:-2]))
    sizes = tuple(U.shape[-1] for U in up), tuple(U.shape[-2] for U in up)
    bonds = (tt[0].shape[-3], *(G.shape[-1] for G in tt))
    problem = ProblemShape(*sizes, bonds, order, n_probes, stacked, jnp.dtype(up[0].dtype), kind)
    return auto_chunk(problem, operation, budget)


def probe_derivatives(cores: T3Cores, ww: Any, pp: Any, order: Any, chunk_size: Any) -> tuple[Array, ...]:
    """``(order+1,) + W + C + (N_i,)`` per mode; see `TuckerTensorTrain.probe_derivatives`."""
    order = validate.as_order(order)
    shape, dtype = tuple(U.shape[-1] for U in cores.tucker), cores.tucker[0].dtype
    probes, ww, pp = flat_vectors(ww, pp, shape, dtype, order)
    sharding = row_sharding(ww[0])
    n_probes = ww[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(chunk_size, cores.tucker, cores.tt, order, n_probes, operation="jacobian")

    def kernel(cores: T3Cores) -> tuple[Array, ...]:
        return tuple(compiled.t3_probes(ww, pp, cores, order, chunk_size=chunk, sharding=sharding))

    with reading(ww, pp) as wait:
        zz = wait(over_points(kernel, cores.tucker[0].shape[:-2], cores, out_axis=2))
    return split_axis(zz, 1, probes)


def apply_derivatives(cores: T3Cores, ww: Any, pp: Any, order: Any, chunk_size: Any) -> Array:
    """``(order+1,) + W + C``; see `TuckerTensorTrain.apply_derivatives`."""
    return _sampled(cores, "apply", flat_vectors, ww, pp, order, chunk_size)


def entries_derivatives(cores: T3Cores, index: Any, pp: Any, order: Any, chunk_size: Any) -> Array:
    """``(order+1,) + W + C``; see `TuckerTensorTrain.entries_derivatives`."""
    return _sampled(cores, "entries", flat_indices, index, pp, order, chunk_size)


def _sampled(
    cores: T3Cores, kind: str, flatten: Callable[..., Any], at: Any, pp: Any, order: Any, chunk_size: Any
) -> Array:
    """Samples with no mode left free, at what `flatten` makes of `at` and `pp`."""
    order = validate.as_order(order)
    shape, dtype = tuple(U.shape[-1] for U in cores.tucker), cores.tucker[0].dtype
    probes, at, pp = flatten(at, pp, shape, dtype, order)
    sharding = row_sharding(at[0])
    n_probes = at[0].shape[0] // n_shards(sharding)
    chunk = resolve_chunk(chunk_size, cores.tucker, cores.tt, order, n_probes, operation="jacobian", kind=kind)

    def kernel(cores: T3Cores) -> Array:
        return compiled.t3_samples(at, pp, cores, order, chunk_size=chunk, sharding=sharding)

    with reading(at, pp) as wait:
        y = wait(over_points(kernel, cores.tucker[0].shape[:-2], cores, out_axis=2))
    return split_axis(y, 1, probes)
