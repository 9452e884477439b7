"""Figures of fits, by Matplotlib (extra ``plot``)."""

from typing import Any

import numpy as np

from t3k.api.error_table import ErrorTable
from t3k.api.fit_stats import FitStats

__all__ = ["plot_errors", "plot_history"]


def _axes(ax: Any, name: str) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(f'{name} needs Matplotlib: pip install "t3k[plot]"') from None
    return Figure(figsize=(6.4, 4.0), layout="constrained").subplots()


def plot_history(stats: FitStats, ax: Any = None) -> Any:
    """Losses over iterations, and those of the validation data where there are any.

    Args:
      stats: of a fit.
      ax: where to draw; axes of a new figure if None.

    Returns:
      The axes; ``ax.figure.savefig(path)`` writes a new figure to a file.

    Raises:
      ImportError: if Matplotlib is needed and not installed.

    Example:
      >>> ax = plot_history(FitStats(losses=[1.0, 0.1], steps=[0, 1]))
      >>> ax.get_xlabel()
      'iteration'
    """
    ax = _axes(ax, "plot_history")
    ax.semilogy(stats.steps, stats.losses, marker=".", label="fitted")
    if stats.validation_losses:
        ax.semilogy(stats.steps, stats.validation_losses, marker=".", label="validation")
        ax.legend()
    ax.set(xlabel="iteration", ylabel="loss", title=f"{stats.status} after {stats.iterations} iterations")
    return ax


def plot_errors(table: ErrorTable, ax: Any = None) -> Any:
    """Relative errors for each mode and order, as bars.

    Args:
      table: from `relative_errors`.
      ax: where to draw; axes of a new figure if None.

    Returns:
      The axes.

    Raises:
      ImportError: if Matplotlib is needed and not installed.
      TypeError: for a table of a user's own kind, whose parts have no modes and orders.

    Example:
      >>> len(plot_errors(ErrorTable(np.array([[0.1, 0.2], [0.3, 0.4]]), 0.3)).patches)
      4
    """
    if not isinstance(table.errors, np.ndarray):
        raise TypeError(f"table must have modes and orders; got errors of type {type(table.errors).__name__}")
    ax, rows = _axes(ax, "plot_errors"), np.atleast_2d(table.errors)
    modes, width = np.arange(len(rows)), 0.8 / rows.shape[1]
    for t, column in enumerate(rows.T):
        ax.bar(modes + (t - (rows.shape[1] - 1) / 2) * width, column, width, label=f"order {t}")
    ax.set(yscale="log", ylabel="relative error", xticks=modes)
    ax.set_xticklabels([f"mode {i}" if table.errors.ndim == 2 else "all" for i in modes])
    ax.legend()
    return ax
