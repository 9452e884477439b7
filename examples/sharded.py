"""Fits a tensor to probes that are spread over devices, and shows that the devices exchange gradients only.

Run with ``python examples/sharded.py``: eight virtual devices of this machine's CPU stand for eight accelerators. With
``--processes 2`` the same fit runs in two processes that talk over the loopback interface, as it would on two machines:
each of them draws and keeps only its own probes.
"""

import argparse
import os
import socket
import subprocess
import sys

DEVICES = 8


def settings() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--probes", type=int, default=640, help="over all devices (default: %(default)s)")
    parser.add_argument("--size", type=int, default=20, help="of each of the three modes (default: %(default)s)")
    parser.add_argument("--rank", type=int, default=4, help="all ranks (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="to share the devices between (default: %(default)s)")
    parser.add_argument("--process", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--coordinator", default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


def launch(args: argparse.Namespace) -> int:
    """Starts this script once per process; the first of them coordinates. Returns the exit code."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, __file__, *sys.argv[1:], "--coordinator", coordinator]
    running = [subprocess.Popen([*command, "--process", str(i)]) for i in range(args.processes)]
    return max(process.wait() for process in running)


def fit(args: argparse.Namespace) -> None:
    """Draws this process's probes, spreads them over the devices, and fits."""
    import jax
    import numpy as np

    import t3k

    jax.config.update("jax_enable_x64", True)
    if args.processes > 1:
        jax.distributed.initialize(args.coordinator, args.processes, args.process)
    talks = jax.process_index() == 0

    shape, ranks, bonds = (args.size,) * 3, (args.rank,) * 3, (1, args.rank, args.rank, 1)
    truth = t3k.TuckerTensorTrain.randn(jax.random.key(0), shape, ranks, bonds)
    mine = np.random.default_rng(jax.process_index())
    ww, pp = (
        tuple(mine.standard_normal((args.probes // args.processes, size)) / size**0.5 for size in shape)
        for _ in range(2)
    )
    data = truth.probe_derivatives(ww, pp, 1)

    sample, data = t3k.shard_probes("probe_derivatives", (ww, pp), data)
    start = t3k.TuckerTensorTrain.zeros(shape, ranks, bonds)
    fitted, stats = t3k.newton_cg(t3k.MANIFOLD, "probe_derivatives", sample, data, start, order=1)
    error = float((fitted - truth).norm() / truth.norm())

    transpose = jax.jit(t3k.tv_probe_derivatives_transpose, static_argnames=("order", "sum_over_probes", "sharding"))
    rows = jax.sharding.NamedSharding(sample[0][0].sharding.mesh, jax.sharding.PartitionSpec("probes"))
    program = transpose.lower(data, *sample, fitted.frame(), order=1, sum_over_probes=True, sharding=rows).compile()
    text, memory = program.as_text(), program.memory_analysis()
    if talks:
        where = f"{jax.device_count()} devices of {jax.process_count()} process{'es' if args.processes > 1 else ''}"
        print(f"{sample[0][0].shape[0]} probes on {where}, {len(sample[0][0].sharding.device_set)} shards")
        print(f"fit: {stats}")
        print(f"relative error of the tensor: {error:.1e}")
        print(
            f"compiled J^T: {text.count(' all-gather(')} all-gathers, {text.count(' all-reduce(')} all-reduce, "
            f"{memory.temp_size_in_bytes / 2**20:.2f} MiB of scratch per device"
        )


def main() -> None:
    """Runs the fit in this process, or starts others that do."""
    args = settings()
    local = DEVICES // args.processes
    os.environ["XLA_FLAGS"] = (
        f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={local}".strip()
    )
    if args.processes > 1 and args.process is None:
        sys.exit(launch(args))
    fit(args)


if __name__ == "__main__":
    main()
