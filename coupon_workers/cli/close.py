"""``coupon-workers close``: freeze a business day, and show it."""

from __future__ import annotations

import json
from datetime import date

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coupon_workers.cli.connect import OPERATOR, cli_settings
from coupon_workers.errors import InvalidInput
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.close_csv import close_csv
from coupon_workers.finance.close_reading import DayClose, Sums
from coupon_workers.finance.daily_close import close_day
from coupon_workers.finance.money_text import plain_money
from coupon_workers.runtime.process import make_services

_WIDE = 150
"""Columns: a row stays one line, also in a narrow terminal or a file."""


def _day(word: str) -> date:
    try:
        return read_day(word)
    except InvalidInput as error:
        raise click.UsageError(f"{word!r} {error.errors[0][1]}") from None


@click.command(short_help="Close a business day, and show it.")
@click.argument("day", type=_day, metavar="DATE")
@click.option("--json", "as_json", is_flag=True, help="In the form of GET /v1/daily-closes/{date}.")
@click.option("--csv", "as_csv", is_flag=True, help="In the form of GET /v1/daily-closes/{date}.csv.")
def close(day: date, as_json: bool, as_csv: bool) -> None:
    """Freeze what each template's coupons did and cost on DATE, as 2026-11-11, the local day of its time zone.

    A day that is closed is shown as it was closed. Exits 1 while the day is not over everywhere.
    """
    if as_json and as_csv:
        raise click.UsageError("--json or --csv, not both")
    # What closes a day needs PostgreSQL alone, but services are made whole.
    closed = close_day(make_services(cli_settings()), day, OPERATOR)
    if as_json:
        click.echo(json.dumps(closed.model_dump(mode="json")))
    elif as_csv:
        click.echo(close_csv(closed), nl=False)
    else:
        _show(Console(), closed)


def _show(console: Console, closed: DayClose) -> None:
    """A line a template and currency, then the totals of each currency."""
    console.width = max(console.width, _WIDE)
    console.print(
        f"{closed.date} is closed: revision {closed.revision}, at {closed.closed_at} by {closed.closed_by}",
        highlight=False,
        markup=False,
    )
    if not closed.rows:
        console.print("No coupon was issued, used, returned, expired or adjusted on it.", highlight=False)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("template", no_wrap=True, max_width=40)
    for heading in ("issued", "redeemed", "", "returned", "", "expired", "adjusted", "expense"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in closed.rows:
        table.add_row(escape(f"{row.template_id} {row.template_name}"), *_cells(row))
    table.add_section()
    for total in closed.totals:
        table.add_row(f"total {total.currency}", *_cells(total))
    console.print(table)


def _cells(sums: Sums) -> list[str]:
    def money(amount: int) -> str:
        return plain_money(amount, sums.currency)

    return [
        f"{sums.issued_count:,}",
        f"{sums.redeemed_count:,}",
        money(sums.redeemed_amount),
        f"{sums.returned_count:,}",
        money(sums.returned_amount),
        f"{sums.expired_count:,}",
        money(sums.adjusted_amount),
        money(sums.expense_net),
    ]
