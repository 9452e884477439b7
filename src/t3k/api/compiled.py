"""The kernels that the api calls, each compiled once for given shapes and static arguments.

Calling them inside someone's own `jit`, `vmap` or `grad` works as with any jitted function.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from t3k.kernels import (
    adam,
    ambient,
    continuation,
    core_derivatives,
    formats,
    frames,
    gauge,
    modes,
    orthogonalize,
    permutation,
    probe_maps,
    products,
    random_points,
    rounds,
    sample_maps,
    shared_modes,
    sketched_rounding,
    spectra,
    t3,
    tangents,
    truncation,
    uncertainty,
)
from t3k.kernels.objective import Objective

__all__ = [
    "adam_init",
    "add",
    "add_scalar",
    "ambient_transpose",
    "centre_at",
    "concatenate",
    "contract_modes",
    "curvatures",
    "discarded_norm",
    "distance",
    "from_cp",
    "from_tt",
    "from_tucker",
    "geometry_frame",
    "geometry_project",
    "geometry_retract",
    "hadamard",
    "hadamard_rounded",
    "inner",
    "minimal_cores",
    "norm",
    "objective_hessian",
    "objective_local",
    "objective_rounding",
    "objective_squares",
    "objective_value",
    "oblique_gauge",
    "optimize_many",
    "optimizer_init",
    "optimizer_round",
    "optimizer_step",
    "orthogonal_frame",
    "pad_ranks",
    "permute",
    "probe_jacobian",
    "probe_transpose",
    "quantity_variances",
    "project_dense",
    "project_t3",
    "random_point",
    "reverse",
    "round_products",
    "rounding_of_many",
    "round_shared",
    "sample_jacobian",
    "sample_transpose",
    "scale",
    "scale_edges",
    "select_modes",
    "singular_values",
    "t3_probes",
    "t3_samples",
    "tangent_to_t3",
    "to_cp",
    "to_dense",
    "to_tt",
    "to_tucker",
    "total_variances",
    "transport",
    "truncate",
    "with_room",
]

_SAMPLING = ("order", "chunk_size", "sharding")

add = jax.jit(t3.add)
add_scalar = jax.jit(t3.add_scalar)
centre_at = jax.jit(orthogonalize.centre_at, static_argnames=("mode", "tucker"))
ambient_transpose = jax.jit(ambient.ambient_transpose, static_argnums=(3, 4), static_argnames="chunk_size")
concatenate = jax.jit(modes.concatenate, static_argnums=1)
contract_modes = jax.jit(modes.contract_modes)
discarded_norm = jax.jit(spectra.discarded_norm, static_argnums=(1, 2))
distance = jax.jit(products.distance)
from_cp = jax.jit(formats.from_cp)
from_tt = jax.jit(formats.from_tt)
from_tucker = jax.jit(formats.from_tucker)
hadamard = jax.jit(products.hadamard)
hadamard_rounded = jax.jit(sketched_rounding.hadamard_rounded, static_argnums=(2, 3))
inner = jax.jit(products.inner)
minimal_cores = jax.jit(frames.minimal_cores)
norm = jax.jit(products.norm)
oblique_gauge = jax.jit(gauge.oblique_gauge)
orthogonal_frame = jax.jit(frames.orthogonal_frame)
pad_ranks = jax.jit(modes.pad_ranks, static_argnums=(1, 2, 3))
permute = jax.jit(permutation.permute, static_argnums=(1, 2))
project_dense = jax.jit(tangents.project_dense)
project_t3 = jax.jit(tangents.project_t3)
random_point = jax.jit(random_points.random_point, static_argnums=(1, 2, 3, 4))
reverse = jax.jit(modes.reverse)
round_products = jax.jit(sketched_rounding.round_products, static_argnums=(1, 2), static_argnames="oversample")
round_shared = jax.jit(shared_modes.round_shared, static_argnums=(1, 2, 3))
scale = jax.jit(t3.scale)
scale_edges = jax.jit(modes.scale_edges)
select_modes = jax.jit(modes.select_modes)
singular_values = jax.jit(spectra.singular_values)
tangent_to_t3 = jax.jit(tangents.tangent_to_t3, static_argnames=("include_point",))
to_cp = jax.jit(formats.to_cp)
to_dense = jax.jit(t3.to_dense)
to_tt = jax.jit(formats.to_tt)
to_tucker = jax.jit(formats.to_tucker)
transport = jax.jit(tangents.transport)
truncate = jax.jit(truncation.truncate, static_argnums=(1, 2))
with_room = jax.jit(continuation.with_room, static_argnums=(2, 3))

#: The methods of a geometry's kernel, which is static.
geometry_frame = jax.jit(lambda kernel, x: kernel.frame(x)[0], static_argnums=0)
geometry_project = jax.jit(lambda kernel, frame, v: kernel.project(frame, v), static_argnums=0)
geometry_retract = jax.jit(lambda kernel, frame, v: kernel.retract(frame, v), static_argnums=0)

t3_probes = jax.jit(core_derivatives.t3_probes, static_argnames=_SAMPLING)
t3_samples = jax.jit(core_derivatives.t3_samples, static_argnames=_SAMPLING)
probe_jacobian = jax.jit(probe_maps.probe_jacobian, static_argnames=_SAMPLING)
sample_jacobian = jax.jit(sample_maps.sample_jacobian, static_argnames=_SAMPLING)
probe_transpose = jax.jit(probe_maps.probe_transpose, static_argnames=(*_SAMPLING, "sum_over_probes", "reducer"))
sample_transpose = jax.jit(sample_maps.sample_transpose, static_argnames=(*_SAMPLING, "sum_over_probes", "reducer"))

#: Compiles several times faster, to code whose loops are slower: for problems where compiling is most of the time.
_QUICK = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 0,
    # To share out code that is hardly optimized takes longer than to generate it.
    "xla_cpu_parallel_codegen_split_count": 1,
}


#: A start in the state of an optimizer; and the value of an objective. What is static stands first.
optimizer_init = jax.jit(lambda init, objective, *start: init(objective, *start), static_argnums=(0, 1))
adam_init = jax.jit(adam.init, static_argnums=(0, 1))
optimize_many: Any = jax.jit(rounds.run_many, static_argnums=(0, 1, 2, 3, 4, 5))
rounding_of_many = jax.jit(rounds.rounding_of_many, static_argnums=(0, 1))
objective_value = jax.jit(Objective.value, static_argnums=0)
objective_squares = jax.jit(Objective.squares, static_argnums=0)
objective_local = jax.jit(Objective.local, static_argnums=0)
objective_rounding = jax.jit(Objective.rounding, static_argnums=0)
objective_hessian = jax.jit(Objective.hessian, static_argnums=0)
quantity_variances = jax.jit(uncertainty.quantity_variances, static_argnums=(0, 1, 2))
total_variances = jax.jit(uncertainty.total_variances, static_argnums=(0, 1, 2))
curvatures = jax.jit(uncertainty.curvatures, static_argnums=(0, 1))


@functools.cache
def optimizer_step(update: Callable[..., Any], quick: bool) -> Any:
    """The compiled step of an optimizer; `quick` trades its speed for that of its compilation, where XLA can."""
    return jax.jit(update, static_argnums=(0, 1), compiler_options=_options(quick))


@functools.cache
def optimizer_round(update: Callable[..., Any], quick: bool) -> Any:
    """Compiled, many steps at once; the last argument is their number."""
    steps = functools.partial(rounds.run_steps, update)
    return jax.jit(steps, static_argnums=(0, 1), compiler_options=_options(quick))


def _options(quick: bool) -> dict[str, Any] | None:
    return _QUICK if quick and _understood(_QUICK) else None


def _understood(options: dict[str, Any]) -> bool:
    """Whether this version of XLA knows the options, which concern the CPU alone."""
    if jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda x: x, compiler_options=options)(np.float32(0))
    except RuntimeError:
        return False
    return True
