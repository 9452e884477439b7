"""Scratch of the transpose against the number of probes and the chunk size: a figure for the documentation.

Run as ``python -m benchmarks.memory`` (extra ``bench``). Programs are compiled on shapes alone and asked for their
temporary buffers; nothing is run, and the figures are exact. ``--json PATH`` writes them, ``--svg PATH`` draws them.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

from t3k.api.problem_shape import ProblemShape
from t3k.kernels.probe_maps import probe_transpose

#: 4 modes, N = 64, n = r = 32, derivatives of order 2, float32.
SHAPE, TUCKER_RANKS, TT_RANKS, ORDER = (64,) * 4, (32,) * 4, (1, 32, 32, 32, 1), 2
PROBES = (100, 1000, 10_000, 100_000)
CHUNKS = (16, 32, 64, 128, 256, 512, 1000)


def _arrays(n_probes: int) -> tuple[Any, Any, Any, Any]:
    problem = ProblemShape(SHAPE, TUCKER_RANKS, TT_RANKS, ORDER, n_probes, 1, jnp.dtype("float32"))
    (frame, _), (ww, _, zz) = problem.cores(), problem.rows(n_probes)
    return zz, ww, ww, frame


def _scratch(fun: Callable[..., Any], args: Any) -> int:
    program: Any = jax.jit(fun).lower(*args).compile()
    return int(program.memory_analysis().temp_size_in_bytes)


def _ours(n_probes: int, chunk: int) -> int:
    def transpose(*args: Any) -> Any:
        return probe_transpose(*args, ORDER, sum_over_probes=True, chunk_size=chunk)

    return _scratch(transpose, _arrays(n_probes))


def _theirs(n_probes: int, chunk: int) -> int:
    import t3toolbox.backend.sampling_derivatives as peer

    zz, ww, pp, frame = _arrays(n_probes)
    return _scratch(
        lambda z, w, p, f: peer.tv_probe_derivatives_transpose(z, w, p, f, ORDER, True, chunk),
        (zz, ww, pp, tuple(frame)),
    )


def draw(figures: dict[str, Any], path: Path) -> None:
    """Two panels: against the probes, and against the chunk size."""
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "t3k"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
    for name, style in (("t3toolbox", "s--"), ("t3k", "o-")):
        left.loglog(figures["probes"], [size / 2**20 for size in figures[name]], style, label=f"{name}, chunks of 100")
    left.set(xlabel="probes", ylabel="scratch, MiB", title="the number of probes")
    left.legend(frameon=False)
    right.plot(figures["chunks"], [size / 2**20 for size in figures["by_chunk"]], "o-", color="C1")
    right.set(xlabel="chunk size", title="the chunk size (t3k, 1000 probes)", xlim=(0, None), ylim=(0, None))
    for ax in (left, right):
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--svg", type=Path, help="where to draw them")
    args = parser.parse_args()
    figures: dict[str, Any] = {"probes": PROBES, "chunks": CHUNKS}
    figures["t3k"] = [_ours(n, 100) for n in PROBES]
    figures["t3toolbox"] = [_theirs(n, 100) for n in PROBES]
    figures["by_chunk"] = [_ours(1000, chunk) for chunk in CHUNKS]
    print("| probes | t3k, MiB | t3toolbox, MiB |\n|---|---|---|")
    for n, ours, theirs in zip(PROBES, figures["t3k"], figures["t3toolbox"], strict=True):
        print(f"| {n} | {ours / 2**20:.1f} | {theirs / 2**20:.1f} |")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    if args.svg:
        draw(figures, args.svg)


if __name__ == "__main__":
    main()
