"""Whole fits against t3toolbox: one large fit cold and warm, and many small ones.

Run as ``python -m benchmarks.fits`` (extra ``bench``). Both get the same probes, derivatives, start and tolerances, in
float64 and in one process, warm runs by turns; losses are computed from the fitted tensors by the same function.
t3toolbox takes 15 Newton steps, and t3k as many as it needs for a loss that is no higher. Cold is the first fit of a
process, so it is timed in processes of their own; imports are left out, also that of scipy.linalg, which JAX makes when
it first meets a decomposition. t3toolbox runs jitted and in numpy. Prints Markdown
tables; ``--json PATH`` writes the figures as well.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg  # noqa: F401  (an import like any other, for all libraries)

import t3k
from benchmarks.rounds import interleave

#: The large fit: d modes, mode size, Tucker ranks and bonds, samples, order, Newton steps.
D, SIZE, RANK, SAMPLES, ORDER, STEPS = 4, 64, 8, 1000, 2, 15
#: The loss of t3toolbox's fit after these steps, for t3k to reach.
PEER_LOSS = 0.0114
#: The small fits: mode sizes, rank, applies, how many.
SMALL, SMALL_RANK, SMALL_SAMPLES, MANY = (8, 9, 10), 2, 200, 64


def _unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    draw = rng.standard_normal(shape)
    return draw / np.linalg.norm(draw, axis=-1, keepdims=True)


def _random(seed: int, shape: tuple[int, ...], rank: int) -> t3k.TuckerTensorTrain:
    d = len(shape)
    return t3k.TuckerTensorTrain.randn(jax.random.key(seed), shape, (rank,) * d, (1, *(rank,) * (d - 1), 1))


def _large() -> tuple[Any, Any, Any]:
    rng, shape = np.random.default_rng(0), (SIZE,) * D
    x = _random(0, shape, RANK)
    ww, pp = (tuple(_unit(rng, SAMPLES, N) for N in shape) for _ in range(2))
    return (ww, pp), x.probe_derivatives(ww, pp, ORDER), _random(1, shape, RANK)


def _peer_tensor(x: t3k.TuckerTensorTrain) -> Any:
    import t3toolbox.tucker_tensor_train as peer

    return peer.TuckerTensorTrain(*(tuple(map(np.asarray, train)) for train in (x.tucker_cores, x.tt_cores)))


def _large_fits(names: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    sample, data, x0 = _large()

    def ours() -> Any:
        options: Any = {"max_iterations": 2 * STEPS, "callback": lambda info: info.loss <= PEER_LOSS}
        return t3k.newton_cg(t3k.MANIFOLD, "probe_derivatives", sample, data, x0, order=ORDER, **options)[0]

    def peer(use_jit: bool) -> Any:
        import t3toolbox.manifold as manifold
        import t3toolbox.optimizers as optimizers

        measured = tuple(map(np.asarray, data))
        return optimizers.newton_cg(
            manifold.MANIFOLD,
            "probe_derivatives",
            sample,
            measured,
            _peer_tensor(x0),
            order=ORDER,
            max_newton=STEPS,
            gtol_rel=0.0,
            use_jit=use_jit,
        )[0]

    fits = {"t3k": ours, "peer numpy": lambda: peer(False), "peer jit": lambda: peer(True)}
    return {name: fits[name] for name in names}


def _loss(x: Any) -> float:
    """Half the sum of squared residuals of a fitted tensor of either library."""
    cores = (x.tucker_cores, x.tt_cores)
    tensor = t3k.TuckerTensorTrain(*(tuple(jnp.asarray(core, jnp.float64) for core in train) for train in cores))
    (ww, pp), data, _ = _large()
    found = tensor.probe_derivatives(ww, pp, ORDER)
    return 0.5 * sum(float(jnp.sum((z - y) ** 2)) for z, y in zip(found, data, strict=True))


def _cold(name: str) -> float:
    """Seconds of the first fit of a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fits", "--cold", name], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def _time_cold(name: str) -> None:
    fit = _large_fits((name,))[name]
    start = time.perf_counter()
    jax.block_until_ready(fit().tt_cores)
    print(time.perf_counter() - start)


def _many() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    ww = tuple(_unit(rng, SMALL_SAMPLES, N) for N in SMALL)
    truths, starts = ([_random(seed + base, SMALL, SMALL_RANK) for seed in range(MANY)] for base in (0, 1000))
    data = jnp.stack([x.apply(ww) for x in truths])
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)

    def ours() -> Any:
        return t3k.fit_many(
            t3k.MANIFOLD, "apply", ww, data, stack, in_axes=(None, 0, 0), max_iterations=30, gradient_tolerance=1e-6
        )

    def peer(use_jit: bool) -> list[Any]:
        import t3toolbox.manifold as manifold
        import t3toolbox.optimizers as optimizers

        return [
            optimizers.newton_cg(
                manifold.MANIFOLD, "apply", ww, np.asarray(b), _peer_tensor(x), max_newton=30, gtol_rel=1e-6,
                use_jit=use_jit,
            )[0]
            for b, x in zip(data, starts, strict=True)
        ]  # fmt: skip

    return {"t3k": ours, "peer numpy": lambda: peer(False), "peer jit": lambda: peer(True)}


def run(rounds: int, *, jit_many: bool) -> list[dict[str, Any]]:
    """Times all fits and prints the tables."""
    names = ("t3k", "peer numpy", "peer jit")
    cold = {name: min(_cold(name) for _ in range(rounds)) for name in names}
    fits = _large_fits(names)
    losses = {name: _loss(fit()) for name, fit in fits.items()}
    warm = interleave(fits, rounds)
    print(f"\nOne fit: d={D}, N={SIZE}, n=r={RANK}, W={SAMPLES}, order {ORDER}, {STEPS} Newton steps, float64\n")
    print("| | cold, s | warm, s | loss |\n|---|---|---|---|")
    rows = []
    for name in names:
        print(f"| {name} | {cold[name]:.2f} | {warm[name].fastest:.2f} | {losses[name]:.2e} |")
        rows.append({"fit": "one", "name": name, "cold": cold[name], "warm": warm[name].fastest, "loss": losses[name]})
    many = {name: fit for name, fit in _many().items() if jit_many or name != "peer jit"}
    times = interleave(many, 1)
    print(f"\n{MANY} small fits: {SMALL}, rank {SMALL_RANK}, {SMALL_SAMPLES} applies each\n")
    print("| | all, s | t3k times faster |\n|---|---|---|")
    for name, timing in times.items():
        print(f"| {name} | {timing.fastest:.2f} | {timing.fastest / times['t3k'].fastest:.1f} |")
        rows.append({"fit": "many", "name": name, "warm": timing.fastest})
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jit-many", action="store_true", help="also loop over the peer's jitted small fits: slow")
    parser.add_argument("--cold", help="print the seconds of one library's first large fit, and end")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if args.cold:
        return _time_cold(args.cold)
    rows = run(args.rounds, jit_many=args.jit_many)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
