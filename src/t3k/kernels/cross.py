"""Cross approximation: a tensor train from a few entries of a tensor that only a function knows.

A train interpolates the tensor through sets of indices: *prefixes*, of the modes left of a bond, and *suffixes*, of
those right of it. A sweep from the left evaluates, core by core, the block of the prefixes found so far, all indices
of the mode, and the suffixes of the bond on its right; an orthonormal basis Q of the columns of the block and its rows
of largest volume give the core, ``Q (Q[rows])^{-1}``, and the prefixes for the next one (Oseledets, Tyrtyshnikov,
"TT-cross approximation for multidimensional arrays", Linear Algebra Appl. 432, 2010). The next sweep comes from the
other end, where these prefixes are suffixes.

Ranks adapt in both directions. Each sweep is tested at new random points, and the points where the train errs most
join the suffixes of every bond; singular values of a block that do not matter are cut off.

This is a loop on the host, in NumPy: the function may be anything that is vectorised over points.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from t3k.kernels.maxvol import maxvol
from t3k.kernels.ranks import minimal_ranks
from t3k.kernels.spectra import rank_within

__all__ = ["CrossStats", "cross_train", "train_values"]

#: Values (m,) at points (m, d).
_Function = Callable[[np.ndarray], np.ndarray]

#: Points at which a sweep is tested, and the share of the tolerance that singular values may be cut off at.
_N_TEST, _CUT = 200, 0.1


class CrossStats(NamedTuple):
    """How a cross approximation went.

    Attributes:
      status: ``converged``, ``max_ranks`` (all bonds are at their caps) or ``max_sweeps``.
      evaluations: the number of entries asked for.
      sweeps: the number of sweeps.
      error: the root mean square error at random points that the train was not made of, relative to that of the values.
    """

    status: str
    evaluations: int
    sweeps: int
    error: float


class _Seen:
    """The tensor as seen from one end, with a count of the entries asked for.

    Points, sizes and caps are in the order of that end; `turn` goes to the other one.
    """

    def __init__(self, function: _Function, shape: Sequence[int], max_ranks: Sequence[int]) -> None:
        self.function, self.shape, self.evaluations, self.reversed = function, tuple(shape), 0, False
        self.caps = minimal_ranks(shape, shape, max_ranks)[1]

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values (m,) at points (m, d)."""
        self.evaluations += len(points)
        return self.function(points[:, ::-1] if self.reversed else points)

    def turn(self) -> None:
        self.shape, self.caps, self.reversed = self.shape[::-1], self.caps[::-1], not self.reversed


def cross_train(
    function: _Function,
    shape: Sequence[int],
    max_ranks: Sequence[int],
    rtol: float,
    max_sweeps: int,
    generator: np.random.Generator,
) -> tuple[list[np.ndarray], CrossStats]:
    """A tensor train of the tensor with entries ``function(points)``.

    Args:
      function: values (m,) at points (m, d).
      shape: mode sizes N_i.
      max_ranks: the largest bonds, r_0 .. r_d; the ends are taken as 1.
      rtol: error wanted, relative, in the root mean square.
      max_sweeps: at least 1.
      generator: of the random points.

    Returns:
      Cores (a, o, b), and how it went.

    Example:
      >>> generator = np.random.default_rng(0)
      >>> cores, stats = cross_train(lambda p: 1.0 + p.sum(axis=1), (9, 9, 9), (1, 9, 9, 1), 1e-9, 20, generator)
      >>> stats.status, [core.shape for core in cores]
      ('converged', [(1, 9, 2), (2, 9, 2), (2, 9, 1)])
    """
    tensor, status, saturated, cut = _Seen(function, shape, max_ranks), "max_sweeps", False, _CUT * rtol
    points = _random_points(tensor.shape, generator)
    suffixes = _suffixes(points[np.argsort(-np.abs(tensor.at(points)))[:2]])
    for sweep in range(1, max_sweeps + 1):
        cores, prefixes = _sweep(tensor, suffixes, cut)
        points = _random_points(tensor.shape, generator)
        values = tensor.at(points)
        wrong = np.abs(train_values(cores, points) - values)
        error = _relative(wrong, values)
        before, saturated = saturated, [len(p) for p in prefixes] == list(tensor.caps[:-1])
        if error <= rtol or (before and saturated):
            status = "converged" if error <= rtol else "max_ranks"
            break
        more = max(2, max(map(len, prefixes)) // 2)
        suffixes = _suffixes(points[np.argsort(-wrong)[:more], ::-1], [p[:, ::-1] for p in prefixes[:0:-1]])
        cut /= 3
        if sweep < max_sweeps:
            tensor.turn()
    train = [core.transpose(2, 1, 0) for core in reversed(cores)] if tensor.reversed else cores
    return train, CrossStats(status, tensor.evaluations, sweep, error)


def _random_points(shape: Sequence[int], generator: np.random.Generator) -> np.ndarray:
    return np.stack([generator.integers(0, N, _N_TEST) for N in shape], axis=1)


def _suffixes(points: np.ndarray, known: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
    """Right of each mode, the known suffixes and those of some points, each once; the empty one right of the last."""
    d = points.shape[1]
    sets = [points[:, i:] for i in range(1, d)]
    if known is not None:
        sets = [np.concatenate(pair) for pair in zip(known, sets, strict=True)]
    return [*(np.unique(rows, axis=0) for rows in sets), np.zeros((1, 0), int)]


def _sweep(tensor: _Seen, suffixes: list[np.ndarray], cut: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Cores, and the prefixes of the bond on the left of each."""
    cores, prefixes, d = [], [np.zeros((1, 0), int)], len(tensor.shape)
    for i, (N, suffix) in enumerate(zip(tensor.shape, suffixes, strict=True)):
        rows = np.hstack([np.repeat(prefixes[-1], N, axis=0), np.tile(np.arange(N)[:, None], (len(prefixes[-1]), 1))])
        points = np.hstack([np.repeat(rows, len(suffix), axis=0), np.tile(suffix, (len(rows), 1))])
        block = tensor.at(points).reshape(len(rows), len(suffix))
        if i < d - 1:
            Q, values, _ = np.linalg.svd(block, full_matrices=False)
            rank = min(rank_within(values, cut * float(np.linalg.norm(values)) / math.sqrt(d)), tensor.caps[i + 1])
            chosen, block = maxvol(Q[:, :rank])
            prefixes.append(rows[chosen])
        cores.append(block.reshape(-1, N, block.shape[1]))
    return cores, prefixes


def train_values(cores: Sequence[np.ndarray], points: np.ndarray) -> np.ndarray:
    """Entries of a tensor train.

    Args:
      cores: (a, o, b) each, with end bonds of 1.
      points: (m, d) integers.

    Returns:
      Values (m,).

    Example:
      >>> train_values([np.full((1, 2, 1), 3.0)], np.array([[0], [1]])).tolist()
      [3.0, 3.0]
    """
    left = np.ones((len(points), 1))
    for core, index in zip(cores, points.T, strict=True):
        left = np.einsum("ma,amb->mb", left, core[:, index])
    return left[:, 0]


def _relative(wrong: np.ndarray, values: np.ndarray) -> float:
    size = float(np.linalg.norm(values))
    return float(np.linalg.norm(wrong)) / size if size else float(np.any(wrong))
