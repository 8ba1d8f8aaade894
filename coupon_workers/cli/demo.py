"""``coupon-workers demo``: a flash sale from nothing to a report, on real servers of its own."""

from __future__ import annotations

import secrets
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import SecretStr
from rich.console import Console

from coupon_workers.access.api_key import create_key
from coupon_workers.checking.verdict_table import fact_table, verdict_line, verdict_table
from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.readiness import wait_until_ready
from coupon_workers.embedded.running_system import HTTP_PORT, READY_TIMEOUT_S, RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.errors import CouponWorkersError
from coupon_workers.load.admin_client import AdminClient
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.claim_plan import ClaimPlan
from coupon_workers.load.demo_sale import FEWEST_CLAIMS, PAUSE_AFTER_SHARE, PAUSE_SHARE, demo_plan, demo_templates
from coupon_workers.load.history import ClaimHistory
from coupon_workers.load.http_request import Address
from coupon_workers.load.load_table import load_table
from coupon_workers.load.order_client import HeardCall, OrderClient
from coupon_workers.load.order_plan import CouponLife, plan_orders, rounds
from coupon_workers.load.order_report import free_coupons, order_rules, order_table
from coupon_workers.load.outcome_count import gate_now
from coupon_workers.load.pause_window import PauseWindow
from coupon_workers.load.process_killer import ProcessKiller
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.load.run_report import RunReport, report_run, rules_of_a_run
from coupon_workers.load.settled import wait_for_database, wait_until_settled
from coupon_workers.load.template_making import open_templates
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.structured_log import configure_logs

_HOST = "127.0.0.1"
_KILLED_LOAD_S = 40.0
"""How long a load is spread when processes are killed under it: long enough for each kind to be hit and to heal."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for."""

    claims: int
    orders: int
    seed: int
    connections: int
    rate: float | None
    kill_every_s: float | None


@click.command(short_help="Hold a flash sale on own servers, check every rule.")
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
def demo(
    claims: int,
    orders: int,
    seed: int,
    concurrency: int,
    rate: float | None,
    kill_every_s: float | None,
    data_dir: Path | None,
) -> None:
    """Hold a flash sale on servers of our own and check every rule.

    Starts everything, publishes a hot template (stock 2,000) and some quiet ones, sends claims over HTTP with repeats,
    retries and a pause in the middle, waits for empty queues, uses the coupons on orders (locks, payments, refunds,
    cancellations, twice and at once), and reports. Exits 1 when a rule is broken, 130 when it
    is interrupted.
    """
    if rate is None and kill_every_s is not None:
        rate = claims / _KILLED_LOAD_S
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is stopped, as on Ctrl-C
    console = Console()
    with _folder(data_dir) as folder:
        began = time.monotonic()
        report = run_demo(folder, DemoOptions(claims, orders, seed, concurrency, rate, kill_every_s), console)
        click.echo(verdict_line(report.verdicts, after_s=time.monotonic() - began))
        if not report.holds:
            raise CouponWorkersError("a rule is broken")


@contextmanager
def _folder(data_dir: Path | None) -> Iterator[Path]:
    """Where data and logs lie; a temporary folder is removed, unless something is wrong."""
    folder = data_dir or Path(tempfile.mkdtemp(prefix="coupon-demo-"))
    try:
        yield folder
    except CouponWorkersError as error:
        raise click.ClickException(f"{error}; data and logs are in {folder}") from None
    except BaseException:
        _remove(folder, data_dir)
        raise
    _remove(folder, data_dir)


def _remove(folder: Path, data_dir: Path | None) -> None:
    if data_dir is None:
        shutil.rmtree(folder, ignore_errors=True)


def run_demo(folder: Path, options: DemoOptions, console: Console) -> RunReport:
    """Run it with data and logs in ``folder``, print the report and return it. Raises ``CouponWorkersError``."""
    with _system(folder) as system:
        console.print(f"ready {system.base_url}")
        settings = _settings(system)
        configure_logs(settings)
        services = make_services(settings)
        key = create_key(services.engine, name="demo", scopes=["admin", "storefront", "orders"]).key
        run = _Run(services, system, Address(_HOST, settings.http_port, key), options)
        report = run.report()
    console.print(load_table(report.counts, report.outcomes))
    console.print(order_table(run.heard_orders))
    console.print(verdict_table(report.verdicts))
    console.print(fact_table({**report.facts, **{f"killed {name}": n for name, n in sorted(run.killed.items())}}))
    return report


