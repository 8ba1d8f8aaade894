"""A demo from the first template to the last rule, on a system that runs."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from coupon_workers.access.api_key import create_key
from coupon_workers.checking.verdict_table import fact_table, verdict_table
from coupon_workers.client.client import CouponClient
from coupon_workers.demo.demo_options import DemoOptions
from coupon_workers.demo.demo_system import HOST, demo_settings, demo_system
from coupon_workers.demo.full_demo import STORIES, FullDemo
from coupon_workers.demo.stage import Stage, scale_of
from coupon_workers.embedded.readiness import wait_until_ready
from coupon_workers.embedded.running_system import READY_TIMEOUT_S, RunningSystem
from coupon_workers.load.admin_client import AdminClient
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.claim_plan import ClaimPlan
from coupon_workers.load.demo_sale import (
    PAUSE_AFTER_SHARE,
    PAUSE_SHARE,
    DemoTemplate,
    demo_plan,
    demo_templates,
    late_claims,
)
from coupon_workers.load.http_request import Address
from coupon_workers.load.load_table import load_table
from coupon_workers.load.order_client import HeardCall, OrderClient
from coupon_workers.load.order_plan import CouponLife, plan_orders, rounds
from coupon_workers.load.order_report import free_coupons, order_rules, order_table
from coupon_workers.load.outcome_count import gate_now, issued_of
from coupon_workers.load.pause_window import PauseWindow
from coupon_workers.load.process_killer import ProcessKiller
from coupon_workers.load.progress_bar import ProgressBar
from coupon_workers.load.run_report import RunReport, report_run, rules_of_a_run
from coupon_workers.load.settled import wait_for_database, wait_until_settled
from coupon_workers.load.template_making import open_templates
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import configure_logs

KILLED_LOAD_S = 40.0
"""How long a load is spread when processes are killed under it, and how long they are killed in each part of a demo:
long enough for each kind to be hit and to heal, short enough to come to an end on a slow machine too."""


def run_demo(folder: Path, options: DemoOptions, console: Console) -> RunReport:
    """Run it with data and logs in ``folder``, print the report and return it.

    Raises ``CouponWorkersError``, ``ClientError``.
    """
    with demo_system(folder) as system:
        console.print(f"ready {system.base_url}")
        settings = demo_settings(system)
        configure_logs(settings)
        services = make_services(settings)
        key = create_key(services.engine, name="demo", scopes=["admin", "storefront", "orders"]).key
        with CouponClient(system.base_url, key) as client:
            run = _Run(services, system, Address(HOST, settings.http_port, key), options, client)
            report = run.report()
            more = run.full.tables() if run.full else []
    for table in (load_table(report.counts, report.outcomes), order_table(run.heard_orders), *more):
        console.print(table)
    console.print(verdict_table(report.verdicts))
    console.print(fact_table({**report.facts, **{f"killed {name}": n for name, n in sorted(run.killed.items())}}))
    return report


class _Run:
    """One sale on a running system, and the full demo's stories behind it."""

    def __init__(
        self,
        services: Services,
        system: RunningSystem,
        address: Address,
        options: DemoOptions,
        client: CouponClient,
    ) -> None:
        self._services = services
        self._system = system
        self._address = address
        self._options = options
        self._name = f"demo-{secrets.token_hex(4)}"
        self.killed: Counter[str] = Counter()
        self.heard_orders: list[HeardCall] = []
        self.full = FullDemo(self._stage(client)) if options.full else None

    def report(self) -> RunReport:
        """Make the templates, send the claims, wait for empty queues, use the coupons, judge."""
        templates = demo_templates(utc_now(), self._name, self._options.claims)
        template_ids = self._prepare(templates)
        since = gate_now(self._services)
        plan = demo_plan(templates, template_ids, claims=self._options.claims, seed=self._options.seed)
        pause = PauseWindow(
            template_ids[0],
            after=int(self._options.claims * PAUSE_AFTER_SHARE),
            length=int(self._options.claims * PAUSE_SHARE),
        )
        with ClaimClient(self._address, connections=self._options.connections) as client:
            with ProgressBar() as bar, self._kills():
                self._send(client, pause, plan, bar)
            self._settle()
            self._sell_what_came_back(client, template_ids[0], templates[0])
        lives = self._order([int(template_id) for template_id in template_ids])
        self._play_full()
        with ProgressBar() as bar:
            self._heal()
            expected = {int(key): template.expected for key, template in zip(template_ids, templates, strict=True)}
            more = (*order_rules(self.heard_orders, lives), *(self.full.rules() if self.full else ()))
            begins = bar.names("checking", rules_of_a_run() + len(more))
            return report_run(self._services, client.history, expected, since, more=more, begins=begins)

    def _stage(self, client: CouponClient) -> Stage:
        options = self._options
        return Stage(self._services, client, self._name, options.seed, scale_of(options.claims), utc_now())

    def _prepare(self, templates: list[DemoTemplate]) -> list[str]:
        with AdminClient(self._address) as client, ProgressBar() as bar:
            bodies = [template.body for template in templates]
            template_ids = open_templates(client, bodies, run=self._name, planned=bar.counts_up)
            if self.full:
                self.full.prepare(bar.counts_up("making pool, policy, codes", STORIES))
        return template_ids

    def _send(self, client: ClaimClient, pause: PauseWindow, plan: ClaimPlan, bar: ProgressBar) -> None:
        heard = bar.counts_up("claiming", plan.claims)
        client.run(pause.among(plan), rate=self._options.rate, heard=heard, hear_admin=pause.hear)
        client.run(pause.last_calls, hear_admin=pause.hear)

    def _sell_what_came_back(self, client: ClaimClient, template_id: str, template: DemoTemplate) -> None:
        """Units of claims that the pause rejected, if they came back after the last claim: later users have them."""
        issued = issued_of(self._services, int(template_id))
        if template.expected is not None and (calls := late_claims(template_id, template.expected - issued)):
            client.run(calls)
            self._settle()

    def _settle(self) -> None:
        with ProgressBar() as bar:
            self._heal()
            wait_until_settled(self._services, left=bar.counts_down("settling"))

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

    def _play_full(self) -> None:
        """The stories, under kills like the sale; then, everything being healed and settled, their ends."""
        if self.full is None:
            return
        options = self._options
        with ProgressBar() as bar, self._kills():
            step = bar.counts_up("pool, attack, codes, draws", STORIES)
            spread = options.kill_every_s is not None
            self.full.play(self._address, connections=options.connections, spread=spread, step=step)
        self._settle()
        with ProgressBar() as bar:
            self.full.end(bar.counts_up("deciding, ending", STORIES))

    @contextmanager
    def _kills(self) -> Iterator[None]:
        every_s = self._options.kill_every_s
        supervisor = self._system.supervisor
        if every_s is None or supervisor is None:
            yield
            return
        killer = ProcessKiller(
            supervisor.process_tree, every_s=every_s, seed=self._options.seed, within_s=KILLED_LOAD_S
        )
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
