"""Reproducible science: t3k beside its peers on problems of the literature, by error, seconds and memory.

Run as ``python -m benchmarks.science`` (extra ``bench``); ``--only a b`` takes some of the problems, ``--libraries``
some of the libraries. Each problem and library runs in a process of its own, which fits twice, the second time other
data of the same shapes. Prints a Markdown table; ``--json PATH`` writes the figures as well.
"""

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.science_fits import FITS
from benchmarks.science_problems import PROBLEMS, relative_error

#: Problems that are no completion of a whole tensor, which tensorly does not fit.
_SAMPLED = ("d", "e")


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measure(problem: str, library: str) -> dict[str, Any]:
    """Fits twice in this process; the error is the larger of the two on the test data."""
    importlib.import_module(library.split()[0])
    problems, fits, seconds = [PROBLEMS[problem](seed) for seed in (0, 1)], [], []
    before = _peak()
    for each in problems:
        start = time.perf_counter()
        fits.append(FITS[library](each))
        seconds.append(time.perf_counter() - start)
    peak = _peak()
    errors = [relative_error(fit(each.test[0]), each.test[1]) for fit, each in zip(fits, problems, strict=True)]
    figures = {"error": max(errors), "errors": errors, "cold": seconds[0], "warm": seconds[1]}
    return {"problem": problem, "library": library, **figures, "peak": peak, "before": before}


def _apart(problem: str, library: str, limit: float) -> dict[str, Any]:
    """`measure` in a new process, which is ended after `limit` seconds."""
    command = [sys.executable, "-m", "benchmarks.science", "--measure", problem, library]
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    names = {"problem": problem, "library": library}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        return {**names, "failed": f"not done in {limit:.0f} s"}
    except subprocess.CalledProcessError as error:
        return {**names, "failed": error.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _row(figures: dict[str, Any]) -> str:
    names = f"| {figures['problem']} | {figures['library']} "
    if "failed" in figures:
        return f"{names}| {figures['failed']} | | | |"
    return (
        f"{names}| {figures['error']:.1e} | {figures['cold']:.1f} | {figures['warm']:.1f} "
        f"| {figures['peak']:.0f} ({figures['peak'] - figures['before']:.0f}) |"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", default=list(PROBLEMS), choices=PROBLEMS, help="problems")
    parser.add_argument("--libraries", nargs="+", default=list(FITS), choices=FITS)
    parser.add_argument("--measure", nargs=2, help="measure one problem and library in this process, and end")
    parser.add_argument("--limit", type=float, default=60, help="seconds for both fits of a library")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    if args.measure:
        return print(json.dumps(measure(*args.measure)))
    lines = ["| problem | library | test error | cold, s | warm, s | peak memory (above the start's), MB |"]
    lines.append("|---|---|---|---|---|---|")
    rows = []
    print(*lines, sep="\n")
    for problem in args.only:
        for library in args.libraries:
            if problem not in _SAMPLED or not library.startswith("tensorly"):
                rows.append(_apart(problem, library, args.limit))
                lines.append(_row(rows[-1]))
                print(lines[-1], flush=True)
                if args.json:
                    args.json.write_text(json.dumps(rows, indent=1) + "\n")
                    args.json.with_suffix(".md").write_text("\n".join(lines) + "\n")
    return None


if __name__ == "__main__":
    main()
