"""A load's report for people: what was sent, what was answered, what became of it."""

from __future__ import annotations

from rich.table import Table

from coupon_workers.load.outcome_count import OutcomeCount
from coupon_workers.load.tally import Tally


def load_table(counts: Tally, outcomes: OutcomeCount) -> Table:
    """Counts of calls and claims, rates and times, a line each."""
    table = Table(title="Claims over HTTP", title_justify="left")
    table.add_column("")
    table.add_column("count", justify="right")
    table.add_row("sent", f"{counts.sent:,}")
    table.add_row("  accepted (202)", f"{counts.accepted:,}")
    table.add_row("  replayed (200)", f"{counts.replayed:,}")
    for code, calls in counts.refused.most_common():
        table.add_row(f"  refused {code}", f"{calls:,}")
    if counts.wrong:
        table.add_row("  wrong bodies refused", f"{counts.wrong:,}")
    for status, calls in sorted(counts.errors.items()):
        table.add_row(f"  error {status}", f"{calls:,}", style="red")
    if counts.unknown:
        table.add_row("  never answered", f"{counts.unknown:,}", style="red")
    table.add_row("sent again (answer lost, or told to wait)", f"{counts.attempts - counts.sent:,}")
    table.add_section()
    table.add_row("issued", f"{outcomes.issued.total():,}")
    table.add_row("rejected", f"{outcomes.rejected.total():,}")
    for reason, claims in outcomes.rejected.most_common():
        table.add_row(f"  {reason}", f"{claims:,}")
    table.add_section()
    table.add_row("claims/s", f"{counts.claims_per_s:,.0f}")
    table.add_row("answer p50 / p99", _pair(counts.answer_percentile_ms(50), counts.answer_percentile_ms(99)))
    table.add_row("202 to durable p50 / p99", _pair(outcomes.durable_p50_ms, outcomes.durable_p99_ms))
    return table


def _pair(p50_ms: float | None, p99_ms: float | None) -> str:
    if p50_ms is None or p99_ms is None:
        return "-"
    return f"{p50_ms:,.1f} / {p99_ms:,.1f} ms"
