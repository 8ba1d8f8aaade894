"""The results for people: what is owed and what was reached, then what each side showed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from rich.markup import escape
from rich.table import Table

from bench.row import Comparison, RowResult
from bench.scale import Scale
from bench.verdict import Verdict, judge

_REACHED = {True: "[green]yes[/]", False: "[bold red]no[/]", None: "-"}


def heading(made_with: Mapping[str, Any], scale: Scale) -> str:
    """A line that says with what the numbers were made."""
    packages = made_with["packages"]
    return (
        f"{made_with['cores']} cores, Python {made_with['python']}, Granian {packages['granian']}, Flask "
        f"{packages['flask']}, PostgreSQL {made_with['postgres']['server_version']}, Valkey "
        f"{made_with['valkey']['version']}; medians of {scale.rounds} rounds, "
        f"{scale.many_outstanding:,} and {scale.few_outstanding:,} coupons outstanding"
    )


def verdict_table(results: Iterable[RowResult]) -> Table:
    """A line for each comparison, medians over the rounds; beside them between which ratios half of the rounds lie, and
    the lowest and highest of them."""
    table = Table(title="Speed owed and reached (DESIGN 14)", title_justify="left")
    for name in ("work", "against"):
        table.add_column(name)
    for name in ("ours", "peer", "ratio", "half of the rounds", "all", "owed", "reached"):
        table.add_column(name, justify="right")
    for result in results:
        for comparison in result.row.comparisons:
            verdict = judge(result, comparison)
            table.add_row(*(_missing(comparison) if verdict is None else _line(verdict)))
        if result.failure is not None:
            table.add_row(f"[red]{escape(result.row.name)}: {escape(result.failure)}[/]")
        table.add_section()
    return table


def _line(verdict: Verdict) -> Sequence[str]:
    return (
        escape(verdict.comparison.work),
        escape(verdict.comparison.against),
        _number(verdict.ours),
        _number(verdict.peer),
        f"{verdict.ratio:.2f}",
        f"{verdict.lower:.2f}-{verdict.upper:.2f}",
        f"{verdict.lowest:.2f}-{verdict.highest:.2f}",
        _owed(verdict.comparison),
        _REACHED[verdict.reached],
    )


def _missing(comparison: Comparison) -> Sequence[str]:
    return (
        escape(comparison.work),
        escape(comparison.against),
        "",
        "",
        "",
        "",
        "",
        _owed(comparison),
        "[red]not run[/]",
    )


def _owed(comparison: Comparison) -> str:
    if comparison.owed is None:
        return "-"
    sign = ">=" if comparison.sense == "at least" else "<="
    aim = f", aim {comparison.aim:g}" if comparison.aim is not None else ""
    return f"{sign} {comparison.owed:g}{aim}"


def side_table(results: Iterable[RowResult]) -> Table:
    """Every number of every side: the median, and in brackets the lowest and highest of the rounds."""
    table = Table(title="What each side showed", title_justify="left")
    for name in ("row", "side", "number"):
        table.add_column(name)
    table.add_column("median", justify="right")
    table.add_column("of the rounds", justify="right")
    for result in results:
        for side in result.rounds[0] if result.rounds else ():
            for number in result.rounds[0][side]:
                values = result.of(side, number)
                spread = f"{_number(min(values))}-{_number(max(values))}"
                table.add_row(result.row.name, side, number, _number(median(values)), spread)
        table.add_section()
    return table


def busy_warning(results: Iterable[RowResult]) -> str | None:
    """A sentence when others were at work on this machine, else None."""
    cores = os.cpu_count() or 1
    highest = max((result.load_average for result in results), default=0.0)
    if highest <= cores:
        return None
    return f"The load average was {highest:.1f} on {cores} cores when a row began: do not trust these numbers."


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
