"""How each library fits the problems of `benchmarks.science`: a problem goes in, a function that predicts comes out.

Libraries are imported where they are used, so that a process has the memory of one of them only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.science_problems import Cores, Problem, Ranks

__all__ = ["FITS"]

Predict = Callable[[Any], Any]


def _padded(cores: Cores, ranks: Ranks) -> Cores:
    """The same tensor with cores of larger ranks, filled up with zeros."""
    n, r = ranks
    tucker = tuple(np.pad(U, ((0, k - U.shape[0]), (0, 0))) for U, k in zip(cores[0], n, strict=True))
    shapes = zip(cores[1], r[:-1], n, r[1:], strict=True)
    return tucker, tuple(
        np.pad(G, [(0, size - old) for size, old in zip(wanted, G.shape, strict=True)]) for G, *wanted in shapes
    )


def _by_stages(problem: Problem, fit: Callable[[Cores, int], Any]) -> Any:
    """The fit of the last stage; each stage starts from the one before."""
    cores, x = problem.start, None
    for stage, ranks in enumerate(problem.stages):
        last = stage == len(problem.stages) - 1
        x = fit(_padded(cores, ranks), problem.iterations[0 if last else 1])
        cores = tuple(map(np.asarray, x.tucker_cores)), tuple(map(np.asarray, x.tt_cores))
    return x


def t3k(problem: Problem) -> Predict:
    """Gauss-Newton on the manifold."""
    import t3k

    def fit(cores: Cores, iterations: int) -> Any:
        settings: dict[str, Any] = {"order": problem.order, "weight": problem.weight, "max_iterations": iterations}
        x0 = t3k.TuckerTensorTrain(*cores)
        x, _ = t3k.newton_cg(t3k.MANIFOLD, problem.kind, *problem.train, x0, loss_tolerance=1e-3, **settings)
        return x

    x = _by_stages(problem, fit)
    if problem.order is None:
        return getattr(x, problem.kind)
    return lambda sample: x.probe_derivatives(*sample, problem.order)


def _t3toolbox(problem: Problem, *, use_jit: bool) -> Predict:
    import t3toolbox as peer

    gradient: list[float] = []

    def fit(cores: Cores, iterations: int) -> Any:
        x, stats = peer.newton_cg(
            peer.MANIFOLD,
            problem.kind,
            *_peer_train(problem),
            peer.TuckerTensorTrain(*cores),
            order=problem.order,
            weight=problem.weight,
            max_newton=iterations,
            use_jit=use_jit,
            g0norm_newton=gradient[0] if gradient else None,
        )
        gradient.append(stats["history"][0]["gnorm"])
        return x

    x = _by_stages(problem, fit)
    if problem.kind == "entries":
        return lambda sample: x.entries(np.asarray(sample))
    if problem.order is None:
        return x.apply
    return lambda sample: x.probe_derivatives(*sample, problem.order)


def _peer_train(problem: Problem) -> tuple[Any, Any]:
    sample, data = problem.train
    return (np.asarray(sample) if problem.kind == "entries" else sample), data


def _masked(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The whole tensor with zeros where it is not known, and where it is."""
    index, data = problem.train
    shape = [U.shape[1] for U in problem.start[0]]
    tensor, mask = np.zeros(shape), np.zeros(shape)
    tensor[index], mask[index] = data, 1
    return tensor, mask


def tensorly_tucker(problem: Problem) -> Predict:
    """Alternating least squares on the whole tensor, whose missing entries are imputed."""
    from tensorly import tucker_to_tensor
    from tensorly.decomposition import tucker

    tensor, mask = _masked(problem)
    x = tucker(tensor, list(problem.stages[-1][0]), mask=mask, n_iter_max=300, tol=1e-8, init="svd")
    return lambda index: tucker_to_tensor(x)[index]


def tensorly_parafac(problem: Problem) -> Predict:
    """The same for a sum of as many products as the largest bond."""
    from tensorly import cp_to_tensor
    from tensorly.decomposition import parafac

    tensor, mask = _masked(problem)
    rank = max(problem.stages[-1][1])
    x = parafac(tensor, rank, mask=mask, n_iter_max=300, tol=1e-8, init="svd")
    return lambda index: cp_to_tensor(x)[index]


FITS: dict[str, Callable[[Problem], Predict]] = {
    "t3k": t3k,
    "t3toolbox (numpy)": lambda problem: _t3toolbox(problem, use_jit=False),
    "t3toolbox (jit)": lambda problem: _t3toolbox(problem, use_jit=True),
    "tensorly tucker": tensorly_tucker,
    "tensorly parafac": tensorly_parafac,
}
