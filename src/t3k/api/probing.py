"""The derivative probe map of tangents and its transpose, for stacks of probes W, tangents V and base points C."""

from typing import Any

from jax.sharding import NamedSharding

from t3k.api import compiled, validate
from t3k.api.frame import T3Frame
from t3k.api.probe_vectors import flat_vectors
from t3k.api.tangent_maps import Limits, jacobian, transpose
from t3k.kernels.types import Array, Variations

__all__ = ["tv_probe_derivatives", "tv_probe_derivatives_transpose"]


def tv_probe_derivatives(
    ww: Any,
    pp: Any,
    variations: Any,
    frame: Any,
    order: int,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> tuple[Array, ...]:
    """J: the derivatives of the probes of a tangent, as ``w_i`` moves along ``p_i``, orders 0 to `order`.

    Args:
      ww: probe vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      variations: `T3Variations` or ``(tucker, tt)``, with stacks V + C.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      chunk_size: probes at a time, None for all at once, or ``"auto"``.
      memory: with ``"auto"``, the scratch allowed besides inputs and outputs, per device: ``"2GB"``, or bytes.
      sharding: how the first probe axis is spread over devices, as ``NamedSharding(mesh, PartitionSpec("w"))``; None
        reads it from `ww`, which does not tell inside `jax.jit` if the mesh axes are of type ``Auto``.

    Returns:
      One array ``(order+1,) + W + V + C + (N_i,)`` per mode, in the dtype of the frame.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Section 6 and Appendix A.3, for order 0.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> v = t3k.MANIFOLD.randn(jax.random.key(1), x.frame())
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> [z.shape for z in t3k.tv_probe_derivatives(ww, ww, v.variations, v.frame, 1)]
      [(2, 3, 4), (2, 3, 5)]
    """
    limits = Limits(chunk_size, memory, sharding)
    return tuple(jacobian(compiled.probe_jacobian, flat_vectors, ww, pp, variations, frame, order, limits))


def tv_probe_derivatives_transpose(
    ztildes: Any,
    ww: Any,
    pp: Any,
    frame: Any,
    order: int,
    sum_over_probes: bool = False,
    chunk_size: int | str | None = "auto",
    *,
    memory: int | str | None = None,
    sharding: NamedSharding | None = None,
) -> Variations:
    """J^T: residual jets back-projected to a gradient with respect to the variations, streamed over the probes.

    Args:
      ztildes: residual jets, one array ``(order+1,) + W + V + C + (N_i,)`` per mode.
      ww: probe vectors, one array ``W + (N_i,)`` per mode.
      pp: directions, of the same shapes; may be None where `order` is 0.
      frame: `T3Frame` or ``(up, down, left, right)``, with stack C.
      order: the highest derivative, a static int.
      sum_over_probes: sum over W, or keep it as leading axes of the gradient.
      chunk_size: probes at a time, None for all at once, or ``"auto"``. Peak memory is inputs, gradient, one chunk.
      memory: as in `tv_probe_derivatives`.
      sharding: as in `tv_probe_derivatives`.

    Returns:
      ``(dU_tildes, dG_tildes)``: per mode ``[W +] V + C + (m_i, N_i)`` and ``[W +] V + C + (rL_i, n_i, rR_{i+1})``, in
      the dtype of the frame. It is the bare transpose: no gauge projection.

    Raises:
      TypeError, ValueError: if an argument does not fit, before anything is compiled.

    References:
      N. Alger, B. Christierson, P. Chen, O. Ghattas, "Tucker Tensor Train Taylor Series", arXiv:2603.21141 (2026),
      Theorem 7, for order 0.

    Example:
      >>> import jax, jax.numpy as jnp, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> ww = (jnp.ones((3, 4)), jnp.ones((3, 5)))
      >>> r = (jnp.ones((2, 3, 4)), jnp.ones((2, 3, 5)))
      >>> dU, dG = t3k.tv_probe_derivatives_transpose(r, ww, ww, x.frame(), 1, sum_over_probes=True)
      >>> [u.shape for u in dU], [g.shape for g in dG]
      ([(2, 4), (2, 5)], [(1, 2, 2), (2, 2, 1)])
    """

    def residuals(order: int, probes: tuple[int, ...], frame: T3Frame) -> tuple[Any, tuple[int, ...]]:
        zz = validate.require_residuals("ztildes", ztildes, order, probes, frame.shape, frame.dtype)
        return zz, zz[0].shape[1 + len(probes) : -1]

    limits = Limits(chunk_size, memory, sharding)
    return transpose(compiled.probe_transpose, flat_vectors, residuals, ww, pp, frame, order, sum_over_probes, limits)
