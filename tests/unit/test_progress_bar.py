"""Bars for people at a terminal, which end as finished."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from coupon_workers.checking.report import invariants
from coupon_workers.load.progress_bar import ProgressBar


def use(bar: ProgressBar) -> None:
    """Three stages, each to its end."""
    rules = invariants()[:3]
    with bar:
        step = bar.counts_up("claiming", 2)
        step()
        step()
        left = bar.counts_down("settling")
        left(5)
        left(0)
        begins = bar.names("checking", len(rules))
        for rule in rules:
            begins(rule)


def screen(work: Callable[[ProgressBar], None], terminal: bool) -> list[str]:
    """The last lines that are seen, each with the time it took."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=100, color_system=None, legacy_windows=False)
    work(ProgressBar(console))
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    return [line for line in lines if re.search(r"\d:\d\d:\d\d$", line)]


def test_a_stage_ends_with_done_and_all_of_its_steps() -> None:
    """No name of a last step, and no number that is still open."""
    last = screen(use, terminal=True)[-3:]

    for line, start, count in zip(
        last, ("claiming done", "settling done", "checking done"), ("2/2", "5/5", "3/3"), strict=True
    ):
        assert start in line and count in line


def test_a_stage_that_fails_is_not_called_done() -> None:
    """It shows where it stopped."""

    def fail(bar: ProgressBar) -> None:
        with pytest.raises(ValueError, match="wrong"), bar:
            bar.names("checking", 2)(invariants()[0])
            raise ValueError("wrong")

    last = screen(fail, terminal=True)[-1]

    assert "checking never_over_issued" in last and "done" not in last


def test_where_nobody_watches_there_are_no_bars() -> None:
    """A cron job mails what it says."""
    assert [] == screen(use, terminal=False)
