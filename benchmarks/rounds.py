"""Timing by turns: every program is called once a round, so that whatever else the machine does falls on all."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

__all__ = ["Timing", "geometric_mean", "interleave"]


class Timing(NamedTuple):
    """Seconds of one program: the fastest round and the median."""

    fastest: float
    median: float


def interleave(programs: Mapping[str, Callable[[], Any]], rounds: int = 9) -> dict[str, Timing]:
    """Calls each program once to compile it, then `rounds` times by turns."""
    for program in programs.values():
        jax.block_until_ready(program())
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            jax.block_until_ready(program())
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(min(times), statistics.median(times)) for name, times in seconds.items()}


def geometric_mean(values: list[float]) -> float:
    """The geometric mean of positive numbers."""
    return statistics.geometric_mean(values)
