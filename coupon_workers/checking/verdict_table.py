"""The verdicts on the invariants for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.markup import escape
from rich.table import Table

from coupon_workers.checking.report import Verdict

SHOWN_BREACHES = 5
"""Breaches of an invariant that are spelt out; the count tells of the others."""

_FACTS = {
    "templates": ("templates", "of every status"),
    "coupons": ("coupons", "issued, in PostgreSQL"),
    "archived": ("archived", "coupons that ended long ago, moved out of the way"),
    "rejections": ("rejections", "accepted claims that ended without a coupon, each with its reason"),
    "outbox": ("outbox", "events of the last thirty days, to be told to other systems and users"),
    "set_aside": (
        "set aside",
        "entries of the pending stream that were no claims; 0 unless something else writes there",
    ),
    "orders": ("orders", "that hold coupons, have used them or have let them go"),
    "refunds": ("refunds", "of orders that were paid with coupons"),
    "ledger_entries": ("ledger", "bookings of discounts and of their reversals"),
    "waiting_events": ("waiting events", "of orders without coupons, or not locked yet; a day long"),
    "batches": ("batches", "coupons for an audience, of every status"),
    "open_batches": ("open batches", "of those, the ones that have not ended"),
    "code_batches": ("code batches", "batches of redeem codes, of every status"),
    "codes": ("codes", "generated, in all of them"),
    "used_codes": ("used codes", "exchanged for their coupon"),
    "lotteries": ("lotteries", "of every status"),
    "draws": ("draws", "settled, in all of them"),
    "queued": ("queued", "accepted claims that are not settled yet"),
    "warm_buckets": ("warm buckets", "templates that Redis has loaded and decides about"),
    "cold_buckets": ("cold buckets", "templates that Redis has yet to load; claims on them are told to come again"),
}
"""What a fact is called, and what it means."""


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
    """Numbers that no rule judges, each with what it means."""
    table = Table(title="Facts", title_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("")
    for name, value in facts.items():
        label, meaning = _FACTS.get(name, (name.replace("_", " "), ""))
        table.add_row(label, f"{value:,}", meaning)
    return table


def verdict_line(verdicts: Iterable[Verdict], after_s: float | None = None) -> str:
    """The last line of a report: "all rules hold", or how many are broken and which; with the seconds it took."""
    broken = [verdict.name for verdict in verdicts if not verdict.holds]
    after = "" if after_s is None else f" after {after_s:.0f} s"
    if not broken:
        return f"all rules hold{after}"
    return f"{len(broken)} {'rule' if len(broken) == 1 else 'rules'} broken{after}: {', '.join(broken)}"
