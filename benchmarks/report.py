"""The figures of all benchmarks as a page of the documentation.

Run as ``python -m benchmarks.report``: it reads ``docs/figures/*.json``, which the suites write, and writes
``docs/benchmarks.md``. ``make bench`` runs the suites first.
"""

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.rounds import geometric_mean

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = DOCS / "figures"

#: What the operations of `benchmarks.transpose` are called on the page.
NAMES = {
    "transpose": "Jᵀ of probes, summed",
    "transpose_kept": "Jᵀ of probes, kept",
    "jacobian": "J of probes",
    "gauss_newton": "Gauss-Newton product of probes",
    "assemblies": "both assemblies alone",
    **{
        f"{kind}_{operation}": f"{symbol} of entries" if kind == "entries" else f"{symbol} of applies"
        for kind in ("apply", "entries")
        for operation, symbol in (("transpose", "Jᵀ"), ("jacobian", "J"), ("gauss_newton", "Gauss-Newton product"))
    },
}


def record_machine(suite: str) -> None:
    """Writes down what the figures of a suite were measured on."""
    path = FIGURES / "machine.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, suite: machine()}, indent=1) + "\n")


def machine() -> dict[str, str]:
    """What figures are measured on."""
    cpu = Path("/proc/cpuinfo")
    models = [line.split(":")[1].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
    versions = {}
    for name in ("jax", "t3toolbox", "solvax", "tensorly"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()}, Python {platform.python_version()}",
        **versions,
    }


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def sampling(rows: list[dict[str, Any]]) -> str:
    """J^T point by point, and a line for every operation."""
    transposes = [row for row in rows if row["operation"] == "transpose"]
    points = [
        [
            str(tuple(row["point"])),
            f"{row['t3k_ms']:.1f}",
            f"{row['peer_ms']:.1f}",
            f"{row['ratio_fastest']:.1f}",
            f"{row['ratio_median']:.1f}",
            f"{row['ratio_vjp']:.1f}",
            f"{row['of_limit']:.0%}",
        ]
        for row in transposes
    ]
    summary = []
    for operation, name in NAMES.items():
        ratios = [row["ratio_fastest"] for row in rows if row["operation"] == operation]
        if ratios:
            summary.append([name, f"{geometric_mean(ratios):.1f}", f"{min(ratios):.1f}", f"{max(ratios):.1f}"])
    head = [
        "modes, order, probes, r, n, N",
        "t3k, ms",
        "t3toolbox, ms",
        "ratio",
        "of medians",
        "to vjp",
        "of the limit",
    ]
    return f"""## Maps of samples

Times of the fastest of nine rounds; ratios above 1 are in t3k's favour. t3toolbox is taken at the better of its two
layouts and the best of several chunk sizes; *vjp* is what one would write without a transpose, `jax.vjp` of the forward
map. The *limit* is as many floating-point operations in plain matrix products of the same shapes: t3k can be above it
where it needs fewer, since jets are as long as their degree and no longer.

{_table(head, points)}

All operations on the same problems, ratios of the fastest:

{_table(["operation", "geometric mean", "lowest", "highest"], summary)}

`python -m benchmarks.transpose`"""


def algebra(rows: list[dict[str, Any]]) -> str:
    """A line for every operation on tensors."""
    lines = []
    for operation in dict.fromkeys(row["operation"] for row in rows):
        line = [operation]
        for several in (False, True):
            chosen = [row for row in rows if row["operation"] == operation and (row["batch"] > 1) == several]
            ratios = [row["ratio_fastest"] for row in chosen]
            line += [f"{geometric_mean(ratios):.1f}", f"{min(ratios):.1f}"] if ratios else ["", ""]
        lines.append(line)
    sizes = {several: len({str(row["point"]) for row in rows if (row["batch"] > 1) == several}) for several in (0, 1)}
    head = ["operation", "one tensor", "lowest", "stack of 64", "lowest"]
    return f"""## Operations on tensors

Ratios of the fastest of nine rounds, jitted and warm on either side: geometric mean and lowest over {sizes[0]} sizes of
tensors, and {sizes[1]} of stacks.

{_table(head, lines)}

`python -m benchmarks.algebra`"""


