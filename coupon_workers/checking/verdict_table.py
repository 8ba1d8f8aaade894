"""The verdicts on the invariants for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.markup import escape
from rich.table import Table

from coupon_workers.checking.report import Verdict

SHOWN_BREACHES = 5
"""Breaches of an invariant that are spelt out; the count tells of the others."""


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    """A line each: the invariant, ok or the number of breaches, what it says; broken ones with their first breaches."""
    table = Table(title="Invariants", title_justify="left")
    table.add_column("invariant")
    table.add_column("", justify="right")
    table.add_column("says")
    table.add_column("s", justify="right")
    for verdict in verdicts:
        state = "[green]ok[/]" if verdict.holds else f"[bold red]{len(verdict.breaches):,} broken[/]"
        table.add_row(verdict.name, state, escape(verdict.statement), f"{verdict.elapsed_s:.1f}")
        for breach in verdict.breaches[:SHOWN_BREACHES]:
            found = f"{breach.subject}: expected {breach.expected}, found {breach.actual}"
            table.add_row("", "", f"[red]{escape(found)}[/]", "")
    return table


def fact_table(facts: Mapping[str, int]) -> Table:
    """Numbers that no rule judges."""
    table = Table(title="Facts", title_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), f"{value:,}")
    return table
