"""Where the rows of a pytree of arrays are: one axis for each leaf, given as a tree prefix."""

from typing import Any

import jax

from t3k.kernels.stored_arrays import flatten_stored

__all__ = ["leaf_axes"]


def leaf_axes(axes: Any, xs: Any) -> list[int | None]:
    """One axis >= 0 per leaf of `xs`, from a tree prefix; None marks what has no rows.

    Example:
      >>> import numpy as np
      >>> leaf_axes((-1, None), ({"x": np.ones((2, 3)), "y": np.ones(4)}, np.ones(5)))
      [1, 0, None]
    """
    spread: list[int | None] = []

    def extend(axis: int | None, sub: Any) -> None:
        spread.extend(None if axis is None else axis % leaf.ndim for leaf in flatten_stored(sub)[0])

    jax.tree.map(extend, axes, xs, is_leaf=lambda axis: axis is None)
    return spread
