"""Time and scratch memory of a Jacobian against the chunk size.

The function has a large intermediate result: 50 features of each of 500 points. Run with
``python examples/chunked_jacobian.py``; prints a table, and draws it in ``output/chunked_jacobian.png`` if matplotlib
is there (``pip install 't3k[plot]'``).
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import t3k


class Point(NamedTuple):
    """One line of the table."""

    label: str
    chunk: int
    seconds: float
    scratch_mb: float


def features(x: jax.Array, weights: jax.Array) -> jax.Array:
    """Features of each point: scaled over the points, ranked, centred, weighed. The result is as long as x."""
    field = jnp.sin(x[:, None] * weights)
    ranked = jnp.sort(field / jnp.linalg.norm(field, axis=0, keepdims=True), axis=1)
    centred = ranked - jnp.mean(ranked, axis=0, keepdims=True)
    return jnp.sum(centred * centred * weights, axis=1)


def measure(label: str, chunk: int, jacobian: Any, x: jax.Array, weights: jax.Array, repeats: int) -> Point:
    """The fastest of some calls of the compiled Jacobian, and its scratch according to XLA."""
    program = jax.jit(jacobian).lower(x, weights).compile()
    scratch: Any = program.memory_analysis()
    jax.block_until_ready(program(x, weights))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(program(x, weights))
        times.append(time.perf_counter() - begin)
    return Point(label, chunk, min(times), scratch.temp_size_in_bytes / 1e6)


def draw(points: list[Point], dense: Point, chosen: int | None, path: Path) -> None:
    """Both curves in one figure."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("No figure: it needs matplotlib, which the extra 't3k[plot]' installs.")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    chunks = [point.chunk for point in points]
    curves = (
        ("time (ms)", [1e3 * p.seconds for p in points], 1e3 * dense.seconds),
        ("scratch memory (MB)", [p.scratch_mb for p in points], dense.scratch_mb),
    )
    for axis, (name, values, reference) in zip(axes, curves, strict=True):
        axis.loglog(chunks, values, "o-", label="chunked_jacfwd")
        axis.axhline(reference, color="tab:red", linestyle="--", label="jax.jacfwd")
        if chosen is not None:
            axis.axvline(chosen, color="gray", linestyle=":", label=f'"auto": {chosen}')
        axis.set(xlabel="chunk size", ylabel=name)
        axis.set_xticks(chunks, [str(chunk) for chunk in chunks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    # From zero, since a span of less than a decade leaves a logarithmic axis without numbers.
    axes[0].set_yscale("linear")
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"Figure: {path}")


def main() -> None:
    """Measures and draws."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--n", type=int, default=500, help="inputs, and outputs (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder of the figure")
    args = parser.parse_args()

    keys = jax.random.split(jax.random.key(0))
    x, weights = jax.random.normal(keys[0], (args.n,)), jax.random.normal(keys[1], (args.n, 50))
    report = t3k.chunk_report(features, x, weights, mode="fwd")
    print(f'"auto" means: {report}\n')

    dense = measure("jax.jacfwd", args.n, jax.jacfwd(features), x, weights, args.repeats)
    points = [
        measure(str(chunk), chunk, t3k.chunked_jacfwd(features, chunk_size=chunk), x, weights, args.repeats)
        for chunk in (1, 2, 4, 8, 16, 32, 64, 128, 256)
        if chunk <= args.n
    ]
    print(f"{'chunk':>10} {'ms':>9} {'scratch MB':>11}")
    for point in [*points, dense]:
        print(f"{point.label:>10} {1e3 * point.seconds:9.1f} {point.scratch_mb:11.2f}")
    draw(points, dense, report.chunk_size, args.output / "chunked_jacobian.png")


if __name__ == "__main__":
    main()
