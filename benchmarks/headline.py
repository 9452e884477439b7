"""The transpose that made t3k: really run, with the process's peak memory.

Run as ``python -m benchmarks.headline``: 6 modes, N = n = r = 128, order 5, float32, on 2 000 probes or ``--probes``.
The library that the literature comes with keeps 221 GiB for it at 32 000 probes.
"""

import argparse
import resource
import time
from typing import Any

import jax

from benchmarks.problems import Point, arrays, chunk
from t3k.kernels.probe_maps import probe_transpose


def _mib(n_bytes: float) -> str:
    return f"{n_bytes / 2**20:.0f} MiB"


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def main() -> None:
    """Makes the arrays, compiles, runs, and tells what each took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--probes", type=int, default=2000)
    point = Point(6, 5, parser.parse_args().probes, 128, 128, 128)
    x, size = arrays(point), chunk(point)
    inputs = x.zz, x.ww, x.pp, x.frame

    def transpose(zz: Any, ww: Any, pp: Any, frame: Any) -> Any:
        return probe_transpose(zz, ww, pp, frame, point.order, sum_over_probes=True, chunk_size=size)

    begin = time.perf_counter()
    program: Any = jax.jit(transpose).lower(*inputs).compile()
    compiled = time.perf_counter()
    gradient = jax.block_until_ready(program(*inputs))
    done = time.perf_counter()
    print(f"modes, order, probes, r, n, N: {tuple(point)}, chunks of at most {size} probes")
    print(f"inputs {_mib(_bytes(inputs))}, gradient {_mib(_bytes(gradient))}")
    print(f"scratch of the program {_mib(program.memory_analysis().temp_size_in_bytes)}")
    print(f"compiled in {compiled - begin:.1f} s, run in {done - compiled:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2**10
    print(f"peak memory of the process, Python and XLA included: {_mib(peak)}")


if __name__ == "__main__":
    main()
