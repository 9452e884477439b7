"""J^T, J and Gauss-Newton products against t3toolbox: the same arrays, one process, calls by turns.

Run as ``python -m benchmarks.transpose`` (extra ``bench``). t3toolbox is taken at the better of its two layouts and at
the best of several chunk sizes; t3k at ``chunk_size="auto"``. ``limit`` is the model's FLOPs as plain matrix products
of the same shapes, timed in the same rounds. Prints a Markdown table; ``--json PATH`` writes the figures as well.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rounds import Timing, geometric_mean, interleave
from t3k.api.chunk_size import auto_chunk
from t3k.api.problem_shape import ProblemShape
from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose
from t3k.kernels.types import Frame, Variations


class Point(NamedTuple):
    """One problem of the grid: modes, order, probes, bonds, Tucker ranks and mode sizes; end bonds are 1."""

    d: int
    order: int
    n_probes: int
    r: int
    n: int
    size: int

    @property
    def bonds(self) -> tuple[int, ...]:
        """r_0 .. r_d."""
        return (1, *(self.r,) * (self.d - 1), 1)


GRID = [
    Point(4, 2, 1000, 32, 32, 64),
    Point(6, 3, 512, 64, 32, 64),
    Point(4, 2, 1000, 64, 64, 64),
    Point(3, 1, 4000, 16, 16, 100),
    Point(8, 2, 1000, 8, 8, 32),
    Point(5, 5, 256, 32, 16, 128),
    Point(4, 2, 1000, 8, 8, 2048),
    Point(3, 1, 2000, 20, 20, 150),
    Point(10, 1, 2000, 12, 12, 20),
    Point(30, 1, 1000, 6, 6, 10),
]
PEER_CHUNKS = (None, 32, 100)


def _arrays(point: Point) -> tuple[Frame, Variations, Any, Any, Any]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[-1]), jnp.float32)

    r = point.bonds
    tucker = [tuple(draw(point.n, point.size) for _ in range(point.d)) for _ in range(2)]
    trains = [tuple(draw(r[i], point.n, r[i + 1]) for i in range(point.d)) for _ in range(4)]
    ww, pp = (tuple(draw(point.n_probes, point.size) for _ in range(point.d)) for _ in range(2))
    zz = tuple(draw(point.order + 1, point.n_probes, point.size) for _ in range(point.d))
    return Frame(tucker[0], *trains[:3]), Variations(tucker[1], trains[3]), ww, pp, zz


def _chunk(point: Point) -> int:
    sizes, ranks = (point.size,) * point.d, (point.n,) * point.d
    problem = ProblemShape(sizes, ranks, point.bonds, point.order, point.n_probes, 1, jnp.dtype("float32"))
    return auto_chunk(problem)


def _padded(trains: Any) -> Any:
    """The peer's second layout: cores padded to one shape and stacked."""

    def stack(train: tuple[jax.Array, ...]) -> jax.Array:
        shape = np.max([x.shape for x in train], axis=0)
        return jnp.stack([jnp.pad(x, [(0, int(b) - a) for a, b in zip(x.shape, shape, strict=True)]) for x in train])

    return tuple(stack(train) for train in trains)


def _limit(point: Point) -> Callable[[], Any]:
    """All matrix products of the transpose in one program, on inputs of the shapes that they have there."""
    rows, width, columns = point.r, point.r * point.n, point.n_probes
    left, right = jnp.ones((rows, width), jnp.float32), jnp.ones((width, columns), jnp.float32)
    r = point.bonds
    model = sum(
        point.n_probes * r[i] * point.n * r[i + 1] * (14 * (point.order + 1) + 4)
        + point.n_probes * point.n * point.size * (4 * (point.order + 1) + 8)
        for i in range(point.d)
    )
    repeats = max(1, round(model / (2 * rows * width * columns)))

    @jax.jit
    def products(left: jax.Array, right: jax.Array) -> jax.Array:
        def body(_: Any, carry: jax.Array) -> jax.Array:
            # The next product needs this one, so that none is left out.
            return left + (carry @ right)[:, :1]

        return jax.lax.fori_loop(0, repeats, body, left)

    return lambda: products(left, right)


