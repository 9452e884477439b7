"""Walks along a train: one step per core, written once, for cores of any shapes.

A sweep scans every run of three or more equal-shaped cores with `jax.lax.scan` and unrolls the rest, so that compile
time grows with the number of distinct shapes and not with the number of modes, while nothing is padded or masked.

*Items* are what a step sees of each core: any pytree, one per mode. Grouping them by runs costs a copy, so code that
sweeps often over the same cores (once per chunk of probes, say) groups them once, outside its loop::

    runs = find_runs(tt_cores)
    grouped = stack_runs(runs, tt_cores)
    carry, outputs = sweep(step, carry, runs, grouped)      # outputs are grouped as well
    outputs = unstack_runs(runs, outputs)
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["MIN_SCAN", "Runs", "find_runs", "map_cores", "stack_runs", "sweep", "sweep_cores", "unstack_runs"]

#: Half-open ranges of modes, in order, that cover the train; one longer than a mode is scanned.
Runs = tuple[tuple[int, int], ...]
#: The shortest run that is scanned: below it the loop costs more than the copies of its body.
MIN_SCAN = 3
#: The shortest run whose modes are mapped over by one operation, for a small program: each by itself is faster.
MIN_BATCH = 12


def find_runs(items: Sequence[Any]) -> Runs:
    """Splits the modes into runs of items with equal shapes, dtypes and tree structure.

    Example:
      >>> import jax.numpy as jnp
      >>> find_runs([jnp.ones(n) for n in (1, 4, 4, 4, 2, 2)])
      ((0, 1), (1, 4), (4, 5), (5, 6))
    """

    def signature(item: Any) -> Any:
        leaves, structure = jax.tree.flatten(item)
        return structure, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)

    runs, start = [], 0
    for _, group in groupby(map(signature, items)):
        stop = start + len(list(group))
        runs += [(start, stop)] if stop - start >= MIN_SCAN else [(i, i + 1) for i in range(start, stop)]
        start = stop
    return tuple(runs)


def stack_runs(runs: Runs, items: Sequence[Any]) -> tuple[Any, ...]:
    """Groups one item per mode by runs: those of a scanned run are stacked on a leading axis."""
    return tuple(
        items[start] if stop - start == 1 else jax.tree.map(lambda *xs: jnp.stack(xs), *items[start:stop])
        for start, stop in runs
    )


def unstack_runs(runs: Runs, grouped: Sequence[Any]) -> tuple[Any, ...]:
    """The inverse of `stack_runs`: one item per mode."""
    items: list[Any] = []
    for (start, stop), group in zip(runs, grouped, strict=True):
        if stop - start == 1:
            items.append(group)
        else:
            items += [jax.tree.map(lambda x, j=j: x[j], group) for j in range(stop - start)]
    return tuple(items)


def sweep(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    runs: Runs,
    grouped: Sequence[Any],
    *,
    reverse: bool = False,
    settle: Callable[[Any, Any], Any] | None = None,
) -> tuple[Any, tuple[Any, ...]]:
    """Applies ``carry, output = step(carry, item)`` along the train, from the right if `reverse`.

    Args:
      step: pure function of the carry and one item. Along a scanned run the carry keeps its shape.
      carry: what enters the first core of the sweep.
      runs: from `find_runs`.
      grouped: items, from `stack_runs`.
      reverse: sweep from the last mode to the first.
      settle: ``carry = settle(carry, items)`` before a scanned run, where the carry must keep its shape.

    Returns:
      What leaves the last core of the sweep, and the outputs in mode order, grouped like the items.
    """
    outputs = []
    walk = list(zip(runs, grouped, strict=True))
    for (start, stop), group in reversed(walk) if reverse else walk:
        if stop - start == 1:
            carry, output = step(carry, group)
        else:
            carry, output = jax.lax.scan(step, settle(carry, group) if settle else carry, group, reverse=reverse)
        outputs.append(output)
    return carry, tuple(reversed(outputs) if reverse else outputs)


def sweep_cores(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, items: Sequence[Any], *, reverse: bool = False
) -> tuple[Any, tuple[Any, ...]]:
    """`sweep` over items that are not grouped yet; returns one output per mode."""
    runs = find_runs(items)
    carry, outputs = sweep(step, carry, runs, stack_runs(runs, items), reverse=reverse)
    return carry, unstack_runs(runs, outputs)


def map_cores(fun: Callable[..., Any], runs: Runs, *grouped: Sequence[Any]) -> tuple[Any, ...]:
    """Applies `fun` to the items of every mode, those of a long run all at once; items and results are grouped.

    Example:
      >>> import jax.numpy as jnp
      >>> cores = [jnp.ones((2, 2))] * 3
      >>> runs = find_runs(cores)
      >>> [x.shape for x in map_cores(lambda core: core[0], runs, stack_runs(runs, cores))]
      [(3, 2)]
    """
    return tuple(
        fun(*items) if stop - start == 1 else _map_run(fun, stop - start, items)
        for (start, stop), *items in zip(runs, *grouped, strict=True)
    )


def _map_run(fun: Callable[..., Any], length: int, items: Sequence[Any]) -> Any:
    if length >= MIN_BATCH:
        return jax.vmap(fun)(*items)
    results = [fun(*jax.tree.map(lambda x, j=j: x[j], items)) for j in range(length)]
    return jax.tree.map(lambda *xs: jnp.stack(xs), *results)
