"""``coupon-workers replay``: claims from a receipts file, over HTTP, against a running installation."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.checking.verdict_table import fact_table, verdict_line, verdict_table
from coupon_workers.cli.connect import cli_settings
from coupon_workers.errors import InvalidInput
from coupon_workers.load.admin_client import AdminClient
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.http_request import Address
from coupon_workers.load.load_table import load_table
from coupon_workers.load.outcome_count import gate_now
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.load.receipt import ReceiptCount
from coupon_workers.load.receipt_plan import ReceiptPlan, plan_receipts, template_body
from coupon_workers.load.run_report import RunReport, report_run, rules_of_a_run
from coupon_workers.load.settled import wait_until_settled
from coupon_workers.load.template_making import open_templates
from coupon_workers.runtime.clock import rfc3339, utc_now
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings

_SHOWN_TEMPLATES = 10
_ADMIN_CONNECTIONS = 8
_SALE = timedelta(days=365)


@click.command(short_help="Claim over HTTP from a CSV of receipts.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True))
@click.option("--stock", type=click.IntRange(1, 10**9), default=100, show_default=True, help="Coupons a template.")
@click.option("--limit", type=click.IntRange(1, 10**9), default=1, show_default=True, help="Coupons a user.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=32, show_default=True, help="Connections.")
@click.option("--rate", type=click.FloatRange(min=1), help="Claims a second. [default: flat out]")
def replay(file: Path, stock: int, limit: int, concurrency: int, rate: float | None) -> None:
    """Claim a coupon for each receipt of FILE, with a template for each Coupon_id.

    FILE is a CSV with the columns User_id, Coupon_id, Discount_rate (150:20 or 0.9, in yuan) and Date_received. The
    same file with the same options replays the same requests on the same templates. Exits 1 when a rule is broken.
    """
    settings = cli_settings()
    try:
        plan = plan_receipts(file, stock=stock, limit=limit)
    except InvalidInput as error:
        raise click.ClickException(f"{file}: {error}") from None
    console = Console()
    console.print(_row_table(plan.count))
    if not plan.templates:
        raise click.ClickException(f"{file}: no receipt to replay")
    report = run_replay(settings, plan, console, concurrency=concurrency, rate=rate)
    if not report.holds:
        sys.exit(1)


def run_replay(
    settings: Settings, plan: ReceiptPlan, console: Console, *, concurrency: int, rate: float | None = None
) -> RunReport:
    """Replay a plan on the installation of ``settings``, print the report and return it.

    Raises ``CouponWorkersError``.
    """
    services = make_services(settings)
    with _address(settings, services) as address:
        with ProgressBar() as bar:
            template_ids = _open(address, plan, bar)
            since = gate_now(services)
            with ClaimClient(address, connections=concurrency) as client:
                heard = bar.counts_up("claiming", plan.count.read)
                client.run(plan.claims(template_ids), rate=rate, heard=heard)
            expected: dict[int, int | None] = {
                int(template_ids[coupon_id]): template.expected for coupon_id, template in plan.templates.items()
            }
            wait_until_settled(services, frozenset(expected), left=bar.counts_down("settling"))
            report = report_run(
                services, client.history, expected, since, begins=bar.names("checking", rules_of_a_run())
            )
    console.print(load_table(report.counts, report.outcomes))
    console.print(_template_table(plan, template_ids, report))
    console.print(verdict_table(report.verdicts))
    console.print(fact_table(report.facts))
    click.echo(verdict_line(report.verdicts))
    return report


@contextmanager
def _address(settings: Settings, services: Services) -> Iterator[Address]:
    """The running front, with a key that lasts as long as the replay."""
    made = create_key(services.engine, name="replay", scopes=["admin", "storefront"])
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.http_host, settings.http_host)
    try:
        yield Address(host, settings.http_port, made.key)
    finally:
        revoke_key(services.engine, made.record.key_id)


def _open(address: Address, plan: ReceiptPlan, bar: ProgressBar) -> dict[str, str]:
    """The ids of the plan's templates by ``Coupon_id``, all of them published."""
    now = utc_now()
    start, end = rfc3339(now - timedelta(minutes=1)), rfc3339(now + _SALE)
    bodies = [
        template_body(template, stock=plan.stock, limit=plan.limit, start=start, end=end)
        for template in plan.templates.values()
    ]
    run = f"replay-{secrets.token_hex(8)}"
    with AdminClient(address, connections=_ADMIN_CONNECTIONS) as client:
        template_ids = open_templates(client, bodies, run=run, planned=bar.counts_up)
    return dict(zip(plan.templates, template_ids, strict=True))


def _row_table(count: ReceiptCount) -> Table:
    table = Table(title="Rows of the file", title_justify="left")
    table.add_column("what they are")
    table.add_column("rows", justify="right")
    table.add_column("line numbers of the first")
    table.add_row("receipts", f"{count.read:,}", "")
    for kind, reasons in (("skipped", count.skipped), ("bad", count.bad)):
        for reason, rows in reasons.most_common():
            table.add_row(f"{kind}: {reason}", f"{rows:,}", ", ".join(map(str, count.examples[reason])))
    return table


def _template_table(plan: ReceiptPlan, template_ids: dict[str, str], report: RunReport) -> Table:
    """The hottest templates, and all of them together."""
    table = Table(title="Templates, the hottest first", title_justify="left")
    for heading in ("Coupon_id", "discount", "claims", "users", "expected", "issued"):
        table.add_column(heading, justify="left" if heading in ("Coupon_id", "discount") else "right")
    hottest = sorted(plan.templates.values(), key=lambda template: -template.claims)
    for template in hottest[:_SHOWN_TEMPLATES]:
        issued = report.outcomes.issued[int(template_ids[template.coupon_id])]
        style = None if issued == template.expected else "red"
        numbers = (template.claims, template.users, template.expected, issued)
        table.add_row(escape(template.coupon_id), template.discount_rate, *(f"{n:,}" for n in numbers), style=style)
    table.add_section()
    claims, expected = (sum(values) for values in zip(*((t.claims, t.expected) for t in hottest), strict=True))
    table.add_row(
        f"all {len(hottest):,}", "", f"{claims:,}", "", f"{expected:,}", f"{report.outcomes.issued.total():,}"
    )
    return table
