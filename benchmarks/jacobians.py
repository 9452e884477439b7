"""Jacobians against `jax.jacfwd`/`jax.jacrev` and solvax: the same functions, one process, calls interleaved.

Run as ``python -m benchmarks.jacobians``; prints a Markdown table, and writes the times as JSON with ``--json PATH``.
Programs are jitted, but for one case, and have run once before the clock starts. A round calls each once, in turn, so
that whatever else the machine does falls on all of them. The ratios are of the medians and of the fastest rounds.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacrev


class Case(NamedTuple):
    """A function, its argument, the mode that suits it, and whether the program is jitted or called as it is."""

    name: str
    fun: Callable[..., Any]
    x: jax.Array
    mode: str
    transform: Callable[..., Any] = lambda jacobian: jacobian
    jit: bool = True


def _random(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def _sum_of_squares(jacobian: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda x: jnp.sum(jacobian(x) ** 2))


def _network(n: int, depth: int) -> Callable[..., Any]:
    weights = [_random(layer, n, n) / math.sqrt(n) for layer in range(depth)]

    def network(x: jax.Array) -> jax.Array:
        for weight in weights:
            x = jnp.tanh(weight @ x)
        return x

    return network


def _wide(n: int, width: int) -> Callable[..., Any]:
    """`width` features of each of n points; ranked, scaled over the points, centred, weighed: n * width values."""
    features = _random(1, n, width)

    def wide(x: jax.Array) -> jax.Array:
        ranked = jnp.sort(jnp.sin(x[:, None] * features), axis=1)
        scaled = ranked / jnp.linalg.norm(ranked, axis=0)
        centred = scaled - jnp.mean(scaled, axis=1, keepdims=True)
        return jnp.sum(centred**3 * features, axis=1)

    return wide


def cases() -> list[Case]:
    """The cases of the table."""
    matrix, tall = _random(0, 1000, 1000) / 30, _random(1, 20000, 50)
    small = _random(3, 100, 100) / 10
    return [
        Case("nothing large, n=m=100", lambda x: jnp.tanh(small @ jnp.sin(x)), _random(0, 100), "fwd"),
        Case("tanh(W sin x), n=m=1000", lambda x: jnp.tanh(matrix @ jnp.sin(x)), _random(0, 1000), "fwd"),
        Case("the same by rows", lambda x: jnp.tanh(matrix @ jnp.sin(x)), _random(0, 1000), "rev"),
        Case("50k intermediate, n=m=1000", _wide(1000, 50), _random(0, 1000), "fwd"),
        Case("50k intermediate, without jit", _wide(1000, 50), _random(0, 1000), "fwd", jit=False),
        Case("tall, n=50, m=20000", lambda x: jnp.sin(tall @ x), _random(0, 50), "fwd"),
        Case("wide, n=20000, m=50", lambda x: jnp.sin(x @ tall), _random(0, 20000), "rev"),
        Case("20 layers, n=300", _network(300, 20), _random(0, 300), "fwd"),
        Case("grad through 20 layers, n=300", _network(300, 20), _random(0, 300), "fwd", _sum_of_squares),
    ]


def builders(mode: str) -> dict[str, Callable[..., Any]]:
    """What is compared, by name."""
    import solvax.autodiff as solvax

    if mode == "fwd":
        return {"jax": jax.jacfwd, "solvax": solvax.chunked_jacfwd, "t3k": chunked_jacfwd}
    return {"jax": jax.jacrev, "solvax": solvax.chunked_jacrev, "t3k": chunked_jacrev}


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Times of each builder's program over the rounds, with its scratch."""
    programs, scratch = {}, {}
    for name, build in builders(case.mode).items():
        program: Any = case.transform(build(case.fun))
        if case.jit:
            program = jax.jit(program).lower(case.x).compile()
            scratch[name] = int(program.memory_analysis().temp_size_in_bytes)
        jax.block_until_ready(program(case.x))
        programs[name] = program
    times: dict[str, list[float]] = {name: [] for name in programs}
    order = list(programs)
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            begin = time.perf_counter()
            jax.block_until_ready(programs[name](case.x))
            times[name].append(time.perf_counter() - begin)
    return {"case": case.name, "seconds": times, "scratch_bytes": scratch}


def ratio(result: dict[str, Any], other: str, summary: Callable[[list[float]], float]) -> float:
    """How many times as long as t3k another takes; above 1, t3k is faster."""
    return summary(result["seconds"][other]) / summary(result["seconds"]["t3k"])


def table(results: list[dict[str, Any]]) -> str:
    """The results in Markdown."""
    lines = [
        "| case | jax ms | solvax ms | t3k ms | jax/t3k (fastest) | solvax/t3k (fastest) | scratch MB (same order) |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        medians = [f"{1e3 * statistics.median(result['seconds'][name]):.2f}" for name in ("jax", "solvax", "t3k")]
        ratios = [
            f"{ratio(result, other, statistics.median):.2f} ({ratio(result, other, min):.2f})"
            for other in ("jax", "solvax")
        ]
        scratch = ", ".join(f"{size / 1e6:.2f}" for size in result["scratch_bytes"].values())
        lines.append("| " + " | ".join([result["case"], *medians, *ratios, scratch]) + " |")
    for other in ("jax", "solvax"):
        means = [statistics.geometric_mean(ratio(r, other, s) for r in results) for s in (statistics.median, min)]
        lines.append(f"\n{other}/t3k, geometric mean: {means[0]:.2f} of medians, {means[1]:.2f} of fastest.")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="run the cases whose name has this in it")
    parser.add_argument("--json", help="where to write the times")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    results = [measure(case, options.rounds) for case in cases() if options.only in case.name]
    print(table(results))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    else:
        print(json.dumps([{k: v for k, v in r.items() if k != "seconds"} for r in results]), file=sys.stderr)
    return results


if __name__ == "__main__":
    main()
