"""Every invariant asked, one after the other (DESIGN 3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from coupon_workers.checking.archive_books import archive_books
from coupon_workers.checking.batch_books import batch_books
from coupon_workers.checking.breach import Breach
from coupon_workers.checking.closed_day import closed_day
from coupon_workers.checking.code_books import code_books
from coupon_workers.checking.conservation import conservation
from coupon_workers.checking.daily_limit import daily_limit
from coupon_workers.checking.fact import facts
from coupon_workers.checking.flow_history import flow_history
from coupon_workers.checking.issued_count import issued_count
from coupon_workers.checking.ledger_use import ledger_use
from coupon_workers.checking.live_use import live_use
from coupon_workers.checking.lottery_books import lottery_books
from coupon_workers.checking.lottery_gate import lottery_gate
from coupon_workers.checking.never_over_issued import never_over_issued
from coupon_workers.checking.no_lost_claim import no_lost_claim
from coupon_workers.checking.one_effect import one_effect
from coupon_workers.checking.order_money import order_money
from coupon_workers.checking.order_use import order_use
from coupon_workers.checking.overdue_order import overdue_order
from coupon_workers.checking.patience import PATIENCE_S
from coupon_workers.checking.pool_books import pool_books
from coupon_workers.checking.pool_values import pool_values
from coupon_workers.checking.refund_money import refund_money
from coupon_workers.checking.rejected_count import rejected_count
from coupon_workers.checking.request_memory import request_memory
from coupon_workers.checking.restocked_count import restocked_count
from coupon_workers.checking.taker_count import taker_count
from coupon_workers.checking.time_zone import time_zone
from coupon_workers.checking.transfer_link import transfer_link
from coupon_workers.checking.use_history import use_history
from coupon_workers.checking.user_limit import user_limit
from coupon_workers.runtime.services import Services


@dataclass(frozen=True, slots=True)
class Invariant:
    """A rule: its name, what it says, and the question that finds its breaches."""

    name: str
    statement: str
    find: Callable[[Services], list[Breach]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """An invariant with the breaches found of it, at most ``BREACH_LIMIT``, and the seconds it took to ask."""

    name: str
    statement: str
    breaches: tuple[Breach, ...]
    elapsed_s: float

    @property
    def holds(self) -> bool:
        """Whether no breach was found."""
        return not self.breaches


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict of each invariant, and facts beside them."""

    verdicts: tuple[Verdict, ...]
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every invariant holds."""
        return all(verdict.holds for verdict in self.verdicts)

    @property
    def breaches(self) -> list[Breach]:
        """Every breach that was found."""
        return [breach for verdict in self.verdicts for breach in verdict.breaches]


def invariants(patience_s: float = PATIENCE_S) -> tuple[Invariant, ...]:
    """The rules, those of one store first. ``patience_s``: see ``checking/patience.py``."""
    return (
        Invariant("never_over_issued", "issued rows <= total, per template", never_over_issued),
        Invariant("issued_count", "issued_quantity = coupon rows", issued_count),
        Invariant("restocked_count", "units of revoked coupons went back once", restocked_count),
        Invariant("rejected_count", "rejected_quantity = rejection rows", rejected_count),
        Invariant("user_limit", "coupons <= limit, per user and template", user_limit),
        Invariant("daily_limit", "coupons <= limit, per user, template and local day", daily_limit),
        Invariant("time_zone", "PostgreSQL and the gate tell the same local time", time_zone),
        Invariant("one_effect", "one effect per request, one end per claim", one_effect),
        Invariant("batch_books", "a batch's rows add up, its units are in its template's books", batch_books),
        Invariant("archive_books", "what was archived is whole, over for good, and counted once", archive_books),
        Invariant("code_books", "a used code has one coupon, a batch's counts are those of its codes", code_books),
        Invariant("lottery_books", "a lottery's counts are its draws', one coupon a draw that won it", lottery_books),
        Invariant("transfer_link", "received coupons stand for given ones, one for one", transfer_link),
        Invariant("pool_books", "a pool is its budget, its issued values are the coupons'", pool_books),
        Invariant("flow_history", "history replays to the state", flow_history),
        Invariant("live_use", "one active use per coupon, as the coupon says", live_use),
        Invariant("order_use", "an order's coupons are in its own state", order_use),
        Invariant("use_history", "a coupon's history is what became of it on each order", use_history),
        Invariant("order_money", "shares sum to discounts, discounts to what an order is less", order_money),
        Invariant("refund_money", "refunds sum to what is booked, never above what was paid", refund_money),
        Invariant("ledger_use", "the ledger has each discount and each reversal once", ledger_use),
        Invariant("closed_day", "a closed day is the ledger's and the history's, to the last unit", closed_day),
        Invariant(
            "overdue_order",
            "no lock and no waiting event outlives its deadline",
            partial(overdue_order, patience_s=patience_s),
        ),
        Invariant(
            "conservation",
            "total = stock + queued + issued + reserved, per warm template",
            partial(conservation, patience_s=patience_s),
        ),
        Invariant(
            "pool_values",
            "issued, queued and listed values are the pool, one for one",
            partial(pool_values, patience_s=patience_s),
        ),
        Invariant(
            "lottery_gate",
            "left of a prize = its stock at the gate + what is queued; each draw is remembered",
            partial(lottery_gate, patience_s=patience_s),
        ),
        Invariant("no_lost_claim", "what is called queued is in the stream", no_lost_claim),
        Invariant(
            "request_memory",
            "the gate remembers each request as it ended",
            partial(request_memory, patience_s=patience_s),
        ),
        Invariant(
            "taker_count",
            "the gate counts a user's coupons and queued claims, in all and today",
            partial(taker_count, patience_s=patience_s),
        ),
    )


def check_all(
    services: Services, *, patience_s: float = PATIENCE_S, begins: Callable[[Invariant], None] | None = None
) -> Report:
    """Ask every invariant; ``begins`` is told each before it is asked. Raises ``StoreUnavailable``."""
    verdicts = []
    for invariant in invariants(patience_s):
        if begins is not None:
            begins(invariant)
        verdicts.append(judge(invariant, services))
    return Report(tuple(verdicts), facts(services))


def judge(invariant: Invariant, services: Services) -> Verdict:
    """The verdict on one invariant. Raises ``StoreUnavailable``."""
    started = time.monotonic()
    breaches = invariant.find(services)
    return Verdict(invariant.name, invariant.statement, tuple(breaches), time.monotonic() - started)