@contextmanager
def _system(folder: Path) -> Iterator[RunningSystem]:
    # With a storefront to look at while it lasts.
    own_servers = {DATABASE_URL: "", REDIS_URL: "", BROKER_URL: "", "COUPON_SHOP": "true"}
    with RunningSystem(folder, host=_HOST, overrides=own_servers, output=LogFolder(folder / "logs")) as system:
        yield system


def _settings(system: RunningSystem) -> Settings:
    return Settings(
        database_url=SecretStr(system.env[DATABASE_URL]),
        redis_url=SecretStr(system.env[REDIS_URL]),
        broker_url=SecretStr(system.env[BROKER_URL]),
        http_host=_HOST,
        http_port=int(system.env[HTTP_PORT]),
        log_level="ERROR",
        log_format="console",
    )


class _Run:
    """One sale on a running system."""

    def __init__(self, services: Services, system: RunningSystem, address: Address, options: DemoOptions) -> None:
        self._services = services
        self._system = system
        self._address = address
        self._options = options
        self._name = f"demo-{secrets.token_hex(4)}"
        self.killed: Counter[str] = Counter()
        self.heard_orders: list[HeardCall] = []

    def report(self) -> RunReport:
        """Make the templates, send the claims, wait for empty queues, judge."""
        templates = demo_templates(utc_now(), self._name, self._options.claims)
        with AdminClient(self._address) as client:
            with ProgressBar() as bar:
                bodies = [template.body for template in templates]
                template_ids = open_templates(client, bodies, run=self._name, planned=bar.counts_up)
        since = gate_now(self._services)
        plan = demo_plan(templates, template_ids, claims=self._options.claims, seed=self._options.seed)
        pause = PauseWindow(
            template_ids[0],
            after=int(self._options.claims * PAUSE_AFTER_SHARE),
            length=int(self._options.claims * PAUSE_SHARE),
        )
        with ProgressBar() as bar, self._kills():
            history = self._send(pause, plan, bar)
        with ProgressBar() as bar:
            self._heal()
            wait_until_settled(self._services, left=bar.counts_down("settling"))
        lives = self._order([int(template_id) for template_id in template_ids])
        with ProgressBar() as bar:
            self._heal()
            expected = {
                int(template_id): None if template.paused and self.killed else template.expected
                for template_id, template in zip(template_ids, templates, strict=True)
            }
            more = order_rules(self.heard_orders, lives)
            begins = bar.names("checking", rules_of_a_run() + len(more))
            return report_run(self._services, history, expected, since, more=more, begins=begins)

    def _send(self, pause: PauseWindow, plan: ClaimPlan, bar: ProgressBar) -> ClaimHistory:
        with ClaimClient(self._address, connections=self._options.connections) as client:
            heard = bar.counts_up("claiming", plan.claims)
            client.run(pause.among(plan), rate=self._options.rate, heard=heard, hear_admin=pause.hear)
            client.run(pause.last_calls, hear_admin=pause.hear)
            return client.history

    def _order(self, template_ids: list[int]) -> list[CouponLife]:
        """Use the coupons that were issued on orders."""
        coupons = free_coupons(self._services, template_ids)
        lives = plan_orders(coupons, calls=self._options.orders, seed=self._options.seed, now=utc_now(), run=self._name)
        planned = sum(len(step) for life in lives for step in life.steps)
        with ProgressBar() as bar, self._kills():
            with OrderClient(self._address, connections=self._options.connections) as client:
                heard = bar.counts_up("ordering", planned)
                for calls in rounds(lives):
                    client.run(calls, heard)
                self.heard_orders = client.heard
        return lives

    @contextmanager
    def _kills(self) -> Iterator[None]:
        every_s = self._options.kill_every_s
        supervisor = self._system.supervisor
        if every_s is None or supervisor is None:
            yield
            return
        killer = ProcessKiller(supervisor.process_tree, every_s=every_s, seed=self._options.seed)
        killer.start()
        try:
            yield
        finally:
            killer.stop()
            self.killed += killer.killed

    def _heal(self) -> None:
        if self.killed:
            wait_until_ready(self._system.base_url, READY_TIMEOUT_S, lambda: None)
            wait_for_database(self._services, READY_TIMEOUT_S)