def _programs(point: Point, operation: str) -> dict[str, Callable[[], Any]]:
    import t3toolbox.backend.sampling_derivatives as peer

    frame, variations, ww, pp, zz = _arrays(point)
    order, chunk = point.order, _chunk(point)
    programs: dict[str, Callable[[], Any]] = {}
    if operation == "transpose":
        ours = jax.jit(lambda *a: probe_transpose(*a, order, sum_over_probes=True, chunk_size=chunk))
        programs["t3k"] = lambda: ours(zz, ww, pp, frame)
        for layout, (f, w, p, z) in _layouts(frame, ww, pp, zz).items():
            for size in PEER_CHUNKS if layout == "padded" else (None,):
                theirs = jax.jit(
                    lambda z, w, p, f, size=size: peer.tv_probe_derivatives_transpose(z, w, p, f, order, True, size)
                )
                programs[f"peer {layout} {size}"] = lambda theirs=theirs, a=(z, w, p, f): theirs(*a)
        programs["limit"] = _limit(point)
        return programs
    gauss_newton = operation == "gauss_newton"
    if gauss_newton:
        ours = jax.jit(lambda w, p, v, f: gauss_newton_product(Probes(w, p), v, f, order, chunk_size=chunk))
    else:
        ours = jax.jit(lambda w, p, v, f: probe_jacobian(w, p, v, f, order, chunk_size=chunk))
    programs["t3k"] = lambda: ours(ww, pp, variations, frame)
    for layout, (f, w, p, v) in _layouts(frame, ww, pp, variations).items():

        def theirs(w: Any, p: Any, v: Any, f: Any) -> Any:
            z = peer.tv_probe_derivatives(w, p, v, f, order)
            return peer.tv_probe_derivatives_transpose(z, w, p, f, order, True, None) if gauss_newton else z

        compiled = jax.jit(theirs)
        programs[f"peer {layout}"] = lambda compiled=compiled, a=(w, p, v, f): compiled(*a)
    return programs


def _layouts(frame: Any, ww: Any, pp: Any, last: Any) -> dict[str, Any]:
    """The arguments in the peer's two layouts; `last` is a train, or a pair of trains."""
    nested = isinstance(last, Variations)
    padded = _padded(last) if nested else jnp.stack(last)
    return {
        "ragged": (tuple(frame), ww, pp, tuple(last)),
        "padded": (_padded(frame), jnp.stack(ww), jnp.stack(pp), padded),
    }


def _row(point: Point, operation: str, rounds: int) -> dict[str, Any]:
    timings = interleave(_programs(point, operation), rounds)
    peers = [timing for name, timing in timings.items() if name.startswith("peer")]
    best = Timing(min(t.fastest for t in peers), min(t.median for t in peers))
    ours, limit = timings["t3k"], timings.get("limit")
    return {
        "point": tuple(point),
        "operation": operation,
        "t3k_ms": 1e3 * ours.fastest,
        "peer_ms": 1e3 * best.fastest,
        "ratio_fastest": best.fastest / ours.fastest,
        "ratio_median": best.median / ours.median,
        "of_limit": None if limit is None else limit.fastest / ours.fastest,
        "all_ms": {name: 1e3 * timing.fastest for name, timing in timings.items()},
    }


def run(operations: list[str], points: list[int], rounds: int) -> list[dict[str, Any]]:
    """Times the operations over points of the grid and prints a table as it goes."""
    rows: list[dict[str, Any]] = []
    for operation in operations:
        print(f"\n{operation}: (modes, order, probes, r, n, N), float32, {rounds} rounds\n")
        print("| problem | t3k, ms | t3toolbox, ms | ratio of fastest | ratio of medians | share of the limit |")
        print("|---|---|---|---|---|---|")
        for index in points:
            row = _row(GRID[index], operation, rounds)
            share = "" if row["of_limit"] is None else f"{row['of_limit']:.0%}"
            print(
                f"| {row['point']} | {row['t3k_ms']:.1f} | {row['peer_ms']:.1f} | {row['ratio_fastest']:.1f} "
                f"| {row['ratio_median']:.1f} | {share} |",
                flush=True,
            )
            rows.append(row)
        mean = geometric_mean([row["ratio_fastest"] for row in rows if row["operation"] == operation])
        print(f"\nGeometric mean of the ratios of the fastest: {mean:.2f}")
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--operations", nargs="+", default=["transpose", "jacobian", "gauss_newton"])
    parser.add_argument("--points", type=int, nargs="+", default=list(range(len(GRID))), help="rows of the grid")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    rows = run(args.operations, args.points, args.rounds)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
