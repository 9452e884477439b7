"""Functions of several T3s: joining them along a mode, and sums of many with rounding on the way."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from t3k.api import compiled, validate
from t3k.api.mode_arguments import as_modes
from t3k.api.stacks import over_points
from t3k.api.t3 import TuckerTensorTrain
from t3k.kernels.sketched_rounding import OVERSAMPLE
from t3k.kernels.types import Array, T3Cores

__all__ = ["concatenate", "round_sum"]


def _as_terms(name: str, terms: Any) -> list[TuckerTensorTrain]:
    """Single T3s of equal d, from a sequence of them."""
    found = list(terms) if isinstance(terms, tuple | list) else [terms]
    if not found:
        raise ValueError(f"{name} must have at least one tensor; got none")
    for j, term in enumerate(found):
        if not isinstance(term, TuckerTensorTrain):
            raise TypeError(f"{name}[{j}] must be a TuckerTensorTrain; got {type(term).__name__}")
        if term.d != found[0].d:
            raise ValueError(f"{name}[{j}] must have {found[0].d} modes, as {name}[0] has; got {term.d}")
    return found


def concatenate(tensors: Sequence[TuckerTensorTrain], mode: int = 0) -> TuckerTensorTrain:
    """Joins tensors along one of their modes; ranks are the sums of the ranks.

    Args:
      tensors: of the same shape but for that mode, and of the same stack.
      mode: negative ones count from the end.

    Returns:
      The joined tensor.

    Raises:
      TypeError, ValueError: naming the tensor that does not fit.

    Example:
      >>> import t3k
      >>> x = t3k.TuckerTensorTrain.zeros((4, 5), (2, 2), (1, 2, 1))
      >>> t3k.concatenate([x, x, x], 1).shape
      (4, 15)
    """
    terms = _as_terms("tensors", tensors)
    (at,) = as_modes("mode", (mode,), terms[0].d)
    expected = _others(terms[0], at)
    for j, term in enumerate(terms):
        if _others(term, at) != expected:
            raise ValueError(
                f"tensors[{j}] must have the stack and shape of tensors[0] but for mode {at}, {expected}; "
                f"got {_others(term, at)}"
            )
    dtype = validate.common_dtype(*(term.tucker_cores for term in terms))
    cores = tuple(jax.tree.map(lambda core: core.astype(dtype), term.cores) for term in terms)
    joined = over_points(lambda *cores: compiled.concatenate(cores, at), terms[0].stack_shape, *cores)
    return TuckerTensorTrain(*joined)


def _others(x: TuckerTensorTrain, mode: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return x.stack_shape, (*x.shape[:mode], *x.shape[mode + 1 :])


def round_sum(
    terms: Sequence[TuckerTensorTrain] | TuckerTensorTrain,
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    key: Array | None = None,
    oversample: int = OVERSAMPLE,
) -> TuckerTensorTrain:
    """The sum of many tensors in given ranks, in one randomized pass: the sum's own ranks never exist.

    Args:
      terms: tensors of the same shape, or a stack of them. Those of equal ranks are worked on together.
      tucker_ranks: the largest Tucker ranks wanted, one per mode.
      tt_ranks: the largest bonds wanted, (r_0, .., r_d).
      key: for the sketches, from `jax.random.key`; a fixed one if None.
      oversample: random vectors more than ranks.

    Returns:
      A tensor of these ranks that is nearly as good as the truncated sum, with high probability.

    Raises:
      TypeError, ValueError: naming the term or ranks that do not fit.

    References:
      H. Al Daas et al., "Randomized algorithms for rounding in the tensor-train format", SIAM J. Sci. Comput. 45
      (2023); see `t3k.kernels.sketched_rounding`.

    Example:
      >>> import jax, t3k
      >>> x = t3k.TuckerTensorTrain.randn(jax.random.key(0), (4, 5), (2, 2), (1, 2, 1))
      >>> y = t3k.round_sum([x] * 10, (2, 2), (1, 2, 1))
      >>> bool(y.distance(10 * x) < 1e-3 * x.norm())
      True
    """
    found = _as_terms("terms", terms)
    for j, term in enumerate(found):
        if term.shape != found[0].shape:
            raise ValueError(f"terms[{j}] must have shape {found[0].shape}, as terms[0] has; got {term.shape}")
    n = validate.as_ranks("tucker_ranks", tucker_ranks, found[0].d)
    r = validate.as_ranks("tt_ranks", tt_ranks, found[0].d + 1)
    extra = validate.as_ranks("oversample", (oversample,))[0]
    groups = _alike(found, validate.common_dtype(*(term.tucker_cores for term in found)))
    used = jax.random.key(0) if key is None else key
    return TuckerTensorTrain(*compiled.round_products(groups, n, r, used, oversample=extra))


def _alike(terms: Sequence[TuckerTensorTrain], dtype: Any) -> tuple[tuple[T3Cores], ...]:
    """The terms in groups of equal ranks, each as one T3 with a leading term axis."""
    groups: dict[Any, list[T3Cores]] = {}
    for term in terms:
        lead = len(term.stack_shape)
        flat = jax.tree.map(lambda core, lead=lead: core.astype(dtype).reshape(-1, *core.shape[lead:]), term.cores)
        groups.setdefault((term.tucker_ranks, term.tt_ranks), []).append(flat)
    return tuple((jax.tree.map(lambda *cores: jnp.concatenate(cores), *group),) for group in groups.values())
