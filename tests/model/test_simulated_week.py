"""A week of claims, orders, losses and late statements: what was broken is found, and the books add up (DESIGN 10)."""

from __future__ import annotations

from collections import Counter
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


def _of_class(week: Week, finding_class: str) -> FindingAnswer:
    [finding] = _findings(week, finding_class=finding_class)
    return finding


def _compare_all(week: Week) -> list[FindingAnswer]:
    """Everything, as of now; what is open then."""
    services = week.shop.services
    runs = [(kind, None) for kind in (ReconKind.STOCK, ReconKind.STATE, ReconKind.BATCHES)]
    runs += [(ReconKind.ORDERS, FIRST_DAY + timedelta(days=day)) for day in range(DAYS)]  # type: ignore[misc]
    for kind, day in runs:
        perform_run(services, write_run(services, services.next_id(0), kind, week.now, day, CLERK))
        week.work()
    return _findings(week, state=FindingState.OPEN)


def test_a_week_in_which_everything_goes_wrong_once(week: Week) -> None:
    """Each injected difference is found, repaired or waiting, and no other; the closes add up to the ledger."""
    shop = week.shop
    cny = shop.template(name="Shanghai")
    usd = shop.template(name="New York", timezone="America/New_York", currency="USD")
    jpy = shop.template(name="Tokyo", timezone="Asia/Tokyo", currency="JPY", amount_minor=500)

    # Tuesday: nothing is wrong but a counter.
    week.until(0, 14).claim("ann", "bob", "cid")
    week.buy("t1", cny)
    week.buy("t2", usd, "USD")
    week.buy("t3", jpy, "JPY")
    week.lock("t4", cny)
    shop.execute("UPDATE coupon_template SET issued_quantity = issued_quantity + 5 WHERE template_id = :id", id=usd)

    # Wednesday: the gate counts a unit too few, and a coupon hangs on an order that is no more.
    week.until(1, 4).claim("dan")
    week.until(1, 8).statement(0)
    week.until(1, 9).refund("t1")
    shop.services.redis.decr(week.sale.keys.stock)
    hung = week.lock("w1", cny)
    week.buy("w2", cny)
    shop.release("w1")
    shop.execute("UPDATE coupon SET status = 'locked', order_no = 'w1' WHERE coupon_id = :id", id=hung)
    shop.execute("UPDATE coupon_flow SET to_status = 'locked', from_status = 'unused', action = 'lock'"
                 " WHERE coupon_id = :id AND flow_no = 3", id=hung)  # fmt: skip
    shop.execute("DELETE FROM coupon_flow WHERE coupon_id = :id AND flow_no = 3", id=hung)
    shop.execute("UPDATE coupon SET version = 2 WHERE coupon_id = :id", id=hung)

    # Thursday: its statement stays away, and so does the scheduler, all night.
    week.until(2, 8).statement(1)
    week.buy("h1", cny)
    week.buy("h2", usd, "USD", user="bob")
    week.asleep = True
    week.until(3, 6).asleep = False

    # Friday: the order centre lacks an order, and has another discount for a second one.
    week.until(3, 9)
    week.buy("f1", cny)
    week.buy("f2", cny)
    week.buy("f3", cny)
    friday = week.told[FIRST_DAY + timedelta(days=3)]
    del friday["f1"]
    friday["f2"][3:5] = [12_400, 2_600]

    # Saturday: another currency, and refunds of which one side knows nothing. A booking is lost.
    week.until(4, 8).statement(3)
    week.until(4, 9)
    week.buy("s1", cny)
    week.buy("s2", cny)
    week.buy("s3", cny)
    lost = week.buy("s4", cny)
    saturday = week.told[FIRST_DAY + timedelta(days=4)]
    saturday["s1"][5] = "USD"
    saturday["s2"][2] = "refunded"
    week.refund("s3")
    saturday["s3"][2] = "paid"
    shop.execute("DELETE FROM ledger_entry WHERE coupon_id = :id", id=lost)

    # Sunday: an order was paid whose lock had run out; the late statement of Thursday comes; New York's clocks leap.
    week.until(5, 8).statement(4)
    week.lock("n1", cny)
    week.until(5, 10)
    week.tell("n1", "ann", "paid", 13_000, 2_000, "CNY")
    week.until(5, 12).statement(2)

    # Monday: claims whose bell was lost, while the sweeps do nothing; an order that was closed and holds its lock.
    week.until(6, 8).statement(5)
    closed = week.lock("m1", cny)
    shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
        " received_at, tried_at) VALUES ('ann', 'e1', 'm1', 'closed', :now, '{}', '', 'refused', 'X', :now, :now)",
        now=week.now,
    )
    shop.execute("UPDATE coupon_order SET locked_until = locked_until + interval '2 days' WHERE order_no = 'm1'")
    week.buy("m2", usd, "USD")
    week.until(7, 8).statement(6)
    week.until(8, 0)

    found = Counter((each.finding_class, str(each.state)) for each in _findings(week))
    assert {
        ("issued_counter_differs", "repaired"): 1,
        ("gate_stock_differs", "repaired"): 1,
        ("coupon_held_by_no_order", "repaired"): 1,
        ("statement_missing", "resolved"): 1,
        ("redeemed_without_order", "open"): 1,
        ("discount_differs", "open"): 1,
        ("currency_differs", "open"): 1,
        ("refund_missing_here", "open"): 1,
        ("refund_missing_there", "open"): 1,
        ("booking_missing", "open"): 1,
        ("discount_without_redemption", "open"): 1,
        ("lock_of_closed_order", "repaired"): 1,
    } == found
    assert ("unused", "unused") == (shop.status(hung), shop.status(closed))
    late = _of_class(week, "statement_missing")
    assert (FIRST_DAY + timedelta(days=2)).isoformat() == late.date and late.seen_count > 1

    # The clerk decides: what proposes something is done, the rest is settled by hand.
    for finding in _findings(week, state=FindingState.OPEN):
        if finding.repair is None:
            ignore_finding(shop.services, int(finding.finding_id), CLERK, "settled with the order centre")
        else:
            approve_finding(shop.services, int(finding.finding_id), CLERK, None)
    week.until(8, 1)

    assert [] == _compare_all(week)
    assert {"f1": "refunded", "n1": "redeemed"} == {
        order: "refunded" if shop.read(order)["refunds"] else shop.read(order)["status"] for order in ("f1", "n1")
    }
    assert check_all(shop.services, patience_s=0).holds, check_all(shop.services, patience_s=0).breaches
    _closes_add_up(week)


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
