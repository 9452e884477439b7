"""Trains of jets between their two forms: arrays ``(order+1,) + W + (rank,)``, and jets of arrays ``(rank, w)``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t3k.kernels.constants import filled_like
from t3k.kernels.jets import from_derivatives, jet_to_array, pad_jet
from t3k.kernels.sweeps import sweep_cores
from t3k.kernels.types import Cores, Jet, as_tuple, like_train

__all__ = ["constant_jet", "join_jets", "order_of", "split_jets", "sweep_jets"]


def split_jets(arrays: Cores) -> tuple[Jet, ...]:
    """Arrays ``(t,) + W + (rank,)`` as jets of arrays ``(rank, w)``, with the probe axes flattened."""
    return tuple(from_derivatives(x.reshape(x.shape[0], -1, x.shape[-1])) for x in as_tuple(arrays))


def join_jets(jets: Sequence[Jet], order: int, like: Cores) -> Cores:
    """The inverse of `split_jets`, with the probe axes and the layout of `like`, and zeros up to `order`."""
    probes = as_tuple(like)[0].shape[1:-1]
    arrays = (jet_to_array(jet, order, (jet[0].shape[0], jet[0].shape[1]), jet[0]) for jet in jets)
    return like_train(tuple(x.reshape(order + 1, *probes, x.shape[-1]) for x in arrays), like)


def order_of(trs: Any) -> int:
    """The highest derivative order K of the product rule ``trs (K+1, K+1, K+1)``."""
    return np.shape(trs)[0] - 1


def sweep_jets(
    step: Callable[..., Jet], start: Callable[[Jet], Jet], columns: Sequence[Sequence[Any]], *, reverse: bool = False
) -> tuple[Jet, ...]:
    """The jets that enter each core, where ``step(jet, *items)`` is the jet that leaves it."""

    def advance(jet: Jet, item: Any) -> tuple[Jet, Jet]:
        return step(jet, *item), jet

    items = list(zip(*columns, strict=True))
    return sweep_cores(advance, start(columns[0][-1 if reverse else 0]), items, reverse=reverse)[1]


def constant_jet(value: float, order: int, bond: int) -> Callable[[Jet], Jet]:
    """The jet that is `value` at order 0 on an end bond, with as many probes as a jet like it."""

    def start(like: Jet) -> Jet:
        shape = (bond, like[0].shape[1])
        return pad_jet((filled_like(like[0], value, shape),), order + 1, shape, like[0])

    return start
