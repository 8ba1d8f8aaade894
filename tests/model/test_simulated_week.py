"""A week of claims, orders, losses and late statements: what was broken is found, and the books add up (DESIGN 10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.finance.close_reading import read_close
from coupon_workers.reconciliation.decision import approve_finding, ignore_finding
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_findings
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.run import perform_run, write_run
from coupon_workers.runtime.services import Services
from tests.support.closing import CLERK, ClosingShop
from tests.support.simulated_week import FIRST_DAY, Week, open_week

DAYS = 7


@pytest.fixture
def week(services: Services) -> Week:
    """A shop in Shanghai."""
    return open_week(ClosingShop(services), per_user_limit=None)


def _findings(week: Week, **of: object) -> list[FindingAnswer]:
    return read_findings(week.shop.services, limit=10_000, **of)[::-1]  # type: ignore[arg-type]


def _compare_all(week: Week) -> list[FindingAnswer]:
    """Everything, as of now; what is open then."""
    services = week.shop.services
    runs = [(kind, None) for kind in (ReconKind.STOCK, ReconKind.STATE, ReconKind.BATCHES)]
    runs += [(ReconKind.ORDERS, FIRST_DAY + timedelta(days=day)) for day in range(DAYS)]  # type: ignore[misc]
    for kind, day in runs:
        perform_run(services, write_run(services, services.next_id(0), kind, week.now, day, CLERK))
        week.work()
    return _findings(week, state=FindingState.OPEN)


@dataclass(frozen=True)
class Goods:
    """A template of each zone, and the coupons that something was done to."""

    cny: int
    usd: int
    jpy: int


def _tuesday(week: Week, goods: Goods) -> None:
    """Nothing is wrong but a counter."""
    week.until(0, 14).claim("ann", "bob", "cid")
    week.buy("t1", goods.cny)
    week.buy("t2", goods.usd, "USD")
    week.buy("t3", goods.jpy, "JPY")
    week.lock("t4", goods.cny)
    week.shop.execute(
        "UPDATE coupon_template SET issued_quantity = issued_quantity + 5 WHERE template_id = :id", id=goods.usd
    )


def _wednesday(week: Week, goods: Goods) -> int:
    """The gate counts a unit too few, and a coupon hangs on an order that has let it go."""
    week.until(1, 4).claim("dan")
    week.until(1, 8).statement(0)
    week.until(1, 9).refund("t1")
    week.shop.services.redis.decr(week.sale.keys.stock)
    hung = week.lock("w1", goods.cny)
    week.buy("w2", goods.cny)
    week.shop.release("w1")
    for statement in (
        "UPDATE coupon SET status = 'locked', order_no = 'w1', version = 2 WHERE coupon_id = :id",
        "DELETE FROM coupon_flow WHERE coupon_id = :id AND flow_no = 3",
    ):
        week.shop.execute(statement, id=hung)
    return hung


def _thursday(week: Week, goods: Goods) -> None:
    """Its statement stays away, and so does the scheduler, all night."""
    week.until(2, 8).statement(1)
    week.buy("h1", goods.cny)
    week.buy("h2", goods.usd, "USD", user="bob")
    week.asleep = True
    week.until(3, 6).asleep = False


def _friday(week: Week, goods: Goods) -> None:
    """The order centre lacks an order, and has another discount for a second one."""
    week.until(3, 9)
    for order in ("f1", "f2", "f3"):
        week.buy(order, goods.cny)
    told = week.told[FIRST_DAY + timedelta(days=3)]
    del told["f1"]
    told["f2"][3:5] = [12_400, 2_600]


def _saturday(week: Week, goods: Goods) -> None:
    """Another currency, refunds of which one side knows nothing, and a booking that is lost."""
    week.until(4, 8).statement(3)
    week.until(4, 9)
    for order in ("s1", "s2", "s3"):
        week.buy(order, goods.cny)
    lost = week.buy("s4", goods.cny)
    week.refund("s3")
    told = week.told[FIRST_DAY + timedelta(days=4)]
    told["s1"][5] = "USD"
    told["s2"][2] = "refunded"
    told["s3"][2] = "paid"
    week.shop.execute("DELETE FROM ledger_entry WHERE coupon_id = :id", id=lost)


def _sunday(week: Week, goods: Goods) -> None:
    """An order is paid whose lock had run out; the late statement comes; New York's clocks leap."""
    week.until(5, 8).statement(4)
    week.lock("n1", goods.cny)
    week.until(5, 10)
    week.tell("n1", "ann", "paid", 13_000, 2_000, "CNY")
    week.until(5, 12).statement(2)


