"""``python -m bench``: measure, print, write."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from bench.environment import environment
from bench.record import write_record
from bench.row import RowResult
from bench.rows import ROWS
from bench.run import run_rows
from bench.scale import FULL_OUTSTANDING, FULL_RECONCILED, FULL_USERS, NORMAL, QUICK, Scale
from bench.stage import ROOT, Stage
from bench.table import busy_warning, heading, side_table, verdict_table
from coupon_workers.errors import CouponWorkersError
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.cycle_collector import collect_seldom
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.structured_log import configure_logs

RESULTS = ROOT / "bench" / "results"


@click.command()
@click.option("--quick", is_flag=True, help="A minute or two: shows that it works, the numbers say little.")
@click.option(
    "--full",
    is_flag=True,
    help=f"{FULL_OUTSTANDING:,} coupons, {FULL_USERS:,} users: minutes more, 14 GB.",
)
@click.option(
    "--rounds", type=click.IntRange(1, 100), help="Measured rounds. [default: 5, of short ones 20; quick: 2 and 4]"
)
@click.option("--only", "names", multiple=True, type=click.Choice(list(ROWS)), help="This row; may be repeated.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The JSON file. [default: bench/results/ and the time]",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Servers' data and logs, kept. [default: a temporary folder, kept when a row breaks]",
)
def main(
    quick: bool, full: bool, rounds: int | None, names: tuple[str, ...], out: Path | None, data_dir: Path | None
) -> None:
    """Measure what we owe side by side with what we owe it against.

    Starts everything itself, on this machine only. Leave the machine alone meanwhile. Exits 1 when a row could not be
    measured; a ratio that is not reached is told, and is not an error.
    """
    signal.signal(signal.SIGTERM, _stop)
    configure_logs(Settings(log_level="ERROR", log_format="console"))
    collect_seldom()  # as a worker process does: what is measured in this process is a worker's work
    folder = data_dir or Path(tempfile.mkdtemp(prefix="coupon-bench-"))
    path = out or RESULTS / f"{utc_now():%Y%m%dT%H%M%SZ}.json"
    keep = data_dir is not None
    try:
        results = _measure(folder, _scale(quick, full, rounds), names, path)
        broken = any(result.failure for result in results)
        keep = keep or broken
    except CouponWorkersError as error:
        keep = True
        raise click.ClickException(f"{error} (logs: {folder / 'logs'})") from None
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"written to {path}")
    if broken:
        print(f"data and logs: {folder}")
        sys.exit(1)


def _measure(folder: Path, scale: Scale, names: tuple[str, ...], path: Path) -> list[RowResult]:
    began = utc_now()
    progress = Console(stderr=True)
    rows = [row for name, row in ROWS.items() if not names or name in names]
    results: list[RowResult] = []
    with Stage(folder, scale) as stage, progress.status("starting") as status:
        made_with = environment(stage)
        for result in run_rows(stage, rows, status.update):
            results.append(result)
            progress.print(f"{result.row.name}: {result.failure or 'measured'}")
            write_record(path, began, made_with, scale, results)  # what is there survives what breaks
    console = Console()
    console.print(heading(made_with, scale))
    console.print(verdict_table(results))
    console.print(side_table(results))
    if warning := busy_warning(results):
        console.print(f"[bold red]{warning}[/]")
    return results


def _scale(quick: bool, full: bool, rounds: int | None) -> Scale:
    scale = QUICK if quick else NORMAL
    if full:
        scale = replace(
            scale,
            many_outstanding=FULL_OUTSTANDING,
            many_users=FULL_USERS,
            reconciled_coupons=FULL_RECONCILED,
        )
    return replace(scale, rounds=rounds or scale.rounds, short_rounds=rounds or scale.short_rounds)


def _stop(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
