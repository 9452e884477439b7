"""The format's operations against t3toolbox: the same arrays, one process, calls by turns.

Run as ``python -m benchmarks.algebra`` (extra ``bench``). Every operation is one jitted program on either side, for
one tensor and for a stack of 64; t3k's stacks are ``vmap``, the peer's functions take them as they are. Of the ways
that the peer has for an operation the fastest counts. The first call, with its compilation, is timed apart. Prints a
Markdown table; ``--json PATH`` writes the figures as they come. On two cores, XLA (jax 0.10.2) was seen to stall in
programs with many batched decompositions; the rounded Hadamard product of a stack, which has most, is left out.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rounds import geometric_mean, interleave
from t3k.kernels.frames import orthogonal_frame
from t3k.kernels.products import hadamard, inner, norm
from t3k.kernels.retraction import retract
from t3k.kernels.sketched_rounding import hadamard_rounded
from t3k.kernels.t3 import add
from t3k.kernels.truncation import truncate
from t3k.kernels.types import T3Cores


class Point(NamedTuple):
    """Modes, mode size, Tucker rank and bond of the operands; end bonds are 1."""

    d: int
    size: int
    n: int
    r: int

    @property
    def bonds(self) -> tuple[int, ...]:
        """r_0 .. r_d."""
        return (1, *(self.r,) * (self.d - 1), 1)


GRID = [Point(4, 30, 6, 6), Point(6, 100, 10, 10), Point(10, 20, 8, 8), Point(4, 60, 20, 20)]
OPERATIONS = ("round", "add and round", "inner", "norm", "Hadamard", "Hadamard, rounded", "frame", "retract")


class Sides(NamedTuple):
    """One operation on either side: functions of the operands, by name."""

    ours: Callable[..., Any]
    peers: dict[str, Callable[..., Any]]
    operands: int


def _cores(point: Point, stack: tuple[int, ...], seed: int) -> T3Cores:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal((*stack, *shape)) / np.sqrt(shape[-1]), jnp.float32)

    r = point.bonds
    tucker = tuple(draw(point.n, point.size) for _ in range(point.d))
    return T3Cores(tucker, tuple(draw(r[i], point.n, r[i + 1]) for i in range(point.d)))


def _sides(point: Point, operation: str) -> Sides:
    from t3toolbox.backend import fv_conversions, t3_linalg, t3_svd, tv_operations

    half, bonds = (max(1, point.n // 2),) * point.d, (1, *(max(1, point.r // 2),) * (point.d - 1), 1)
    n, r, key = (point.n,) * point.d, point.bonds, jax.random.key(0)

    def rounded(x: Any, n: Any, r: Any) -> Any:
        return t3_svd.t3svd(x, r, n)[0]

    both = {"max_tucker_ranks": n, "max_tt_ranks": r}
    table = {
        "round": Sides(lambda x: truncate(x, half, bonds), {"t3svd": lambda x: rounded(x, half, bonds)}, 1),
        "add and round": Sides(
            lambda x, y: truncate(add(x, y), n, r), {"t3svd": lambda x, y: rounded(t3_linalg.t3_add(x, y), n, r)}, 2
        ),
        "inner": Sides(
            inner,
            {
                "stable": t3_linalg.t3_inner_product,
                "plain": lambda x, y: t3_linalg.t3_inner_product(x, y, use_orthogonalization=False),
            },
            2,
        ),
        "norm": Sides(norm, {"stable": t3_linalg.t3_norm}, 1),
        "Hadamard": Sides(hadamard, {"product": t3_linalg.t3_mult}, 2),
        "Hadamard, rounded": Sides(
            lambda x, y: hadamard_rounded(x, y, n, r, key),
            {
                "fused": lambda x, y: t3_linalg.t3m_inplace_fused(x, y, **both),
                "formed": lambda x, y: t3_linalg.t3m_form_then_round(x, y, **both),
            },
            2,
        ),
        "frame": Sides(orthogonal_frame, {"frame": fv_conversions.t3_orthogonal_representations}, 1),
    }
    if operation == "retract":
        return Sides(retract, {"retract": tv_operations.tv_retract}, 0)
    return table[operation]


def _operands(point: Point, operation: str, count: int, stack: tuple[int, ...]) -> tuple[Any, ...]:
    if operation != "retract":
        return tuple(_cores(point, stack, seed) for seed in range(count))
    x, v = _cores(point, stack, 0), _cores(point, stack, 1)
    frame = jax.jit(jax.vmap(orthogonal_frame) if stack else orthogonal_frame)(x)[0]
    return frame, v


def _row(point: Point, operation: str, batch: int, rounds: int) -> dict[str, Any]:
    stack = (batch,) if batch > 1 else ()
    sides = _sides(point, operation)
    operands = _operands(point, operation, sides.operands, stack)
    programs = {"t3k": jax.jit(jax.vmap(sides.ours) if stack else sides.ours)}
    programs |= {name: jax.jit(fun) for name, fun in sides.peers.items()}
    calls: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    for name, program in programs.items():
        given = operands if name == "t3k" else tuple(map(tuple, operands))
        calls[name] = lambda program=program, given=given: program(*given)
        start = time.perf_counter()
        jax.block_until_ready(calls[name]())
        first[name] = time.perf_counter() - start
    timings = interleave(calls, rounds)
    peer = min((name for name in timings if name != "t3k"), key=lambda name: timings[name].fastest)
    ours, theirs = timings["t3k"], timings[peer]
    return {
        "point": tuple(point),
        "operation": operation,
        "batch": batch,
        "t3k_ms": 1e3 * ours.fastest,
        "peer_ms": 1e3 * theirs.fastest,
        "peer": peer,
        "ratio_fastest": theirs.fastest / ours.fastest,
        "ratio_median": theirs.median / ours.median,
        "first_s": {"t3k": first["t3k"], "peer": first[peer]},
    }


def run(
    operations: list[str], points: list[int], batches: list[int], rounds: int, json_path: Path | None = None
) -> list[dict[str, Any]]:
    """Times the operations over points of the grid and prints a table as it goes."""
    rows: list[dict[str, Any]] = []
    print(
        "| (d, N, n, r) x batch | operation | t3k, ms | t3toolbox, ms | ratio of fastest | of medians | first call, s |"
    )
    print("|---|---|---|---|---|---|---|")
    for batch in batches:
        for index in points:
            for operation in operations:
                if batch > 1 and operation == "Hadamard, rounded":
                    continue
                row = _row(GRID[index], operation, batch, rounds)
                print(
                    f"| {row['point']} x {batch} | {operation} | {row['t3k_ms']:.3f} | {row['peer_ms']:.3f} "
                    f"({row['peer']}) | {row['ratio_fastest']:.1f} | {row['ratio_median']:.1f} "
                    f"| {row['first_s']['t3k']:.1f}, {row['first_s']['peer']:.1f} |",
                    flush=True,
                )
                rows.append(row)
                if json_path:
                    json_path.write_text(json.dumps(rows, indent=1) + "\n")
    print(
        f"\nGeometric mean of the ratios of the fastest: {geometric_mean([row['ratio_fastest'] for row in rows]):.2f}"
    )
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, default=list(OPERATIONS))
    parser.add_argument("--points", type=int, nargs="+", default=list(range(len(GRID))), help="rows of the grid")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    run(args.operations, args.points, args.batches, args.rounds, args.json)


if __name__ == "__main__":
    main()
