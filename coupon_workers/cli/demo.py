"""``coupon-workers demo``: a flash sale from nothing to a report, on real servers of its own."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console

from coupon_workers.checking.verdict_table import verdict_line
from coupon_workers.client.error import ClientError
from coupon_workers.demo.demo_options import DemoOptions
from coupon_workers.demo.demo_run import KILLED_LOAD_S, run_demo
from coupon_workers.demo.serve import serve_demo
from coupon_workers.errors import CouponWorkersError
from coupon_workers.load.demo_sale import FEWEST_CLAIMS

_OF_A_RUN = frozenset({"full", "claims", "orders", "concurrency", "rate", "kill_every_s"})
"""What only a run that is measured can do."""


@click.command(short_help="Hold a flash sale on own servers, check every rule.")
@click.option("--full", is_flag=True, help="Also random amounts, redeem codes, a lottery, and an attack on a sale.")
@click.option("--serve", is_flag=True, help="Open a shop with demo data to look at, until Ctrl-C.")
@click.option(
    "--claims", type=click.IntRange(min=FEWEST_CLAIMS), default=24_000, show_default=True, help="Claims to send."
)
@click.option(
    "--orders", type=click.IntRange(min=0), default=4_000, show_default=True, help="Order calls with the coupons."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of users, repeats and kills.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=32, show_default=True, help="Connections.")
@click.option("--rate", type=click.FloatRange(min=1), help="Claims a second. [default: flat out; with kills, for 40 s]")
@click.option(
    "--kill-every",
    "kill_every_s",
    type=click.FloatRange(min=0.1),
    help="Kill -9 a random process (web, worker, scheduler, Valkey, PostgreSQL) each so many seconds.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep data and logs in this folder. [default: a temporary one, kept when something is wrong]",
)
@click.option("--keep", is_flag=True, help="Keep the temporary folder too, and say where it is.")
@click.option("--port", type=click.IntRange(1, 65_535), help="With --serve: the front's. [default: a free one]")
@click.pass_context
def demo(
    context: click.Context,
    full: bool,
    serve: bool,
    claims: int,
    orders: int,
    seed: int,
    concurrency: int,
    rate: float | None,
    kill_every_s: float | None,
    data_dir: Path | None,
    keep: bool,
    port: int | None,
) -> None:
    """Hold a flash sale on servers of our own and check every rule.

    Starts everything, publishes a hot template (stock 2,000) and some quiet ones, sends claims over HTTP with repeats,
    retries and a pause in the middle, waits for empty queues, uses the coupons on orders (locks, payments, refunds,
    cancellations, twice and at once), and reports. Exits 1 when a rule is broken, 130 when it
    is interrupted.

    With --full a pool of random amounts is claimed empty, two farms of accounts attack a sale under a risk policy and
    guess at redeem codes while their owners exchange them, and a lottery is drawn to its end. The report says what was
    stopped, by which rule, and who got what.

    With --serve nothing is measured: a shop with data of every kind is opened, with some traffic, and stays open until
    Ctrl-C. It prints its addresses, a key for the console, and what to look at.
    """
    _refuse_what_does_not_go_together(context, serve=serve)
    if serve:
        with _folder(data_dir, keep=keep) as folder:
            serve_demo(folder, port=port or 0, seed=seed, keep=keep or data_dir is not None)
        return
    if rate is None and kill_every_s is not None:
        rate = claims / KILLED_LOAD_S
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # who ignores it was told to: nohup
            signal.signal(number, signal.default_int_handler)  # what was started is stopped, as on Ctrl-C
    with _folder(data_dir, keep=keep) as folder:
        began = time.monotonic()
        options = DemoOptions(claims, orders, seed, concurrency, rate, kill_every_s, full)
        report = run_demo(folder, options, Console())
        click.echo(verdict_line(report.verdicts, after_s=time.monotonic() - began))
        if not report.holds:
            raise CouponWorkersError("a rule is broken")


def _refuse_what_does_not_go_together(context: click.Context, *, serve: bool) -> None:
    """Raise ``UsageError`` for an option that would be without effect."""
    named = {
        parameter.opts[0]: parameter.name
        for parameter in context.command.params
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }
    if serve and (idle := [option for option, name in named.items() if name in _OF_A_RUN]):
        raise click.UsageError(f"--serve measures nothing, and does not go with {', '.join(idle)}")
    if not serve and "--port" in named:
        raise click.UsageError("--port goes with --serve: without it the front takes a free one")


@contextmanager
def _folder(data_dir: Path | None, *, keep: bool) -> Iterator[Path]:
    """Where data and logs lie; a temporary folder is removed, unless something is wrong or it is to be kept."""
    folder = data_dir or Path(tempfile.mkdtemp(prefix="coupon-demo-"))
    try:
        yield folder
    except (CouponWorkersError, ClientError) as error:
        raise click.ClickException(f"{error}; data and logs are in {folder}") from None
    except Exception:
        click.echo(f"data and logs are in {folder}", err=True)
        raise
    except BaseException:
        _leave(folder, data_dir, keep=keep)
        raise
    _leave(folder, data_dir, keep=keep)


def _leave(folder: Path, data_dir: Path | None, *, keep: bool) -> None:
    if keep:
        click.echo(f"data and logs are in {folder}")
    elif data_dir is None:
        shutil.rmtree(folder, ignore_errors=True)
