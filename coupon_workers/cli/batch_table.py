"""Batches as tables: one, whose rows add up, and a list."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from coupon_workers.campaigns.batch_reading import BatchAnswer

_WIDE = 160
"""Columns: a row stays one line, also in a narrow terminal or a file."""

_STYLES = {"done": "green", "failed": "red", "cancelled": "red", "paused": "yellow"}


def summary(console: Console, batch: BatchAnswer) -> None:
    """What the batch's rows have become: the lines before the last add up to it."""
    console.print(f"batch {batch.batch_no} ({escape(batch.name)}) is {_status(batch)}{_why(batch)}", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rows that are")
    table.add_column("", justify="right")
    parts = [
        ("issued", batch.issued),
        ("duplicate", batch.duplicate),
        ("refused", batch.refused),
        ("invalid", batch.invalid),
        *([("not issued", batch.pending)] if batch.pending else []),
    ]
    for name, count in parts:
        table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("rows", f"{batch.rows:,}")
    console.print(table)
    if batch.rows_per_second:
        console.print(f"{batch.rows_per_second:,.0f} rows a second", highlight=False)
    if batch.duplicate + batch.refused + batch.invalid:
        console.print(
            f"who got nothing: coupon-workers batch failures {batch.batch_no}", highlight=False, soft_wrap=True
        )


def batch_list(console: Console, batches: Sequence[BatchAnswer]) -> None:
    """One line each, times in UTC."""
    console.width = max(console.width, _WIDE)
    headings = ("batch", "name", "template", "status", "rows", "issued", "pending", "%", "created")
    columns = [
        Column(
            name, no_wrap=True, max_width=32, justify="right" if name in ("rows", "issued", "pending", "%") else "left"
        )
        for name in headings
    ]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for batch in batches:
        counts = (f"{count:,}" for count in (batch.rows, batch.issued, batch.pending))
        created = batch.created_at[:16].replace("T", " ")
        table.add_row(
            batch.batch_no,
            escape(batch.name),
            batch.template_id,
            _status(batch),
            *counts,
            f"{batch.percent:.1f}",
            created,
        )
    console.print(table)


def _status(batch: BatchAnswer) -> str:
    style = _STYLES.get(batch.status)
    return f"[{style}]{batch.status}[/{style}]" if style else str(batch.status)


def _why(batch: BatchAnswer) -> str:
    return f": {escape(batch.reason)}" if batch.reason else ""
