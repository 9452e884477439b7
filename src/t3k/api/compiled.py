"""The kernels that the api calls, each compiled once for given shapes and static arguments.

Calling them inside someone's own `jit`, `vmap` or `grad` works as with any jitted function.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from t3k.kernels import (
    formats,
    frames,
    gauge,
    modes,
    newton,
    orthogonalize,
    permutation,
    point_samples,
    probe_maps,
    products,
    random_points,
    shared_modes,
    sketched_rounding,
    spectra,
    t3,
    tangents,
    truncation,
)

__all__ = [
    "add",
    "add_scalar",
    "apply_derivatives",
    "centre_at",
    "concatenate",
    "contract_modes",
    "discarded_norm",
    "distance",
    "entries_derivatives",
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
    "newton_step",
    "norm",
    "oblique_gauge",
    "orthogonal_frame",
    "pad_ranks",
    "permute",
    "point_probes",
    "probe_jacobian",
    "probe_transpose",
    "project_dense",
    "project_t3",
    "random_point",
    "reverse",
    "round_products",
    "round_shared",
    "scale",
    "scale_edges",
    "select_modes",
    "singular_values",
    "tangent_to_t3",
    "to_dense",
    "to_tt",
    "to_tucker",
    "transport",
    "truncate",
]

_SAMPLING = ("order", "chunk_size")

add = jax.jit(t3.add)
add_scalar = jax.jit(t3.add_scalar)
centre_at = jax.jit(orthogonalize.centre_at, static_argnames=("mode", "tucker"))
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
to_dense = jax.jit(t3.to_dense)
to_tt = jax.jit(formats.to_tt)
to_tucker = jax.jit(formats.to_tucker)
transport = jax.jit(tangents.transport)
truncate = jax.jit(truncation.truncate, static_argnums=(1, 2))

#: The methods of a geometry's kernel, which is static.
geometry_frame = jax.jit(lambda kernel, x: kernel.frame(x)[0], static_argnums=0)
geometry_project = jax.jit(lambda kernel, frame, v: kernel.project(frame, v), static_argnums=0)
geometry_retract = jax.jit(lambda kernel, frame, v: kernel.retract(frame, v), static_argnums=0)

apply_derivatives = jax.jit(point_samples.apply_derivatives, static_argnames=_SAMPLING)
entries_derivatives = jax.jit(point_samples.entries_derivatives, static_argnames=_SAMPLING)
point_probes = jax.jit(probe_maps.point_probes, static_argnames=_SAMPLING)
probe_jacobian = jax.jit(probe_maps.probe_jacobian, static_argnames=_SAMPLING)
probe_transpose = jax.jit(probe_maps.probe_transpose, static_argnames=(*_SAMPLING, "sum_over_probes", "reducer"))

#: Compiles several times faster, to code whose loops are slower: for problems where compiling is most of the time.
_QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}


@functools.cache
def newton_step(quick: bool) -> Any:
    """The compiled `newton.newton_step`; `quick` trades its speed for that of its compilation, where XLA can."""
    options = _QUICK if quick and _understood(_QUICK) else None
    return jax.jit(newton.newton_step, static_argnums=(0, 1, 2), compiler_options=options)


def _understood(options: dict[str, Any]) -> bool:
    """Whether this version of XLA knows the options, which concern the CPU alone."""
    if jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda x: x, compiler_options=options)(jnp.float32(0))
    except RuntimeError:
        return False
    return True
