"""How a Jacobian is computed: mode, chunk and linearization, chosen from measured scratch, and what comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp

from t3k.kernels.auto_chunk import Choice, auto_chunk_size, choose_chunk, tree_bytes
from t3k.kernels.jacobian_blocks import sizes
from t3k.kernels.jacobian_problem import Problem, Request, intermediate_bytes, is_active
from t3k.kernels.jacobian_products import (
    column_norms,
    diagonal,
    gram,
    jacobian_blocks,
    row_norms,
    seeded,
    transposed_times,
)
from t3k.kernels.jacobian_sweep import Sweep, differentiate
from t3k.kernels.scratch import scratch_bytes
from t3k.kernels.types import Array

__all__ = ["Plan", "make_plan", "measured_scratch", "plan_mode", "result_of", "with_seed"]

_PRODUCTS = {
    "jacobian": jacobian_blocks,
    "jtj": gram,
    "row_norms": row_norms,
    "column_norms": column_norms,
    "diagonal": diagonal,
}


class Plan(NamedTuple):
    """A mode, a chunk (None for dense), whether to linearize once, and the choice that led to it."""

    mode: str
    chunk: int | None
    linearize: bool
    choice: Choice


def result_of(sweep: Sweep, request: Request, mode: str, chunk: int | None) -> Any:
    """The product asked for, in blocks or leaves of the active leaves."""
    if request.product == "jtr":
        return transposed_times(sweep, sweep.ins if sweep.seed is None else sweep.seed)
    if sweep.seed is not None:
        return seeded(sweep, mode, chunk)
    return _PRODUCTS[request.product](sweep, mode, chunk)


def plan_mode(request: Request, xs: Sequence[Any], ys: Sequence[Any]) -> str:
    """Forward where the input is no larger than the output, else reverse, unless dtypes allow only one of them."""
    if request.mode != "auto":
        return request.mode
    if not request.holomorphic:
        if any(not jnp.issubdtype(x.dtype, jnp.floating) for x in xs):
            return "rev"
        if any(not jnp.issubdtype(y.dtype, jnp.floating) for y in ys):
            return "fwd"
    n, m = sum(sizes(xs)), sum(sizes(ys))
    if request.product == "jtj":  # a column of J costs a push and a pull in forward mode, a row one pull
        return "fwd" if 2 * n <= m else "rev"
    return "fwd" if n <= m else "rev"


def make_plan(problem: Problem, request: Request, mode: str, seed: list[Array] | None) -> Plan:
    """Chooses the chunk and the linearization for a problem whose outputs are known."""
    assert problem.ys is not None
    if request.product == "jtr":
        return Plan("rev", None, True, Choice(None, "one pullback"))
    ins = [k for k in (problem.xs if mode == "fwd" else problem.ys) if is_active(k)]
    n = sum(sizes(ins)) if seed is None else seed[0].shape[0]
    chunk = request.chunk_size
    if problem.jaxpr is None:
        rule = "by rule: fun needs concrete values, so it cannot be measured"
        chosen = auto_chunk_size(n) if chunk == "auto" else chunk
        return Plan(mode, chosen, True, Choice(chosen, rule if chunk == "auto" else "as asked"))  # type: ignore[arg-type]
    bound = intermediate_bytes(problem.jaxpr)
    resident = _resident_bytes(problem, request, mode, seed)
    linearize = _linearize_first(request, bound, resident)
    if chunk != "auto":
        choice = Choice(chunk, "as asked")  # type: ignore[arg-type]
    else:
        # A tangent's scratch is bounded by the intermediates and one row of the result; reverse mode has both ways.
        per_row = 2 * bound + 2 * tree_bytes(problem.xs) + 2 * tree_bytes(problem.ys)
        choice = choose_chunk(
            lambda width: measured_scratch(problem, request, mode, width, linearize, seed),
            n,
            resident=resident,
            per_row=per_row,
            budget=request.budget,
        )
    if request.linearize == "auto" and not linearize:
        linearize = _linearize_measured(problem, request, mode, choice.chunk, seed)
    return Plan(mode, choice.chunk, linearize, choice)


def _linearize_first(request: Request, bound: int, resident: int) -> bool:
    """Whether to linearize once, where that can be told without compiling: the residuals are small, or it is asked."""
    if request.linearize != "auto":
        return bool(request.linearize)
    return bound <= max(resident, 2**22) and (request.budget is None or bound <= request.budget // 4)


def _linearize_measured(
    problem: Problem, request: Request, mode: str, chunk: int | None, seed: list[Array] | None
) -> bool:
    """Linearizing once is faster, so it is done unless recomputing saves a quarter of the scratch."""
    try:
        once, anew = (measured_scratch(problem, request, mode, chunk, flag, seed) for flag in (True, False))
    except Exception:  # noqa: BLE001 - a hint must not break what it hints at
        return True
    return once <= anew / 0.75 and (request.budget is None or once <= request.budget)


def measured_scratch(
    problem: Problem, request: Request, mode: str, chunk: int | None, linearize: bool, seed: list[Array] | None
) -> int:
    """The bytes of scratch of the compiled product."""
    name = (str(problem.jaxpr), request.product, mode, seed is not None)
    return scratch_bytes(
        _kernel(problem, request, mode), problem.consts, problem.primals, seed or [], key=name, chunk=chunk,
        linearize=linearize,
    )  # fmt: skip


def _kernel(problem: Problem, request: Request, mode: str) -> Any:
    def kernel(
        consts: list[Array], primals: list[Array], seed: list[Array], *, chunk: int | None, linearize: bool
    ) -> Any:
        sweep = differentiate(problem, consts, primals, mode, linearize)
        return result_of(with_seed(sweep, seed or None), request, mode, chunk)

    return kernel


def with_seed(sweep: Sweep, seed: list[Array] | None) -> Sweep:
    """The sweep over the directions of a seed, on a leading axis, in the dtypes of what goes in."""
    if seed is None:
        return sweep
    return replace(sweep, seed=[s.astype(like.dtype) for s, like in zip(seed, sweep.ins, strict=True)])


def _resident_bytes(problem: Problem, request: Request, mode: str, seed: list[Array] | None) -> int:
    """The bytes of the inputs and the result."""
    assert problem.ys is not None
    n, x = sum(sizes(problem.xs)), tree_bytes(problem.xs)
    m, y = sum(sizes(problem.ys)), tree_bytes(problem.ys)
    if seed is not None:
        out = seed[0].shape[0] * (y if mode == "fwd" else x)
    elif request.product == "jacobian":
        out = n * y if mode == "fwd" else m * x
    else:
        out = {"jtj": n * x, "row_norms": y, "column_norms": x}.get(request.product, y)
    return out + x + tree_bytes(problem.consts) + tree_bytes(seed or [])
