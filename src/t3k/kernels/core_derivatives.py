"""Measurements of a T3 as functions of its cores, with the streamed derivative.

A measurement is linear in every core, so its derivative along a change of the cores is the measurement of a tangent in
the corewise frame (U, G, G, G), whose transpose is known and streamed (`t3k.kernels.linear_map`). So `jax.grad` of any
loss of a T3's samples takes the memory of one chunk besides the samples themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.sharding import NamedSharding

from t3k.kernels.frames import corewise_frame
from t3k.kernels.probe_maps import point_probes, probe_jacobian
from t3k.kernels.sample_maps import point_samples, sample_jacobian
from t3k.kernels.types import Array, Cores, T3Cores, Variations

__all__ = ["measure_cores", "t3_probes", "t3_samples"]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def measure_cores(value: Callable[..., Any], jacobian: Callable[..., Any], x: T3Cores, sample: Any) -> Any:
    """``value(x, sample)``, whose derivative along a change v of the cores is ``jacobian(x, sample, v)``.

    Args:
      value: the measurement.
      jacobian: its derivative, linear in the variations v, and with a transpose of its own.
      x: the cores.
      sample: pytree of arrays; derivatives with respect to it are those of `value`.
    """
    return value(x, sample)


def _instantiate(tangent: Any) -> Any:
    return jnp.zeros(tangent.shape, tangent.dtype) if isinstance(tangent, SymbolicZero) else tangent


def _moves(tangent: Any) -> bool:
    return not isinstance(tangent, SymbolicZero)


@partial(measure_cores.defjvp, symbolic_zeros=True)
def _jvp(value: Any, jacobian: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, sample), (x_dot, sample_dot) = primals, tangents
    terms = []
    if any(map(_moves, jax.tree.leaves(x_dot))):
        terms.append(jacobian(x, sample, Variations(*jax.tree.map(_instantiate, x_dot))))
    leaves, structure = jax.tree.flatten(sample)
    along = {i: tangent for i, tangent in enumerate(jax.tree.leaves(sample_dot)) if _moves(tangent)}
    if along:

        def of_moving(moved: dict[int, Any]) -> Any:
            return value(x, jax.tree.unflatten(structure, [moved.get(i, leaf) for i, leaf in enumerate(leaves)]))

        terms.append(jax.jvp(of_moving, ({i: leaves[i] for i in along},), (along,))[1])
    y = measure_cores(value, jacobian, x, sample)
    if not terms:
        return y, jax.tree.map(jnp.zeros_like, y)
    return y, jax.tree.map(lambda *parts: sum(parts[1:], start=parts[0]), *terms)


def t3_probes(
    ww: Cores,
    pp: Cores | None,
    x: T3Cores,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Cores:
    """The probe derivatives of a T3, one array ``(t, w, o)`` per mode, with a streamed derivative by its cores.

    Arguments as in `probe_maps.probe_jacobian`.
    """

    def value(x: T3Cores, sample: Any) -> Cores:
        frame, point = corewise_frame(x)
        return point_probes(sample[0], sample[1], point, frame, order, chunk_size=chunk_size, sharding=sharding)

    def jacobian(x: T3Cores, sample: Any, v: Variations) -> Cores:
        frame, _ = corewise_frame(x)
        return probe_jacobian(sample[0], sample[1], v, frame, order, chunk_size=chunk_size, sharding=sharding)

    return measure_cores(value, jacobian, x, (ww, pp))


def t3_samples(
    at: Cores,
    pp: Cores | None,
    x: T3Cores,
    order: int,
    *,
    chunk_size: int | None,
    sharding: NamedSharding | None = None,
) -> Array:
    """The applies or entries of a T3 and their derivatives, ``(t, w)``, with a streamed derivative by its cores.

    Arguments as in `sample_maps.sample_jacobian`.
    """

    def value(x: T3Cores, sample: Any) -> Array:
        frame, _ = corewise_frame(x)
        return point_samples(sample[0], sample[1], frame, order, chunk_size=chunk_size, sharding=sharding)

    def jacobian(x: T3Cores, sample: Any, v: Variations) -> Array:
        frame, _ = corewise_frame(x)
        return sample_jacobian(sample[0], sample[1], v, frame, order, chunk_size=chunk_size, sharding=sharding)

    return measure_cores(value, jacobian, x, (at, pp))
