"""Fits a tensor to probes that stay in files, and shows that memory does not grow with them.

Run with ``python examples/larger_than_memory.py --mib 4000`` to give it more probes than you want to have in memory. It
writes them to a temporary folder first, as files of numpy; datasets of h5py or zarr may be passed in the same way.
"""

import argparse
import resource
import tempfile
from pathlib import Path

import jax
import numpy as np

import t3k

SHAPE, RANKS, BONDS = (64, 64, 64), (4, 4, 4), (1, 4, 4, 1)
ORDER, BLOCK = 1, 8192


def settings() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mib", type=int, default=256, help="size of all files together (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=12, help="Newton iterations at the most")
    parser.add_argument("--folder", type=Path, default=None, help="where to write (default: a temporary folder)")
    return parser.parse_args()


def peak_mib() -> float:
    """The most memory that this process has had (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(folder: Path, truth: t3k.TuckerTensorTrain, n_probes: int) -> None:
    """Draws probes and directions and measures `truth` with them, a block at a time."""
    rng = np.random.default_rng(0)
    for i, size in enumerate(SHAPE):
        for name, lead in (("ww", ()), ("pp", ()), ("data", (ORDER + 1,))):
            np.lib.format.open_memmap(folder / f"{name}{i}.npy", "w+", np.float32, (*lead, n_probes, size))
    for start in range(0, n_probes, BLOCK):
        rows = slice(start, min(start + BLOCK, n_probes))
        ww, pp = (tuple(rng.standard_normal((BLOCK, N), np.float32) / N**0.5 for N in SHAPE) for _ in range(2))
        data = truth.probe_derivatives(ww, pp, ORDER)
        for name, train in (("ww", ww), ("pp", pp), ("data", data)):
            for i, x in enumerate(train):
                # Opened anew for each block, since mapped pages count as memory.
                file = np.lib.format.open_memmap(folder / f"{name}{i}.npy", "r+")
                file[..., rows, :] = np.asarray(x)[..., : rows.stop - start, :]


def main() -> None:
    """Writes, fits and reports."""
    args = settings()
    n_probes = args.mib * 2**20 // (4 * sum(SHAPE) * (2 + ORDER + 1))
    truth = t3k.TuckerTensorTrain.randn(jax.random.key(0), SHAPE, RANKS, BONDS)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        write(folder, truth, n_probes)
        ww, pp, data = (
            tuple(np.load(folder / f"{name}{i}.npy", mmap_mode="r") for i in range(len(SHAPE)))
            for name in ("ww", "pp", "data")
        )
        size = sum(x.nbytes for train in (ww, pp, data) for x in train) / 2**20
        print(f"{n_probes} probes in files of {size:.0f} MiB; this process has needed {peak_mib():.0f} MiB so far")
        start = t3k.TuckerTensorTrain.zeros(SHAPE, RANKS, BONDS)
        fitted, stats = t3k.newton_cg(
            t3k.MANIFOLD, "probe_derivatives", (ww, pp), data, start, order=ORDER, max_iterations=args.iterations
        )
        print(f"fit: {stats}")
        print(f"relative error of the tensor: {float((fitted - truth).norm() / truth.norm()):.1e}")
        print(f"peak memory: {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main()
