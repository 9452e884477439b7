"""All benchmarks, one after the other: ``make bench``, or ``python -m benchmarks``."""

import runpy
import sys

SUITES = ("benchmarks.transpose", "benchmarks.algebra", "benchmarks.fits", "benchmarks.jacobians")

if __name__ == "__main__":
    for suite in SUITES:
        print(f"# {suite}", flush=True)
        sys.argv = [suite]
        runpy.run_module(suite, run_name="__main__")
