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
    """A line for each stage, on a terminal only. Use it in a ``with`` block, at whose end each says that it is done."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._ends: list[Callable[[], None]] = []
        self._progress = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,  # a log or a mail needs no bars
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

        self._ends.append(lambda: self._progress.update(task, description=f"{what} done", completed=done))
        return step

    def counts_down(self, what: str) -> Callable[[int], None]:
        """A stage that ends when nothing is left; call the result with what is left. The first call sets the total."""
        task = self._progress.add_task(what, total=0)
        total = 0

        def left(count: int) -> None:
            nonlocal total
            total = max(total, count)
            self._progress.update(task, total=total, completed=total - count)

        self._ends.append(lambda: self._progress.update(task, description=f"{what} done"))
        return left

    def names(self, what: str, total: int) -> Callable[[Invariant], None]:
        """A stage of ``total`` named steps: the name of the one that begins is shown."""
        task = self._progress.add_task(what, total=total)
        begun = -1

        def begins(invariant: Invariant) -> None:
            nonlocal begun
            begun += 1
            self._progress.update(task, description=f"{what} {invariant.name}", completed=begun)

        self._ends.append(lambda: self._progress.update(task, description=f"{what} done", completed=begun + 1))
        return begins

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            for end in self._ends:
                end()
        self._progress.stop()
