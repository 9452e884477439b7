"""All benchmarks, one after the other, and the page of their figures: ``make bench``, or ``python -m benchmarks``."""

import runpy
import sys

from benchmarks import report

SUITES = ("memory", "transpose", "chunks", "fits", "algebra", "jacobians", "science")


def main() -> None:
    """Each suite in turn; what it prints is what it writes."""
    report.FIGURES.mkdir(exist_ok=True)
    for suite in SUITES:
        print(f"# benchmarks.{suite}", flush=True)
        sys.argv = [suite, "--json", str(report.FIGURES / f"{suite}.json")]
        if suite == "memory":
            sys.argv += ["--svg", str(report.DOCS / "_static" / "memory.svg")]
        runpy.run_module(f"benchmarks.{suite}", run_name="__main__")
        report.record_machine(suite)
    report.main()


if __name__ == "__main__":
    main()
