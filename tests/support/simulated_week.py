"""A week of a shop at a clock of its own: its scheduler, its workers, and the order centre that tells of each day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from coupon_workers.campaigns.batch_sweep import sweep_batches
from coupon_workers.claiming.gate_sweep import sweep_gates
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.finance.daily_close import close_due_day
from coupon_workers.lottery.lottery_sweep import sweep_lotteries
from coupon_workers.orders.unlock_sweep import release_overdue_locks, settle_met_events
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.run import perform_run, reconcile_due
from coupon_workers.reconciliation.run_sweep import sweep_reconciliations
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.task import Task
from coupon_workers.scheduling.job import due_runs
from coupon_workers.scheduling.job_table import TABLE
from tests.support.closing import ClosingShop, cart
from tests.support.order_shop import START
from tests.support.sale import Sale, gate_of
from tests.support.statement import give

FIRST_DAY = date(2031, 3, 4)
"""A Tuesday far ahead of PostgreSQL's clock. On the Sunday after it New York's clocks leap."""

LEFT_OUT = ("prune_history", "warn_of_expiry", "archive_coupons", "sweep_revocations", "score_accounts", "sweep_risk")
"""What forgets by the age of rows that PostgreSQL's clock has dated, or has nothing to do with the books."""

CENTRE_ZONES = {"CNY": 8, "USD": -5, "JPY": 9}


@dataclass
class Week:
    """``services`` of the shop, whose clock the week moves hour by hour."""

    shop: ClosingShop
    sale_template: int
    told: dict[date, dict[str, list[Any]]] = field(default_factory=dict)
    last: dict[str, datetime] = field(default_factory=dict)
    asleep: bool = False

    @property
    def now(self) -> datetime:
        """The week's time."""
        return self.shop.clock.now

    @property
    def sale(self) -> Sale:
        """The template that is claimed at its gate."""
        return Sale(self.shop.services, self.sale_template, gate_of(self.shop.services))

    def until(self, day: int, hour: int) -> Week:
        """Let the hours pass until this one, UTC, of the ``day``-th day: the scheduler ticks, the workers work."""
        end = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, hour, tzinfo=UTC) + timedelta(days=day)
        assert end >= self.now
        while self.now < end:
            self.shop.clock.now = min(end, self.now + timedelta(hours=1))
            if not self.asleep:
                self.tick()
        return self

    def tick(self) -> None:
        """What is due is sent, as a scheduler would send it, and done."""
        for job in TABLE:
            if job.name in LEFT_OUT:
                continue
            for logical_at in due_runs(job, self.last.get(job.name), self.now):
                self.last[job.name] = logical_at
                self.shop.services.post.send(job.task(logical_at))
        self.work()

    def work(self) -> None:
        """The workers take what lies in the post."""
        post: Any = self.shop.services.post
        while post.sent:
            self._do(post.sent.pop(0))

    def _do(self, task: Task) -> None:
        services = self.shop.services
        calls: dict[str, Callable[..., Any]] = {
            "sweep_gates": lambda: sweep_gates(services),
            "settle_claims": lambda *args: drain(services, *args),
            "preheat_template": lambda *args: preheat_template(services, *args),
            "release_overdue_locks": lambda: release_overdue_locks(services),
            "settle_order_events": lambda: settle_met_events(services),
            "expire_coupons": lambda: expire_coupons(services, services.clock()),
            "sweep_batches": lambda: sweep_batches(services),
            "close_day": lambda ms: close_due_day(services, from_ms(ms)),
            "reconcile": lambda kind, ms: reconcile_due(services, ReconKind(kind), from_ms(ms)),
            "run_reconciliation": lambda run_id: perform_run(services, run_id),
            "sweep_reconciliations": lambda: sweep_reconciliations(services),
            "sweep_codes": lambda: sweep_codes(services),
            "sweep_lotteries": lambda: sweep_lotteries(services),
            "relay_outbox": lambda: None,
            "deliver_messages": lambda *_: None,
        }
        calls[task.name](*task.args)

    def claim(self, *users: str) -> None:
        """Claims at the gate, settled, and dated by the week's clock: PostgreSQL has its own."""
        self.sale.claim_each(users, request=f"r{self.now:%d%H}")
        self.sale.drain()
        self.date_issues()

    def date_issues(self) -> None:
        """Give the issues that PostgreSQL has dated the week's time."""
        self.shop.execute(
            "UPDATE coupon_flow SET at = :now WHERE action = 'issue' AND at < :begin",
            now=self.now, begin=datetime(2031, 1, 1, tzinfo=UTC),
        )  # fmt: skip

    def buy(self, order: str, template: int, currency: str = "CNY", user: str = "ann") -> int:
        """An order over 150.00, paid at once; the order centre knows it. Its coupon."""
        self.shop.user = user
        coupon = self.shop.issue(template)
        answer = self.shop.pay_directly(order, [coupon], payment=f"pay-{order}", currency=currency, lines=cart(15_000))
        self.tell(order, user, "paid", answer["payable"], answer["discount"], currency)
        return coupon

    def lock(self, order: str, template: int, user: str = "ann") -> int:
        """A coupon locked for an order that is not paid yet."""
        self.shop.user = user
        coupon = self.shop.issue(template)
        self.shop.lock(order, [coupon], lines=cart(15_000))
        return coupon

    def refund(self, order: str, user: str = "ann") -> None:
        """A whole order goes back; the order centre knows it."""
        self.shop.user = user
        self.shop.refund(order, f"r-{order}")
        for rows in self.told.values():
            if order in rows:
                rows[order][2] = "refunded"

    def tell(self, order: str, user: str, status: str, paid: int, discount: int, currency: str) -> None:
        """What the order centre notes of an order, on its own local day."""
        local = (self.now + timedelta(hours=CENTRE_ZONES[currency])).date()
        self.told.setdefault(local, {})[order] = [order, user, status, paid, discount, currency]

    def statement(self, day: int) -> None:
        """The order centre's statement of the ``day``-th day comes."""
        on = FIRST_DAY + timedelta(days=day)
        rows = [",".join(map(str, row)) for row in self.told.get(on, {}).values()]
        give(self.shop.services, on.isoformat(), *rows)
        self.work()


def open_week(shop: ClosingShop, **columns: Any) -> Week:
    """A shop in its first hour, with a template at a gate."""
    assert shop.clock.now == START
    shop.clock.now = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC)
    week = Week(shop, shop.template(claim_end=shop.clock.now + timedelta(days=60), **columns))
    week.sale.preheat()
    return week
