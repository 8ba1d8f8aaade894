"""``coupon-workers check``: every invariant, on the running installation."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from coupon_workers.checking.patience import PATIENCE_S
from coupon_workers.checking.report import check_all
from coupon_workers.checking.verdict_table import fact_table, verdict_table
from coupon_workers.cli.connect import cli_settings
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.runtime.process import make_services


@click.command()
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=0),
    default=PATIENCE_S,
    show_default=True,
    help="Seconds to look again at what may still be settling.",
)
def check(patience_s: float) -> None:
    """Check every invariant and say which hold; exit 1 when one is broken.

    Reads only, and may run at any time, also under traffic.
    """
    services = make_services(cli_settings())
    with ProgressBar() as bar:
        report = check_all(services, patience_s=patience_s, begins=bar.names("checking"))
    console = Console()
    console.print(verdict_table(report.verdicts))
    console.print(fact_table(report.facts))
    if not report.holds:
        sys.exit(1)
