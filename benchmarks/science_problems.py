"""The problems of `benchmarks.science`: measurements to fit, and others to judge the fit by. NumPy only.

Each is a function of a seed, which draws samples, noise and start (and the tensor, where that is random) and changes no
shape. Data are scaled to a root mean square of 1.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["PROBLEMS", "Problem", "relative_error"]

Ranks = tuple[tuple[int, ...], tuple[int, ...]]
Cores = tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]


class Problem(NamedTuple):
    """What is measured where, to be fitted with the last of `stages`, by way of the others.

    Attributes:
      kind: of the measurements, as t3k and t3toolbox call it.
      stages: Tucker ranks and bonds, from the first to the last.
      iterations: Newton steps at the most, at the last stage and at those before it.
      start: cores of the ranks of the first stage.
      train: ``(sample, data)`` to fit.
      test: ``(sample, data)`` without noise, to judge by.
      order: of the derivatives, where the kind has them.
      weight: of the residuals, ``(modes, order + 1)``, where the kind has them.
    """

    kind: str
    stages: list[Ranks]
    iterations: tuple[int, int]
    start: Cores
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    order: int | None = None
    weight: Any = None


def relative_error(found: Any, data: Any) -> float:
    """The root of the sum of squares of the difference to the data over that of the data."""
    pairs = list(zip(found, data, strict=True)) if isinstance(data, tuple) else [(found, data)]
    square = sum(float(np.sum((np.asarray(z) - y) ** 2)) for z, y in pairs)
    return (square / sum(float(np.sum(y**2)) for _, y in pairs)) ** 0.5


def _equal_ranks(shape: tuple[int, ...], rank: int) -> Ranks:
    """Tucker ranks and bonds of `rank`, but for those that a tensor with such bonds cannot have."""
    d = len(shape)
    bonds = (1, *(rank,) * (d - 1), 1)
    return tuple(min(rank, bonds[i] * bonds[i + 1], shape[i]) for i in range(d)), bonds


def _growing(shape: tuple[int, ...], *ranks: int) -> list[Ranks]:
    return [_equal_ranks(shape, rank) for rank in ranks]


def _random_cores(rng: np.random.Generator, shape: tuple[int, ...], ranks: Ranks) -> Cores:
    """Cores of a tensor whose entries have a mean square of about 1."""
    n, r = ranks
    tucker = tuple(rng.standard_normal((k, size)) / k**0.5 for k, size in zip(n, shape, strict=True))
    tt = tuple(rng.standard_normal((r[i], n[i], r[i + 1])) / r[i + 1] ** 0.5 for i in range(len(shape)))
    return tucker, tt


def _constant(shape: tuple[int, ...], value: float) -> Cores:
    tucker = tuple(np.ones((1, size)) for size in shape)
    return tucker, (np.full((1, 1, 1), value), *(np.ones((1, 1, 1)),) * (len(shape) - 1))


def _dense(cores: Cores) -> np.ndarray:
    tensor = np.ones((1, 1))
    for U, G in zip(*cores, strict=True):
        tensor = np.tensordot(tensor, np.einsum("akb,ko->aob", G, U), 1).reshape(-1, G.shape[2])
    return tensor.reshape([U.shape[1] for U in cores[0]])


def _entries(rng: np.random.Generator, tensor: np.ndarray, n_train: int, n_test: int, known: Any = None) -> Any:
    """Distinct entries to fit and others to judge by."""
    candidates = tensor.size if known is None else np.flatnonzero(known)
    flat = rng.choice(candidates, n_train + n_test, replace=False)
    scale = np.sqrt(np.mean(tensor.reshape(-1)[flat[:n_train]] ** 2))
    parts = flat[:n_train], flat[n_train:]
    return [(np.unravel_index(part, tensor.shape), (tensor.reshape(-1)[part] / scale)) for part in parts]


def exponential(seed: int) -> Problem:
    """Entries of exp(-|x|) on a grid of 20^5 points, x = i/19 with i from 1: no tensor of finite rank."""
    rng, shape = np.random.default_rng(seed), (20,) * 5
    grids = np.meshgrid(*(np.arange(1, 21) / 19,) * 5, sparse=True)
    tensor = np.exp(-np.sqrt(sum(x**2 for x in grids)))
    train, test = _entries(rng, tensor, 49_000, 49_000)
    start = _constant(shape, float(np.mean(train[1])))
    return Problem("entries", _growing(shape, 1, 4, 7), (12, 8), start, train, test)


def low_rank(seed: int) -> Problem:
    """5% of the entries of a random 100^3 tensor of Tucker ranks (3, 3, 3)."""
    rng, shape = np.random.default_rng(seed), (100,) * 3
    ranks: Ranks = (3, 3, 3), (1, 3, 3, 1)
    train, test = _entries(rng, _dense(_random_cores(rng, shape, ranks)), 50_000, 50_000)
    return Problem("entries", [ranks], (40, 0), _random_cores(rng, shape, ranks), train, test)


def growing(seed: int) -> Problem:
    """10% of the entries of a random 20^4 tensor of ranks 4, from rank 1."""
    rng, shape = np.random.default_rng(seed), (20,) * 4
    stages = _growing(shape, 1, 2, 3, 4)
    train, test = _entries(rng, _dense(_random_cores(rng, shape, stages[-1])), 16_000, 4_000)
    return Problem("entries", stages, (40, 5), _random_cores(rng, shape, stages[0]), train, test)


def _unit(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    draws = [rng.standard_normal((n, size)) for size in shape]
    return tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in draws)


def _noisy(rng: np.random.Generator, values: np.ndarray, level: float = 0.01) -> np.ndarray:
    return values + level * np.sqrt(np.mean(values**2)) * rng.standard_normal(values.shape)


def cosine(seed: int) -> Problem:
    """1800 applies, with 1% of noise, of cos(x_0 + x_1 + x_2 + x_3) on 16^4 points of [0, pi]."""
    rng, shape = np.random.default_rng(seed), (16,) * 4
    grids = np.meshgrid(*(np.linspace(0, np.pi, 16),) * 4, sparse=True)
    tensor = np.cos(sum(grids))
    ranks: Ranks = (8, 2, 5, 3), (1, 8, 8, 3, 1)

    def applies(n: int) -> tuple[Any, np.ndarray]:
        ww = _unit(rng, n, shape)
        return ww, np.einsum("ijkl,wi,wj,wk,wl->w", tensor, *ww, optimize=True)

    (ww, values), test = applies(1800), applies(700)
    start = _random_cores(rng, shape, ranks)
    return Problem("apply", [ranks], (40, 0), start, (ww, _noisy(rng, values)), test)


def _probe_jets(tensor: np.ndarray, ww: Any, pp: Any) -> tuple[np.ndarray, ...]:
    """The probes of three modes at w + s p, and their first and second derivatives by s at 0."""
    jets = []
    for free in range(3):
        (a, b), rest = [i for i in range(3) if i != free], np.moveaxis(tensor, free, 2)
        at = [
            np.einsum("ijo,wi,wj->wo", rest, u, v, optimize=True)
            for u, v in ((ww[a], ww[b]), (pp[a], ww[b]), (ww[a], pp[b]), (pp[a], pp[b]))
        ]
        jets.append(np.stack([at[0], at[1] + at[2], 2 * at[3]]))
    return tuple(jets)


def hilbert(seed: int) -> Problem:
    """Probes of the 10^3 Hilbert tensor and two derivatives of them, with 1% of noise on each, ranks 1 to 4."""
    rng, shape = np.random.default_rng(seed), (10,) * 3
    tensor = 1 / (1 + sum(np.ogrid[:10, :10, :10]))

    def jets(n: int) -> tuple[Any, tuple[np.ndarray, ...]]:
        ww, pp = _unit(rng, n, shape), _unit(rng, n, shape)
        return (ww, pp), _probe_jets(tensor, ww, pp)

    (sample, clean), test = jets(300), jets(150)
    data = tuple(np.stack([_noisy(rng, jet) for jet in mode]) for mode in clean)
    weight = np.array([[1 / np.linalg.norm(jet) for jet in mode] for mode in data])
    start = _random_cores(rng, shape, _equal_ranks(shape, 1))
    stages = _growing(shape, 1, 2, 3, 4)
    return Problem("probe_derivatives", stages, (15, 5), start, (sample, data), test, order=2, weight=weight)


def _of_tensorly(name: str) -> np.ndarray:
    import tensorly

    return np.load(Path(tensorly.__file__).parent / "datasets" / "data" / name)


def kinetic(seed: int) -> Problem:
    """10% of the entries of fluorescence kinetics, 64 x 12 x 10 x 60, judged by another 10%; some are missing."""
    rng = np.random.default_rng(seed)
    tensor, missing = _of_tensorly("Kinetic.npy"), _of_tensorly("Kinetic_missing.npy")
    train, test = _entries(rng, tensor, 46_080, 46_080, known=~missing)
    start = _constant(tensor.shape, float(np.mean(train[1])))
    return Problem("entries", _growing(tensor.shape, 1, 4), (20, 5), start, train, test)


def indian_pines(seed: int) -> Problem:
    """10% of the entries of a hyperspectral image, 145 x 145 pixels in 200 bands, judged by another 1%."""
    rng = np.random.default_rng(seed)
    tensor = _of_tensorly("Indian_pines_corrected.npy")
    train, test = _entries(rng, tensor, tensor.size // 10, tensor.size // 100)
    start = _constant(tensor.shape, float(np.mean(train[1])))
    return Problem("entries", _growing(tensor.shape, 1, 8), (8, 4), start, train, test)


PROBLEMS = {
    "a": exponential,
    "b": low_rank,
    "c": growing,
    "d": cosine,
    "e": hilbert,
    "kinetic": kinetic,
    "pines": indian_pines,
}
