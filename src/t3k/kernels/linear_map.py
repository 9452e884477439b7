"""Linear maps that know their transpose, so that reverse mode runs it instead of deriving one.

The derivative of a map of probes is streamed over them, and so is its hand-written transpose, which is several times
faster and leaner than what JAX derives from the loop. `linear_map` ties the two together in a way that composes:
reverse mode calls the other of the pair, forward mode and second derivatives differentiate their definitions, and
`jax.vmap` maps both. (`jax.custom_vjp` would forbid forward mode; `jax.custom_derivatives.linear_call`, `vmap`.)
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

__all__ = ["linear_map"]

#: Two flat functions of (residuals, inputs), each linear in the inputs and each the transpose of the other.
_Flat = Callable[[list[Any], list[Any]], list[Any]]


def linear_map(forward: Callable[[Any, Any], Any], transpose: Callable[[Any, Any], Any], residuals: Any, x: Any) -> Any:
    """``forward(residuals, x)``, whose transpose with respect to x is known.

    Args:
      forward: function of two pytrees, linear in the second.
      transpose: ``transpose(residuals, y)`` has the structure of `x`, and is the transpose of `forward`.
      residuals: pytree of arrays; derivatives with respect to them are those of the two functions.
      x: pytree of arrays.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> def double(scale, x):
      ...     return linear_map(lambda s, x: s * x, lambda s, y: s * y, scale, x)
      >>> float(jax.grad(double, argnums=1)(2.0, 5.0)), float(jax.grad(double)(2.0, 5.0))
      (2.0, 5.0)
    """
    kept, kept_tree = jax.tree.flatten(residuals)
    leaves = jax.tree.leaves(x)
    traced, shapes = jax.make_jaxpr(forward, return_shape=True)(residuals, x)
    y_tree = jax.tree.structure(shapes)

    def flat_forward(kept: list[Any], leaves: list[Any]) -> list[Any]:
        return jaxpr_as_fun(traced)(*kept, *leaves)

    def flat_transpose(kept: list[Any], leaves: list[Any]) -> list[Any]:
        return jax.tree.leaves(transpose(jax.tree.unflatten(kept_tree, kept), jax.tree.unflatten(y_tree, leaves)))

    return jax.tree.unflatten(y_tree, _bind(flat_forward, flat_transpose, kept, leaves, traced.out_avals))


def _bind(
    forward: _Flat, transpose: _Flat, kept: Sequence[Any], x: Sequence[Any], out_avals: Sequence[Any] | None = None
) -> list[Any]:
    if out_avals is None:
        out_avals = jax.make_jaxpr(forward)(list(kept), list(x)).out_avals
    return _linear_map_p.bind(
        *kept, *x, forward=forward, transpose=transpose, n_kept=len(kept), out_avals=tuple(out_avals)
    )


def _evaluate(*args: Any, forward: _Flat, n_kept: int, **_: Any) -> list[Any]:
    return forward(list(args[:n_kept]), list(args[n_kept:]))


def _jvp(primals: Any, tangents: Any, *, forward: _Flat, transpose: _Flat, n_kept: int, out_avals: Any) -> Any:
    kept, x = list(primals[:n_kept]), list(primals[n_kept:])
    moving = [i for i, tangent in enumerate(tangents[:n_kept]) if not isinstance(tangent, ad.Zero)]
    terms = []
    if any(not isinstance(tangent, ad.Zero) for tangent in tangents[n_kept:]):
        terms.append(_bind(forward, transpose, kept, [ad.instantiate_zeros(t) for t in tangents[n_kept:]], out_avals))
    if moving:

        def of_moving(*values: Any) -> list[Any]:
            moved = dict(zip(moving, values, strict=True))
            return forward([moved.get(i, value) for i, value in enumerate(kept)], x)

        along = tuple(tangents[i] for i in moving)
        terms.append(jax.jvp(of_moving, tuple(kept[i] for i in moving), along)[1])
    values = _bind(forward, transpose, kept, x, out_avals)
    return values, [sum(parts[1:], start=parts[0]) for parts in zip(*terms, strict=True)]


def _transpose(cotangents: Any, *args: Any, forward: _Flat, transpose: _Flat, n_kept: int, out_avals: Any) -> Any:
    del out_avals
    y = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    gradients = _bind(transpose, forward, list(args[:n_kept]), y)
    wanted = [g if ad.is_undefined_primal(x) else None for g, x in zip(gradients, args[n_kept:], strict=True)]
    return [None] * n_kept + wanted


def _batch(args: Any, axes: Any, *, forward: _Flat, transpose: _Flat, n_kept: int, out_avals: Any) -> Any:
    del out_avals
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    kept = [x if axis is None else batching.bdim_at_front(x, axis, size) for x, axis in zip(args, axes, strict=True)]
    # Inputs are spread over the batch where they are not mapped, so that the transpose has a gradient for each.
    x = [batching.bdim_at_front(x, axis, size) for x, axis in zip(args[n_kept:], axes[n_kept:], strict=True)]
    in_axes = [None if axis is None else 0 for axis in axes[:n_kept]]
    forward, transpose = (jax.vmap(fun, in_axes=(in_axes, 0), axis_size=size) for fun in (forward, transpose))
    values = _bind(forward, transpose, kept[:n_kept], x)
    return values, [0] * len(values)


_linear_map_p = Primitive("linear_map")
_linear_map_p.multiple_results = True
_linear_map_p.def_impl(_evaluate)
_linear_map_p.def_abstract_eval(lambda *args, out_avals, **_: out_avals)
ad.primitive_jvps[_linear_map_p] = _jvp
ad.primitive_transposes[_linear_map_p] = _transpose
batching.primitive_batchers[_linear_map_p] = _batch
mlir.register_lowering(_linear_map_p, mlir.lower_fun(_evaluate, multiple_results=True))
