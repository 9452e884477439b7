"""How a T3 shows itself to people: a summary, a table for notebooks, and a figure of its ranks and spectra."""

import html
from typing import Any

import jax.numpy as jnp
import numpy as np

from t3k.api.rounding import Rounding
from t3k.api.validate import is_concrete, require_single

__all__ = ["Display"]


def _spectrum(values: Any, shown: int = 4) -> str:
    """The first and the last singular values; of a stack, the largest of each."""
    values = np.asarray(values, np.float64).reshape(-1, values.shape[-1]).max(axis=0)
    texts = [f"{value:.2e}" for value in values]
    return ", ".join(texts if len(texts) <= shown else [*texts[: shown - 1], "..", texts[-1]])


class Display(Rounding):
    """What `t3k.TuckerTensorTrain` inherits: summaries and figures."""

    def _facts(self) -> list[tuple[str, str]]:
        dense = float(np.prod(np.array(self.shape, np.float64)))
        tucker, tt = self.singular_values()
        facts = [
            ("shape", " x ".join(map(str, self.shape)) + (f", stack {self.stack_shape}" if self.stack_shape else "")),
            ("Tucker ranks", f"{self.tucker_ranks}, minimal {self.minimal_ranks[0]}"),
            ("TT ranks", f"{self.tt_ranks}, minimal {self.minimal_ranks[1]}"),
            ("dtype", jnp.dtype(self.dtype).name),
            (
                "parameters",
                f"{self.n_parameters:,} of {dense:,.0f} entries, compression {dense / self.n_parameters:.3g}",
            ),
            ("manifold", f"dimension {self.manifold_dimension:,}"),
            ("norm", _spectrum(tt[0])),
        ]
        facts += [(f"mode {i} singular values", _spectrum(values)) for i, values in enumerate(tucker)]
        return facts + [(f"bond {i} singular values", _spectrum(tt[i])) for i in range(1, self.d)]

    def summary(self) -> str:
        """Several lines: shape, ranks, parameters, compression, norm and singular values (of a stack, the largest).

        Example:
          >>> import jax.numpy as jnp, t3k
          >>> t3k.TuckerTensorTrain.from_dense(jnp.eye(3) * 2.0, rtol=1e-6).summary().splitlines()[4]
          'parameters             36 of 9 entries, compression 0.25'
        """
        return "\n".join(f"{name:<22} {value}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        """A table of the summary, for notebooks."""
        if not all(is_concrete(core) for core in self.tucker_cores):
            return html.escape(repr(self))
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"

    def plot(self, axes: Any = None) -> Any:
        """A figure of the ranks beside one of the singular values of every unfolding, relative to the norm.

        Args:
          axes: two Axes of matplotlib to draw in; new ones if None.

        Returns:
          The two Axes.

        Raises:
          ImportError: if matplotlib is not installed (extra ``plot``).
          ValueError: for a stack.
        """
        require_single("plot", self.stack_shape)
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError('plot needs matplotlib: pip install "t3k[plot]"') from None
        ranks, spectra = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")[1] if axes is None else axes
        self._plot_ranks(ranks)
        self._plot_spectra(spectra)
        return ranks, spectra

    def _plot_ranks(self, axes: Any) -> None:
        axes.plot(np.arange(self.d), self.tucker_ranks, "o", label="Tucker rank of mode i")
        axes.plot(np.arange(self.d + 1) - 0.5, self.tt_ranks, "s-", label="bond before mode i")
        axes.set(xlabel="mode i", ylabel="rank", ylim=(0, None), xticks=range(self.d))
        axes.legend()

    def _plot_spectra(self, axes: Any) -> None:
        tucker, tt = self.singular_values()
        size = float(tt[0][0]) or 1.0
        for names, spectra, style in (("mode", tucker, "o-"), ("bond", tt[1:-1], "s--")):
            for i, values in enumerate(spectra, start=0 if names == "mode" else 1):
                relative = np.asarray(values, np.float64) / size
                axes.plot(np.arange(1, len(relative) + 1), relative, style, markersize=3, label=f"{names} {i}")
        axes.set(xlabel="number", ylabel="singular value / norm")
        axes.set_yscale("log", nonpositive="clip")
        axes.legend(fontsize="small", ncols=2)