def _monday(week: Week, goods: Goods) -> int:
    """An order that the order centre has closed holds its lock."""
    week.until(6, 8).statement(5)
    held = week.lock("m1", goods.cny)
    week.shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
        " received_at, tried_at) VALUES ('ann', 'e1', 'm1', 'closed', :now, '{}', '', 'refused', 'X', :now, :now)",
        now=week.now,
    )
    week.shop.execute("UPDATE coupon_order SET locked_until = locked_until + interval '2 days' WHERE order_no = 'm1'")
    week.buy("m2", goods.usd, "USD")
    week.until(7, 8).statement(6)
    week.until(8, 0)
    return held


EXPECTED = {
    ("issued_counter_differs", "repaired"): 1,
    ("gate_stock_differs", "repaired"): 1,
    ("coupon_held_by_no_order", "repaired"): 1,
    ("lock_of_closed_order", "repaired"): 1,
    ("statement_missing", "resolved"): 1,
    ("redeemed_without_order", "open"): 1,
    ("discount_differs", "open"): 1,
    ("currency_differs", "open"): 1,
    ("refund_missing_here", "open"): 1,
    ("refund_missing_there", "open"): 1,
    ("booking_missing", "open"): 1,
    ("discount_without_redemption", "open"): 1,
}


def test_a_week_in_which_everything_goes_wrong_once(week: Week) -> None:
    """Each injected difference is found, repaired or waiting, and no other; the closes add up to the ledger."""
    shop = week.shop
    goods = Goods(
        shop.template(name="Shanghai"),
        shop.template(name="New York", timezone="America/New_York", currency="USD"),
        shop.template(name="Tokyo", timezone="Asia/Tokyo", currency="JPY", amount_minor=500),
    )
    _tuesday(week, goods)
    hung = _wednesday(week, goods)
    for day in (_thursday, _friday, _saturday, _sunday):
        day(week, goods)
    held = _monday(week, goods)

    assert EXPECTED == Counter((each.finding_class, str(each.state)) for each in _findings(week))
    assert ("unused", "unused") == (shop.status(hung), shop.status(held))
    [late] = _findings(week, finding_class="statement_missing")
    assert (FIRST_DAY + timedelta(days=2)).isoformat() == late.date and late.seen_count > 1
    _decide(week)
    assert [] == _compare_all(week)
    assert {"f1": "refunded", "n1": "redeemed"} == {
        order: "refunded" if shop.read(order)["refunds"] else shop.read(order)["status"] for order in ("f1", "n1")
    }
    assert [] == check_all(shop.services, patience_s=0).breaches
    _closes_add_up(week)


def _decide(week: Week) -> None:
    """What proposes something is approved, the rest is settled with the order centre."""
    services = week.shop.services
    for finding in _findings(week, state=FindingState.OPEN):
        if finding.repair is None:
            ignore_finding(services, int(finding.finding_id), CLERK, "settled with the order centre")
        else:
            approve_finding(services, int(finding.finding_id), CLERK, None)
    week.until(8, 1)


def _closes_add_up(week: Week) -> None:
    """Every day of the week was closed by the schedule, the one without a scheduler too; all days sum to the ledger."""
    week.until(9, 12)
    shop = week.shop
    days = [FIRST_DAY + timedelta(days=day) for day in range(DAYS + 2)]
    closes = [read_close(shop.services, day) for day in days]
    closed: Counter[str] = Counter()
    for close in closes:
        assert ("closed", 1, "schedule") == (close.status, close.revision, close.closed_by)
        for total in close.totals:
            closed[total.currency] += total.expense_net
    ledger = shop.rows(
        "SELECT currency, sum(CASE 'coupon_expense' WHEN debit_account THEN amount_minor ELSE -amount_minor END)"
        " FROM ledger_entry GROUP BY currency"
    )

    assert {currency: int(net) for currency, net in ledger} == dict(closed)
