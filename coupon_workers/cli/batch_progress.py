"""Watching a batch until it ends: a bar on a terminal, a line where it stands still; Ctrl-C leaves it running."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from coupon_workers.campaigns.batch import OPEN, BatchStatus
from coupon_workers.campaigns.batch_reading import BatchAnswer, read_one
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services

POLL_S = 0.25
"""Between two looks: one small query each."""

OUTAGE_S = 120
"""How long the database may be away while a batch is watched: the batch is not in danger, so there is no hurry."""


_TOLD = "__told__"


def wait_for_end(services: Services, batch_id: int, console: Console | None = None) -> BatchAnswer:
    """The batch, once it is done, failed or cancelled.

    Raises ``NotFound`` ``BATCH_NOT_FOUND``, ``StoreUnavailable`` after a long outage.
    """
    with left_running(batch_id), _Bars(console or Console(stderr=True)) as bars:
        seen, heard_s = read_one(services, batch_id), time.monotonic()
        while seen.status in OPEN:
            bars.show(seen)
            time.sleep(POLL_S)
            try:
                seen, heard_s = read_one(services, batch_id), time.monotonic()
            except StoreUnavailable:
                if time.monotonic() - heard_s > OUTAGE_S:
                    raise
        bars.show(seen)
    return seen


@contextmanager
def left_running(batch_id: int) -> Iterator[None]:
    """Whoever stops watching is told how to go on: the batch does not end with it."""
    try:
        yield
    except (KeyboardInterrupt, StoreUnavailable) as error:
        if not getattr(error, _TOLD, False):
            again = f"coupon-workers batch show {batch_id} --wait"
            click.echo(f"batch {batch_id} goes on by itself; look again with: {again}", err=True)
            setattr(error, _TOLD, True)
        raise


class _Bars:
    """A bar for staging, whose length nobody knows before, and one for issuing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[pace]}"),
            console=console,
            disable=not console.is_terminal,  # a log needs no bars
        )
        self._staging: TaskID = self._progress.add_task("staging", total=None, pace="")
        self._issuing: TaskID | None = None
        self._told = ""

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, batch: BatchAnswer) -> None:
        """Bring the bars to where the batch is, and say once why it stands still."""
        if batch.rows and self._issuing is None:
            self._progress.update(self._staging, total=batch.rows, completed=batch.rows, description="staged")
            self._progress.stop_task(self._staging)
            self._issuing = self._progress.add_task("issuing", total=batch.valid - batch.duplicate, pace="")
        if self._issuing is not None:
            self._progress.update(self._issuing, completed=batch.issued + batch.refused, pace=_pace(batch))
        if (reason := _stands_still(batch)) != self._told:
            self._told = reason
            if reason:
                self._console.print(reason, highlight=False, markup=False)


def _pace(batch: BatchAnswer) -> str:
    if not batch.rows_per_second:
        return ""
    rate = f"{batch.rows_per_second:,.0f} rows/s"
    return f"{rate}, {timedelta(seconds=batch.eta_seconds)} left" if batch.eta_seconds else rate


def _stands_still(batch: BatchAnswer) -> str:
    """Why it does not go on by itself; empty when it does."""
    if batch.status == BatchStatus.PAUSED:
        return f"paused: {batch.reason}; go on with: coupon-workers batch resume {batch.batch_no}"
    if batch.status == BatchStatus.READY and batch.needs_approval and batch.approved_by is None:
        return f"waits for approval: POST /v1/batches/{batch.batch_no}/approve by an operator's key"
    if batch.status == BatchStatus.READY and batch.start_at:
        return f"starts at {batch.start_at}"
    return ""
