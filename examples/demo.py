"""Recovers a hyperspectral image from compressive measurements: a Tucker tensor train fitted to probes of it.

The cube is only ever touched by contraction with random vectors (and the first derivatives of that along other
random vectors), as an instrument would; the fit never sees it. Run with ``make demo``, or ``python examples/demo.py
--help`` for the settings. Prints a table, and writes three figures to ``output/``.
"""

import argparse
import time
from pathlib import Path

import demo_figures
import jax
import jax.numpy as jnp
from indian_pines import load_cube, measure, random_probes

import t3k

HELD_OUT = 100


def relative_error(found: tuple[jax.Array, ...], expected: tuple[jax.Array, ...]) -> float:
    """The norm of the difference over that of what was expected, over all modes."""
    difference = sum(float(jnp.vdot(a - b, a - b)) for a, b in zip(found, expected, strict=True))
    return (difference / sum(float(jnp.vdot(b, b)) for b in expected)) ** 0.5


def settings() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--probes", type=int, default=600, help="measurements of each kind (default: %(default)s)")
    parser.add_argument("--tucker-ranks", type=int, nargs=3, default=(20, 20, 8), metavar="n")
    parser.add_argument("--tt-ranks", type=int, nargs=4, default=(1, 20, 8, 1), metavar="r")
    parser.add_argument("--iterations", type=int, default=40, help="Newton iterations at the most")
    parser.add_argument("--output", type=Path, default=Path("output"), help="folder of the figures")
    return parser.parse_args()


def main() -> None:
    """Measures, fits, compares and draws."""
    args = settings()
    shape_line = "Indian Pines: 145 x 145 pixels, 200 spectral bands"
    print(f"{shape_line}. Measuring it with {args.probes} random probes and their first derivatives ...")
    cube = load_cube()
    keys = jax.random.split(jax.random.key(0), 4)
    ww, pp = (random_probes(key, cube.shape, args.probes) for key in keys[:2])
    data = jax.block_until_ready(measure(cube, ww, pp))
    held_ww, held_pp = (random_probes(key, cube.shape, HELD_OUT) for key in keys[2:])

    print("Fitting a Tucker tensor train to the measurements; the cube itself is not used.")
    start = t3k.TuckerTensorTrain.zeros(cube.shape, args.tucker_ranks, args.tt_ranks, dtype=cube.dtype)
    began = time.perf_counter()
    fitted, stats = t3k.newton_cg(
        t3k.MANIFOLD,
        "probe_derivatives",
        (ww, pp),
        data,
        start,
        order=1,
        max_iterations=args.iterations,
        max_cg=40,
        loss_tolerance=1e-3,
        verbose="bar",
    )
    seconds = time.perf_counter() - began

    recovered = fitted.to_dense()
    best = t3k.TuckerTensorTrain.from_dense(cube, args.tucker_ranks, args.tt_ranks)
    problem = (cube.shape, fitted.tucker_ranks, fitted.tt_ranks, 1, args.probes)
    report = t3k.memory_report(*problem, chunk_size=stats.chunk_size, dtype=cube.dtype)
    n_numbers = sum(z.size for z in data)
    rows = [
        ("measured numbers", f"{n_numbers:,} ({n_numbers / cube.size:.0%} of the cube's {cube.size:,})"),
        ("Tucker ranks, TT ranks", f"{fitted.tucker_ranks}, {fitted.tt_ranks}"),
        ("parameters", f"{fitted.n_parameters:,} (the cube has {cube.size / fitted.n_parameters:.0f} times as many)"),
        ("error on the measurements", f"{relative_error(fitted.probe_derivatives(ww, pp, 1), data):.2%}"),
        (
            f"error on {HELD_OUT} held-out probes",
            f"{relative_error(fitted.probe_derivatives(held_ww, held_pp, 1), measure(cube, held_ww, held_pp)):.2%}",
        ),
        ("error of the recovered cube", f"{relative_error((recovered,), (cube,)):.2%}"),
        ("best possible (T3-SVD of the cube)", f"{relative_error((best.to_dense(),), (cube,)):.2%}"),
        ("fit", f"{stats.status} in {stats.iterations} Newton steps, {sum(stats.cg_iterations)} CG iterations"),
        ("time, compilation included", f"{seconds:.1f} s"),
        ("chunk", f"{report.chunk_size} of {args.probes} probes at a time"),
        ("scratch memory of the transpose", f"{report.scratch / 2**20:.1f} MiB"),
    ]
    print()
    for label, value in rows:
        print(f"  {label:<36}{value}")
    print()
    for path in demo_figures.draw(args.output, cube, recovered, stats, problem, report.chunk_size):
        print(f"  wrote {path}")


if __name__ == "__main__":
    main()
