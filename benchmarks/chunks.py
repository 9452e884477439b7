"""What ``chunk_size="auto"`` costs against every other chunk, and how compile time grows with the modes.

Run as ``python -m benchmarks.chunks``: J^T, J and Gauss-Newton products of probes over the grid, at the chunk that
``"auto"`` stands for and at those from 32 on that are powers of two, and all at once; by turns. Then the seconds in
which J^T is traced and compiled at 6 and at 30 modes, of which all but the outer ones have equal cores.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.problems import GRID, Arrays, Point, arrays, chunk
from benchmarks.rounds import interleave
from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose
from t3k.kernels.types import Frame

CHUNKS = (32, 64, 128, 256, 512, None)


def _transpose(x: Arrays, order: int, size: int | None) -> Any:
    return probe_transpose(x.zz, x.ww, x.pp, x.frame, order, sum_over_probes=True, chunk_size=size)


def _jacobian(x: Arrays, order: int, size: int | None) -> Any:
    return probe_jacobian(x.ww, x.pp, x.variations, x.frame, order, chunk_size=size)


def _gauss_newton(x: Arrays, order: int, size: int | None) -> Any:
    return gauss_newton_product(Probes(x.ww, x.pp), x.variations, x.frame, order, chunk_size=size)


OPERATIONS: dict[str, Callable[[Arrays, int, int | None], Any]] = {
    "transpose": _transpose,
    "jacobian": _jacobian,
    "gauss_newton": _gauss_newton,
}


def compare(point: Point, operation: str, rounds: int) -> dict[str, Any]:
    """Milliseconds at each chunk, of the fastest round."""
    x, auto, fun = arrays(point), chunk(point, operation=operation), OPERATIONS[operation]
    others = (size or point.n_probes for size in CHUNKS)
    sizes = [auto, *(size for size in others if size != auto and size <= point.n_probes)]
    programs = {}
    for size in sizes:
        program = jax.jit(partial(fun, order=point.order, size=size))
        programs[str(size)] = partial(program, x)
    timings = {name: 1e3 * timing.fastest for name, timing in interleave(programs, rounds).items()}
    jax.clear_caches()
    return {
        "point": tuple(point), "operation": operation, "auto": auto, "all_ms": timings,
        "auto_to_best": timings[str(auto)] / min(timings.values()),
    }  # fmt: skip


def compile_seconds(d: int, order: int, *, r: int = 6, n: int = 6, size: int = 10, n_probes: int = 1000) -> float:
    """Seconds to trace and compile J^T, on shapes alone."""

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    bonds = (1, *(r,) * (d - 1), 1)
    tt = tuple(array(bonds[i], n, bonds[i + 1]) for i in range(d))
    rows = tuple(array(n_probes, size) for _ in range(d))
    residuals = tuple(array(order + 1, n_probes, size) for _ in range(d))
    frame = Frame(tuple(array(n, size) for _ in range(d)), tt, tt, tt)

    def transpose(zz: Any, ww: Any, frame: Any) -> Any:
        return probe_transpose(zz, ww, ww, frame, order, sum_over_probes=True, chunk_size=128)

    jax.clear_caches()
    start = time.perf_counter()
    jax.jit(transpose).lower(residuals, rows, frame).compile()
    return time.perf_counter() - start


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS), choices=list(OPERATIONS))
    parser.add_argument("--points", type=int, nargs="+", default=list(range(len(GRID))), help="rows of the grid")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    rows = []
    print('ms of the fastest round at each chunk; the first is "auto"')
    for operation in args.operations:
        for index in args.points:
            row = compare(GRID[index], operation, args.rounds)
            rows.append(row)
            each = "  ".join(f"{name}: {ms:.1f}" for name, ms in row["all_ms"].items())
            print(f"{operation} {row['point']}  auto/best {row['auto_to_best']:.2f}   {each}", flush=True)
    compile_seconds(3, 1)
    compiled = []
    for order, modes in ((1, (6, 30)), (3, (6, 30)), (8, (6,))):
        for d in modes:
            seconds = min(compile_seconds(d, order) for _ in range(3))
            compiled.append({"modes": d, "order": order, "seconds": seconds})
            print(f"traced and compiled at {d} modes, order {order}: {seconds:.2f} s", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"chunks": rows, "compile": compiled}, indent=1) + "\n")


if __name__ == "__main__":
    main()
