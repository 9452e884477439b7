"""What to know of measurements before a fit: `diagnose`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from t3k.api import validate
from t3k.api.kinds import as_kind
from t3k.kernels.ranks import manifold_dimension

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; `print` shows it, warnings first.

    `equations` are the finite numbers in the data, `parameters` the free ones of a tensor of the ranks. `not_finite`
    names every array that holds NaN or infinity, how many, and where the first is. `duplicates` are samples that repeat
    an earlier one. `scales` are the root mean squares of the data, in the layout of `ErrorTable.errors`.
    """

    equations: int
    parameters: int
    not_finite: tuple[str, ...]
    duplicates: int
    scales: Any

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against a fit as it stands, in sentences."""
        found = [f"{what}; leave it out by sample_weight." for what in self.not_finite]
        if self.equations < self.parameters:
            few = f"{self.equations} equations for {self.parameters} free parameters: many tensors fit equally well."
            found.append(few)
        if self.duplicates:
            found.append(f"{self.duplicates} samples repeat earlier ones and tell nothing new about the tensor.")
        positive = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(self.scales)])
        positive = positive[positive > 0]
        if len(positive) and positive.max() > 1e3 * positive.min():
            ratio = positive.max() / positive.min()
            found.append(
                f"The data differ in scale by {ratio:.0e} from part to part; weight them, or the largest decide."
            )
        return tuple(found)

    def __str__(self) -> str:
        """Warnings, counts and scales."""
        lines = list(self.warnings) or ["Nothing speaks against a fit."]
        lines.append(f"{self.equations} equations, {self.parameters} free parameters")
        for i, scale in enumerate(jax.tree.leaves(self.scales)):
            lines.append(f"scale {i}: " + "  ".join(f"{value:.2e}" for value in np.ravel(scale)))
        return "\n".join(lines)


def diagnose(
    kind: Any,
    sample: Any,
    data: Any,
    shape: Sequence[int],
    tucker_ranks: Sequence[int],
    tt_ranks: Sequence[int],
    *,
    order: int | None = None,
) -> Diagnosis:
    """Looks at measurements before a fit: are there enough, are they finite, do they repeat, how large are they.

    Nothing is compiled, and nothing is refused for its values.

    Args:
      kind: the kind of measurement, by name or as an object, as in `newton_cg`.
      sample: where the tensor was measured.
      data: what was measured.
      shape: (N_0, .., N_{d-1}).
      tucker_ranks: that are to be fitted.
      tt_ranks: likewise, (r_0, .., r_d).
      order: the highest derivative, where the kind is a name and has them.

    Returns:
      A `Diagnosis`.

    Raises:
      TypeError, ValueError: for an unknown kind, or ranks that do not fit.

    Example:
      >>> import t3k
      >>> found = t3k.diagnose("entries", ([0, 1, 1], [0, 2, 2]), [1.0, float("nan"), 2.0], (4, 5), (1, 1), (1, 1, 1))
      >>> found.equations, found.parameters, found.duplicates
      (2, 8, 1)
      >>> found.not_finite
      ('data has 1 number that is not finite, the first at (1,)',)
    """
    checked = as_kind(kind, order, None, "auto")
    sizes = validate.require_structure(shape, tucker_ranks, tt_ranks)
    plain, by_index = getattr(checked, "plain", True), getattr(checked, "by_index", False)
    at = sample if plain else sample[0]
    parts = _parts("data", data)
    finite = sum(int(np.isfinite(array).sum()) for _, array in parts)
    named = [*_parts("sample", sample), *parts]
    not_finite = tuple(sentence for name, array in named if (sentence := _not_finite(name, array)))
    axis = None if plain else 0
    return Diagnosis(
        finite, manifold_dimension(*sizes), not_finite, _duplicates(at, by_index), _scales([x for _, x in parts], axis)
    )


def _parts(name: str, tree: Any) -> list[tuple[str, np.ndarray]]:
    """The arrays of a sample or of data, with their names; lists of numbers are arrays."""
    if not isinstance(tree, tuple | list | dict) or _is_array(tree):
        return [(name, np.asarray(tree))]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [part for key, item in items for part in _parts(f"{name}[{key!r}]", item)]


def _is_array(tree: Any) -> bool:
    return isinstance(tree, list) and all(isinstance(item, int | float) for item in tree)


def _not_finite(name: str, array: np.ndarray) -> str:
    wrong = np.argwhere(~np.isfinite(array))
    if not len(wrong):
        return ""
    count = "1 number that is" if len(wrong) == 1 else f"{len(wrong)} numbers that are"
    return f"{name} has {count} not finite, the first at {tuple(map(int, wrong[0]))}"


def _duplicates(at: Any, by_index: bool) -> int:
    """Samples that are at the same vectors or indices as an earlier one."""
    arrays = [array for _, array in _parts("", at)]
    rows = [x.reshape(-1, 1) if by_index or x.ndim < 2 else x.reshape(-1, x.shape[-1]) for x in arrays]
    if len({len(x) for x in rows}) != 1:
        return 0
    table = np.concatenate([x.astype(np.float64) for x in rows], axis=1)
    return len(table) - len(np.unique(table, axis=0))


def _scales(arrays: list[np.ndarray], axis: int | None) -> Any:
    """Root mean squares of each array, order by order where the orders are on an axis; NaN is left out."""

    def scale(array: np.ndarray) -> np.ndarray:
        squares = np.where(np.isfinite(array), array.astype(np.float64), 0.0) ** 2
        return np.sqrt(squares.mean(axis=tuple(range(0 if axis is None else 1, array.ndim))))

    return np.stack([np.atleast_1d(scale(array)) for array in arrays])