def fits(rows: list[dict[str, Any]]) -> str:
    """One large fit, and many small ones."""
    one = [
        [row["name"], f"{row['cold']:.1f}", f"{row['warm']:.2f}", f"{row['loss']:.1e}"]
        for row in rows
        if row["fit"] == "one"
    ]
    many = [[row["name"], f"{row['warm']:.1f}"] for row in rows if row["fit"] == "many"]
    return f"""## Fits

One fit of 4 modes, N = 64, n = r = 8, to 1000 probes with derivatives of order 2: t3toolbox takes 15 Newton steps, and
t3k as many as it needs for a loss that is no higher. Cold is the first fit of a process.

{_table(["", "cold, s", "warm, s", "loss"], one)}

64 small fits, `t3k.fit_many` against a loop:

{_table(["", "s"], many)}

`python -m benchmarks.fits`"""


def jacobians(rows: list[dict[str, Any]]) -> str:
    """The cases of `benchmarks.jacobians`."""
    lines = []
    for row in rows:
        fastest = {name: min(times) for name, times in row["seconds"].items()}
        scratch = row["scratch_bytes"]
        sizes = [f"{scratch[name] / 1e6:.1f}" if name in scratch else "" for name in ("jax", "solvax", "t3k")]
        ratios = [f"{fastest[name] / fastest['t3k']:.1f}" for name in ("jax", "solvax")]
        lines.append([row["case"], f"{1e3 * fastest['t3k']:.2f}", *ratios, *sizes])
    head = ["case", "t3k, ms", "jax / t3k", "solvax / t3k", "jax, MB", "solvax, MB", "t3k, MB"]
    return f"""## Jacobians

Times of the fastest round, float64, and the scratch of the compiled programs.

{_table(head, lines)}

`python -m benchmarks.jacobians`"""


def chunks(figures: dict[str, Any]) -> str:
    """What "auto" costs against the best chunk, and compile times."""
    operations = {"transpose": NAMES["transpose"], "jacobian": NAMES["jacobian"], "gauss_newton": NAMES["gauss_newton"]}
    lines = []
    for operation, name in operations.items():
        costs = [row["auto_to_best"] for row in figures["chunks"] if row["operation"] == operation]
        lines.append([name, f"{geometric_mean(costs):.2f}", f"{max(costs):.2f}"])
    compiled = [[str(row["modes"]), str(row["order"]), f"{row['seconds']:.1f}"] for row in figures["compile"]]
    return f"""## Chunks and compile time

Time at `chunk_size="auto"` over that at the best of the chunks 32, 64, 128, 256, 512 and all rows, on the same
problems; the best is the luckiest of up to seven timings, so that 1.05 to 1.1 may be chance.

{_table(["operation", "geometric mean", "highest"], lines)}

Seconds to trace and compile Jᵀ, all but the outer cores being of equal shapes:

{_table(["modes", "order", "s"], compiled)}

`python -m benchmarks.chunks`"""


SECTIONS: dict[str, Callable[[Any], str]] = {
    "transpose": sampling,
    "chunks": chunks,
    "fits": fits,
    "algebra": algebra,
    "jacobians": jacobians,
}


def page(figures: dict[str, Any], where: dict[str, dict[str, str]]) -> str:
    """The whole page; `where` tells of each suite the machine it ran on."""
    begin = """# Benchmarks

Every library gets the same arrays in the same process, and is called by turns, so that whatever else the machine does
falls on all of them. `make bench` measures all this anew on your machine and writes this page; all figures are in
`docs/figures`."""
    parts = [
        begin,
        *(
            f"{section(figures[name])}, measured on: " + "; ".join(f"{k} {v}" for k, v in where[name].items()) + "."
            for name, section in SECTIONS.items()
            if name in figures
        ),
        "Whole problems, with errors and memory, are in [Science](science.md).",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Writes the page."""
    figures = {path.stem: json.loads(path.read_text()) for path in sorted(FIGURES.glob("*.json"))}
    where = figures.pop("machine")
    (DOCS / "benchmarks.md").write_text(page(figures, where))


if __name__ == "__main__":
    main()
