"""``coupon-workers check``: every invariant, on the running installation."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from coupon_workers.checking.patience import PATIENCE_S
from coupon_workers.checking.report import Report, check_all, invariants
from coupon_workers.checking.verdict_table import fact_table, verdict_line, verdict_table
from coupon_workers.cli.connect import cli_settings
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.runtime.process import make_services


@click.command(short_help="Check every rule; exit 1 when one is broken.")
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=0),
    default=PATIENCE_S,
    show_default=True,
    help="Seconds to look again at what may still be settling.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def check(patience_s: float, as_json: bool) -> None:
    """Check every invariant and say which hold; exit 1 when one is broken.

    Reads only, and may run at any time, also under traffic.
    """
    services = make_services(cli_settings())
    with ProgressBar() as bar:
        report = check_all(services, patience_s=patience_s, begins=bar.names("checking", len(invariants())))
    if as_json:
        click.echo(json.dumps(_fields(report)))
    else:
        console = Console()
        console.print(verdict_table(report.verdicts))
        console.print(fact_table(report.facts))
        click.echo(verdict_line(report.verdicts))
    if not report.holds:
        sys.exit(1)


def _fields(report: Report) -> dict[str, Any]:
    """The breaches are all that were found, at most ``BREACH_LIMIT`` of a rule."""
    rules = [{**asdict(verdict), "holds": verdict.holds} for verdict in report.verdicts]
    return {"holds": report.holds, "rules": rules, "facts": report.facts}
