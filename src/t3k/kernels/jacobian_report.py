"""`chunk_report`: what would be done for a Jacobian, what it costs, and why."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from t3k.kernels.auto_chunk import tree_bytes
from t3k.kernels.jacobian_blocks import sizes
from t3k.kernels.jacobian_call import Derivative, plan_traced, split_arguments
from t3k.kernels.jacobian_plan import measured_scratch
from t3k.kernels.jacobian_problem import Problem, check_inputs, is_active, trace
from t3k.kernels.jacobian_request import make_request

__all__ = ["ChunkReport", "chunk_report"]


class ChunkReport(NamedTuple):
    """The answer of `chunk_report`; bytes are those of XLA's analysis of the compiled program, None is unknown.

    Attributes:
      mode: ``"fwd"`` or ``"rev"``.
      chunk_size: columns (forward) or rows (reverse) at a time; None for all at once.
      n_directions: how many there are.
      shape: (m, n), elements of the output and of the input.
      linearize: whether one linearization serves all chunks.
      scratch_bytes: measured scratch of the program that would run, besides inputs and result.
      dense_scratch_bytes: measured scratch with all directions at once.
      base_bytes: what no chunk size gets below, from the line through the scratch at two chunk sizes.
      bytes_per_direction: what one more direction at a time costs, from the same line.
      result_bytes: of J (or of the product asked for).
      budget_bytes: what `memory` allowed.
      reason: why this chunk was chosen.
    """

    mode: str
    chunk_size: int | None
    n_directions: int
    shape: tuple[int, int]
    linearize: bool
    scratch_bytes: int
    dense_scratch_bytes: int | None
    base_bytes: int | None
    bytes_per_direction: int | None
    result_bytes: int
    budget_bytes: int | None
    reason: str

    def __str__(self) -> str:
        what = "columns by forward mode" if self.mode == "fwd" else "rows by reverse mode"
        number = "all" if self.chunk_size is None else str(self.chunk_size)
        once = "linearized once" if self.linearize else "linearized anew in every chunk"
        lines = [
            f"{self.n_directions} {what}, {number} at a time, {once} ({self.reason})",
            f"result {_text(self.result_bytes)}, scratch {_text(self.scratch_bytes)}",
        ]
        if self.dense_scratch_bytes is not None:
            lines.append(f"scratch with all at once {_text(self.dense_scratch_bytes)}")
        if self.base_bytes is not None and self.bytes_per_direction is not None:
            lines.append(f"scratch is about {_text(self.base_bytes)} + {_text(self.bytes_per_direction)} a direction")
        return "\n".join(lines)


def _text(n_bytes: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} B"


def chunk_report(fun: Callable[..., Any], *args: Any, **options: Any) -> ChunkReport:
    """Says how the Jacobian of `fun` would be computed at arguments like these, without computing it.

    Args:
      fun: what a builder such as `chunked_jacfwd` or `chunked_jtj` returned, or a function, for which
        `chunked_jacobian` is meant.
      *args: its arguments; `jax.ShapeDtypeStruct` will do in the place of arrays.
      **options: for a function, keywords of `chunked_jacobian`; for a derivative, keyword arguments of its function.

    Returns:
      A `ChunkReport`; print it for a summary.

    Raises:
      TypeError: as the derivative itself would.
      ValueError: as the derivative itself would.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> x = jax.ShapeDtypeStruct((20_000,), jnp.float32)
      >>> report = chunk_report(lambda x: jnp.stack([jnp.sum(jnp.sin(x)), jnp.sum(x**2)]), x)
      >>> report.mode, report.chunk_size, report.shape
      ('rev', None, (2, 20000))
    """
    derivative = fun if isinstance(fun, Derivative) else _of_function(fun, options)
    kwargs = options if isinstance(fun, Derivative) else {}
    request = derivative.request
    static, x_leaves, arrays = split_arguments(request, args, kwargs, level=0)
    check_inputs(request, "rev" if request.mode == "auto" else request.mode, x_leaves)
    reports: list[ChunkReport] = []

    def look(x_leaves: list[Any], arrays: list[Any]) -> None:
        x = jax.tree.unflatten(static.x_structure, x_leaves)
        problem = trace(derivative.fun, static.call_with(arrays), x, request)
        reports.append(_report(problem, derivative))

    jax.eval_shape(look, x_leaves, arrays)
    return reports[0]


def _of_function(fun: Callable[..., Any], options: dict[str, Any]) -> Derivative:
    keywords = {"argnums": 0, "mode": "auto", "chunk_size": "auto", "memory": None, "linearize": "auto", **options}
    return Derivative(fun, make_request("chunked_jacobian", "jacobian", **keywords))


def _report(problem: Problem, derivative: Derivative) -> ChunkReport:
    assert problem.ys is not None
    request = derivative.request
    seeds, plan = plan_traced(problem, request, derivative.seed)
    n, m = (sum(sizes([k for k in kinds if is_active(k)])) for kinds in (problem.xs, problem.ys))
    line = plan.choice.line
    per_element = tree_bytes(problem.ys) / max(m, 1), tree_bytes(problem.xs) / max(n, 1)
    directions = (n if plan.mode == "fwd" else m) if seeds is None else seeds[0].shape[0]
    results = {
        "jtj": n * n * per_element[1],
        "row_norms": m * per_element[0],
        "column_norms": n * per_element[1],
        "diagonal": m * per_element[0],
        "jtr": n * per_element[1],
    }
    out = m * per_element[0] if plan.mode == "fwd" else n * per_element[1]
    return ChunkReport(
        mode=plan.mode,
        chunk_size=plan.chunk,
        n_directions=directions,
        shape=(m, n),
        linearize=plan.linearize,
        scratch_bytes=measured_scratch(problem, request, plan.mode, plan.chunk, plan.linearize, seeds),
        dense_scratch_bytes=plan.choice.dense,
        base_bytes=None if line is None else round(line.base),
        bytes_per_direction=None if line is None else round(line.per_row),
        result_bytes=round(results.get(request.product, directions * out)),
        budget_bytes=request.budget,
        reason=plan.choice.reason,
    )
