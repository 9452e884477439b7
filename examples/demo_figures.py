"""The figures of the demo: convergence, one spectral band, and scratch memory against the chunk size."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

import t3k

BAND = 120


def draw(folder: Path, cube: jax.Array, recovered: jax.Array, stats: Any, problem: Any, chunk: int) -> list[Path]:
    """Writes the three figures as PNG and returns their paths."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError('The figures need matplotlib: pip install "t3k[plot]"') from None
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    return [_convergence(folder, stats), _band(folder, cube, recovered), _memory(folder, problem, chunk)]


def _finish(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _convergence(folder: Path, stats: Any) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.semilogy(range(len(stats.losses)), stats.losses, "o-", color="C0", label="loss")
    gradients = range(len(stats.gradient_norms))
    axes.semilogy(gradients, stats.gradient_norms, "s--", color="C1", label="gradient norm")
    axes.set(xlabel="Newton step", title="Convergence of the fit")
    axes.grid(alpha=0.3)
    axes.legend()
    return _finish(figure, folder / "convergence.png")


def _band(folder: Path, cube: jax.Array, recovered: jax.Array) -> Path:
    import matplotlib.pyplot as plt

    original, fit = np.asarray(cube[:, :, BAND]), np.asarray(recovered[:, :, BAND])
    low, high = np.percentile(original, [1, 99])
    figure, panels = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
    for axes, image, title in zip(panels, (original, fit), ("original", "recovered from probes"), strict=False):
        shown = axes.imshow(image, cmap="viridis", vmin=low, vmax=high)
        axes.set_title(title)
    figure.colorbar(shown, ax=panels[:2], shrink=0.8, label="reflectance (scaled)")
    spread = np.abs(fit - original).max()
    shown = panels[2].imshow(fit - original, cmap="RdBu_r", vmin=-spread, vmax=spread)
    panels[2].set_title("difference")
    figure.colorbar(shown, ax=panels[2], shrink=0.8)
    for axes in panels:
        axes.set_axis_off()
    figure.suptitle(f"Spectral band {BAND} of 200")
    return _finish(figure, folder / "band.png")


def _memory(folder: Path, problem: Any, chunk: int) -> Path:
    import matplotlib.pyplot as plt

    n_probes = problem[4]
    sizes = [c for c in (16, 32, 64, 128, 256, 512) if 1.5 * c < n_probes] + [n_probes]
    scratch = [t3k.memory_report(*problem, chunk_size=c, dtype=np.float32).scratch / 2**20 for c in sizes]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.loglog(sizes, scratch, "o-", color="C0")
    axes.axvline(chunk, color="C1", linestyle="--", label=f'"auto" takes {chunk}')
    axes.set(xlabel="chunk_size (probes at a time)", ylabel="scratch (MiB)", title="Memory of the transpose")
    axes.set_xticks(sizes, [str(c) for c in sizes])
    axes.set_yticks(scratch, [f"{mib:.1f}" for mib in scratch])
    axes.minorticks_off()
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    return _finish(figure, folder / "memory.png")
