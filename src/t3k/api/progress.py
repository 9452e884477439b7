"""How a fit shows its progress: not at all, by a line per iteration, or by a bar."""

from types import TracebackType
from typing import Any

__all__ = ["Progress", "progress_for"]


class Progress:
    """Shows nothing."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def show(self, iteration: int, stats: Any) -> None:
        """Called after each iteration."""


class Lines(Progress):
    """Prints a line per iteration, or per check where the loss is not computed after each."""

    def show(self, iteration: int, stats: Any) -> None:
        """Iteration, loss, gradient, CG iterations and step."""
        if len(stats.losses) == 2:
            print(f"{'iteration':>9}  {'loss':>10}  {'gradient':>10}  {'CG':>4}  {'step':>8}")
            print(f"{'start':>9}  {stats.losses[0]:>10.3e}")
        cg = stats.cg_iterations[-1] if stats.cg_iterations else ""
        print(
            f"{iteration:>9}  {stats.losses[-1]:>10.3e}  {stats.gradient_norms[-1]:>10.3e}  "
            f"{cg:>4}  {stats.step_sizes[-1]:>8.1e}",
            flush=True,
        )


class Bar(Progress):
    """A progress bar of the package tqdm."""

    def __init__(self, total: int, name: str) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError('verbose="bar" needs tqdm: pip install "t3k[progress]"') from None
        self.bar = tqdm(total=total, desc=name, unit="step")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the bar where it stands."""
        self.bar.close()

    def show(self, iteration: int, stats: Any) -> None:
        """Advances the bar, with loss and gradient beside it."""
        self.bar.set_postfix_str(f"loss {stats.losses[-1]:.2e}, gradient {stats.gradient_norms[-1]:.1e}")
        self.bar.update(iteration - self.bar.n)


def progress_for(verbose: bool | str, total: int, name: str) -> Progress:
    """The display that `verbose` asks for, of a fit by the optimizer `name`.

    Raises:
      ValueError: if it is neither False, True nor ``"bar"``.
      ImportError: if a bar is asked for and tqdm is not installed.
    """
    if verbose is False:
        return Progress()
    if verbose is True:
        return Lines()
    if verbose == "bar":
        return Bar(total, name)
    raise ValueError(f'verbose must be False, True or "bar"; got {verbose!r}')
