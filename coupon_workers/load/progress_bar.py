"""Progress of long work on standard error, so that a report on standard output stays clean."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coupon_workers.checking.report import Invariant

_UPDATE_EACH = 100
"""Steps between two updates: a bar must not cost more than the work it shows."""


class ProgressBar:
    """A line for each stage. Use it in a ``with`` block."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )

    def counts_up(self, what: str, total: int) -> Callable[[], None]:
        """A stage of ``total`` steps; call the result after each."""
        task = self._progress.add_task(what, total=total)
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            if done % _UPDATE_EACH == 0 or done == total:
                self._progress.update(task, completed=done)

        return step

    def counts_down(self, what: str) -> Callable[[int], None]:
        """A stage that ends when nothing is left; call the result with what is left. The first call sets the total."""
        task = self._progress.add_task(what, total=0)
        total = 0

        def left(count: int) -> None:
            nonlocal total
            total = max(total, count)
            self._progress.update(task, total=total, completed=total - count)

        return left

    def names(self, what: str) -> Callable[[Invariant], None]:
        """A stage of named steps: the name of the one that begins is shown."""
        task = self._progress.add_task(what, total=None)
        begun = -1

        def begins(invariant: Invariant) -> None:
            nonlocal begun
            begun += 1
            self._progress.update(task, description=f"{what} {invariant.name}", completed=begun)

        return begins

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()
