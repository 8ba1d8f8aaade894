"""``coupon-workers reconcile``: compare now, and show what differs."""

from __future__ import annotations

import json
from datetime import date, datetime

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coupon_workers.cli.connect import OPERATOR, cli_settings
from coupon_workers.errors import InvalidInput
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.money_text import plain_money
from coupon_workers.reconciliation.difference import MOST
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_findings
from coupon_workers.reconciliation.findings_csv import findings_csv
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.run import perform_run, write_run
from coupon_workers.reconciliation.run_reading import RunAnswer, read_run
from coupon_workers.runtime.process import make_services

_WIDE = 150
"""Columns: a row stays one line, also in a narrow terminal or a file."""


def _day(_context: click.Context, _parameter: click.Parameter, word: str | None) -> date | None:
    try:
        return None if word is None else read_day(word)
    except InvalidInput as error:
        raise click.UsageError(f"{word!r} {error.errors[0][1]}") from None


def _instant(_context: click.Context, _parameter: click.Parameter, word: str | None) -> datetime | None:
    if word is None:
        return None
    try:
        instant = datetime.fromisoformat(word)
    except ValueError:
        raise click.UsageError(f"{word!r} is no instant, as 2026-11-11T00:00:00+08:00") from None
    if instant.tzinfo is None:
        raise click.UsageError(f"{word!r} has no offset from UTC: which zone's clock is meant?")
    return instant


@click.command(short_help="Compare now, and show what differs.")
@click.argument("kind", type=click.Choice([kind.value for kind in ReconKind]), metavar="KIND")
@click.option("--date", "day", callback=_day, metavar="DATE", help="The business day of orders, as 2026-11-11.")
@click.option("--as-of", callback=_instant, metavar="INSTANT", help="The moment to compare as of. [default: now]")
@click.option("--json", "as_json", is_flag=True, help="In the form of GET /v1/reconciliations/{id}, with its findings.")
@click.option("--csv", "as_csv", is_flag=True, help="In the form of GET /v1/findings.csv.")
def reconcile(kind: str, day: date | None, as_of: datetime | None, as_json: bool, as_csv: bool) -> None:
    """Compare, write down what differs, repair what is safe, and show it. KIND is one of stock, state, orders (which
    takes a --date), batches, codes.

    Exits 1 when a finding is left open.
    """
    if as_json and as_csv:
        raise click.UsageError("--json or --csv, not both")
    services = make_services(cli_settings())
    try:
        run_id = write_run(services, services.next_id(0), ReconKind(kind), as_of or services.clock(), day, OPERATOR)
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
    perform_run(services, run_id)
    run, findings = read_run(services, run_id), read_findings(services, limit=MOST, run_id=run_id)
    if as_json:
        shown = run.model_dump(mode="json") | {"findings": [each.model_dump(mode="json") for each in findings]}
        click.echo(json.dumps(shown))
    elif as_csv:
        click.echo(findings_csv(findings), nl=False)
    else:
        _show(Console(), run, findings)
    if any(finding.state == FindingState.OPEN for finding in findings):
        raise click.exceptions.Exit(1)


def _show(console: Console, run: RunAnswer, findings: list[FindingAnswer]) -> None:
    """What was compared, then a line a finding."""
    console.width = max(console.width, _WIDE)
    of = f" of {run.date}" if run.date else ""
    console.print(
        f"{run.kind}{of} as of {run.as_of}: {run.examined or 0:,} examined, {run.found or 0:,} differ,"
        f" {run.opened or 0:,} new, {run.resolved or 0:,} gone",
        highlight=False,
        markup=False,
    )
    if not findings:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("finding", "class", "subject"):
        table.add_column(heading, no_wrap=True, max_width=56)
    table.add_column("amount", justify="right", no_wrap=True)
    for heading in ("repair", "state"):
        table.add_column(heading, no_wrap=True)
    for finding in findings:
        money = plain_money(finding.amount, finding.currency) if finding.amount is not None and finding.currency else ""
        words = (finding.finding_id, finding.finding_class, finding.subject)
        table.add_row(*map(escape, words), money, finding.repair or "by hand", str(finding.state))
    console.print(table)
    if any(finding.state == FindingState.OPEN for finding in findings):
        console.print("What is open waits for POST /v1/findings/ID/approve or /ignore.", highlight=False, markup=False)
    if run.truncated:
        console.print(f"There are more: {MOST:,} are listed.", highlight=False)
