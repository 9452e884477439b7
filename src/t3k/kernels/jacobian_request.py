"""From the keywords of the public functions to a `Request`, with the same checks for all of them."""

from typing import Any

from t3k.kernels.chunking import check_chunk_size
from t3k.kernels.jacobian_problem import Request, normalize_argnums
from t3k.kernels.scratch import check_memory

__all__ = ["make_request"]


def make_request(
    name: str,
    product: str,
    mode: Any,
    argnums: Any,
    chunk_size: Any,
    memory: Any,
    linearize: Any,
    **flags: bool,
) -> Request:
    """A checked request.

    Raises:
      TypeError: for a `chunk_size`, `memory` or `argnums` of a wrong type.
      ValueError: for a bad `chunk_size`, `memory`, `mode` or `linearize`, or `memory` with a given chunk size.
    """
    if mode not in ("auto", "fwd", "rev"):
        raise ValueError(f'mode must be "auto", "fwd" or "rev"; got {mode!r}')
    if not (linearize is True or linearize is False or linearize == "auto"):
        raise ValueError(f'linearize must be True, False or "auto"; got {linearize!r}')
    chunk = check_chunk_size(chunk_size, auto=True)
    budget = check_memory(memory, chunk)
    return Request(product, mode, name, normalize_argnums(argnums), chunk, budget, linearize, **flags)
