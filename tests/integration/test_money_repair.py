"""Repairs of an order and its money: done once, to the last unit, and the difference is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.reconciliation.finding_reading import FindingAnswer
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.money_repair import book_difference, book_missing, redeem_order, refund_order
from coupon_workers.reconciliation.safe_repair import SafeRepair
from coupon_workers.runtime.services import Services
from tests.support.closing import CLERK, ClosingShop, cart
from tests.support.order_books import refused_without_a_trace
from tests.support.order_shop import refused
from tests.support.reconciling import ReconDesk
from tests.support.statement import Comparison

DAY, NEXT = "2026-11-11", "2026-11-12"
NOON = f"{DAY}T12:00+08:00"
MORNING = f"{NEXT}T09:00+08:00"


@pytest.fixture
def compared(services: Services) -> Comparison:
    """Noon in Shanghai."""
    return Comparison(ClosingShop(services).at(NOON))


def _one(compared: Comparison, *rows: str) -> FindingAnswer:
    """The one finding that the next morning's statement leads to."""
    compared.at(MORNING).give(DAY, *rows)
    compared.shop.clock.pass_by(minutes=1)
    [finding] = compared.reconcile(DAY)
    return finding


def _gone(compared: Comparison) -> bool:
    """Whether nothing differs any more, and every rule holds."""
    compared.shop.clock.pass_by(minutes=1)
    return not compared.found(DAY) and check_all(compared.shop.services, patience_s=0).holds


def test_an_order_that_was_paid_is_redeemed(compared: Comparison) -> None:
    """By a payment that bears the finding's number, on the day on which it is approved."""
    shop = compared.shop
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    compared.at(MORNING).shop.sweep()  # it was let go meanwhile
    finding = _one(compared, "o1,ann,paid,13000,2000,CNY")

    done = compared.approve(finding)

    number = f"finding-{finding.finding_id}"
    assert {"order_no": "o1", "payment_no": number, "discount": 2_000, "payable": 13_000} == done.outcome
    assert (FindingState.APPROVED, CLERK) == (done.state, done.decided_by)
    assert ("redeemed", number, 2_000) == (shop.status(coupon), shop.read("o1")["payment_no"], shop.expense())
    assert _gone(compared)
    assert [] == compared.found(NEXT)


def test_an_event_that_has_waited_for_the_payment_goes_with_it(compared: Comparison) -> None:
    """A refund that was heard before: the order is returned in the same transaction."""
    shop = compared.shop
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.tell("e1", "o1", "refunded", shop.clock.now, full=True)
    finding = _one(compared, "o1,ann,paid,13000,2000,CNY")

    compared.approve(finding)

    assert ("unused", 0) == (shop.status(coupon), shop.expense())


def test_a_coupon_that_is_gone_is_not_redeemed(compared: Comparison) -> None:
    """The refusal says which order has it; the finding stays open, and nothing was written."""
    shop = compared.shop
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.release("o1")
    finding = _one(compared, "o1,ann,paid,13000,2000,CNY")
    shop.pay_directly("o2", [coupon])

    code, evidence = refused_without_a_trace(shop, partial(compared.approve, finding))

    assert ("LOCK_EXPIRED", "o2") == (code, evidence["order_no"])
    assert [("discount_without_redemption", "open")] == compared.states(DAY)


@pytest.mark.parametrize("row", ["o1,ann,refunded,13000,2000,CNY", "o1,ann,closed,0,0,CNY", "o2,ann,closed,0,0,CNY"])
def test_what_is_left_of_an_order_is_returned(compared: Comparison, row: str) -> None:
    """Returned there, closed there, or unknown there: afterwards it costs nothing here."""
    shop = compared.shop
    coupon = shop.buy("o1", shop.template())
    shop.refund("o1", "r1", [("2", 1)])
    finding = _one(compared, row)

    done = compared.approve(finding)

    assert done.outcome is not None
    assert (f"finding-{finding.finding_id}", finding.amount) == (
        done.outcome["refund_no"], done.outcome["discount_reversed"],
    )  # fmt: skip
    assert ("unused", 0) == (shop.status(coupon), shop.expense())
    assert _gone(compared)


def test_an_order_that_was_returned_meanwhile_is_not_returned_again(compared: Comparison) -> None:
    """The refusal says so, and the next run finds the difference gone."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    finding = _one(compared, "o1,ann,refunded,13000,2000,CNY")
    shop.refund("o1", "r1")

    assert "NOTHING_LEFT" == refused(partial(compared.approve, finding))[0]
    shop.clock.pass_by(minutes=1)
    compared.reconcile(DAY)
    assert [("refund_missing_here", "resolved")] == compared.states(DAY)


def test_a_refund_number_that_was_used_by_hand_is_refused(compared: Comparison) -> None:
    """The number of the finding belongs to something else."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    finding = _one(compared, "o1,ann,refunded,13000,2000,CNY")
    shop.refund("o1", f"finding-{finding.finding_id}", [("2", 1)])

    assert "NUMBER_TAKEN" == refused(partial(compared.approve, finding))[0]


@pytest.mark.parametrize(
    ("currency", "row", "more"),
    [
        ("CNY", "o1,ann,paid,12500,2500,CNY", 500),
        ("CNY", "o1,ann,paid,15000,0,CNY", -2_000),
        ("JPY", "o1,ann,paid,13001,1999,JPY", -1),
        ("KWD", "o1,ann,paid,3000,12000,KWD", 10_000),
        ("CNY", "o1,ann,paid,13000,2500,CNY", 500),
    ],
)
def test_the_amount_that_differs_is_booked(compared: Comparison, currency: str, row: str, more: int) -> None:
    """More or less, in any currency, on the day on which it is approved; then both say the same."""
    shop = compared.shop
    coupon = shop.buy("o1", shop.template(currency=currency), currency=currency)
    finding = _one(compared, row)

    done = compared.approve(finding)

    number = f"finding-{finding.finding_id}"
    assert done.outcome is not None
    assert [{"reference": number, "coupon_no": str(coupon), "amount": more}] == done.outcome["adjustments"]
    assert 2_000 + more == shop.expense()
    [(day, operator, reason)] = shop.rows(
        "SELECT business_date, operator, reason FROM ledger_entry WHERE reference = :number", number=number
    )
    assert (NEXT, CLERK, "discount_differs: order o1 of ann") == (str(day), operator, reason)
    assert _gone(compared)


@pytest.mark.parametrize("there", [0, 2_500])
def test_what_was_adjusted_of_an_order_is_taken_back_when_all_is_returned(compared: Comparison, there: int) -> None:
    """It costs nothing on either side then, whatever was off."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    compared.approve(_one(compared, f"o1,ann,paid,{15_000 - there},{there},CNY"))
    shop.clock.pass_by(minutes=1)
    shop.refund("o1", "r1")
    compared.give(DAY, f"o1,ann,refunded,{15_000 - there},{there},CNY")
    shop.clock.pass_by(minutes=1)

    finding = compared.reconcile(DAY)[-1]
    compared.approve(finding)

    assert ("discount_differs", 2_000 - there) == (finding.finding_class, finding.amount)
    assert 0 == shop.expense()
    assert _gone(compared)


def test_an_amount_is_split_over_the_coupons_of_the_order(compared: Comparison) -> None:
    """In proportion to what each took off, to the last unit; a coupon without a share is not booked."""
    shop = compared.shop
    coupons = [shop.issue(shop.template(amount_minor=amount, threshold_minor=0)) for amount in (3_000, 2_000, 1)]
    shop.pay_directly("o1", coupons, lines=cart(15_000))
    finding = _one(compared, "o1,ann,paid,9996,5004,CNY")

    done = compared.approve(finding)

    assert done.outcome is not None
    assert {str(coupons[0]): 2, str(coupons[1]): 1} == {
        each["coupon_no"]: each["amount"] for each in done.outcome["adjustments"]
    }
    assert 5_004 == shop.expense()
    assert _gone(compared)


def test_an_order_that_was_adjusted_meanwhile_is_not_adjusted_again(compared: Comparison) -> None:
    """A person was faster: the amount that was approved is no more the one that differs."""
    shop = compared.shop
    coupon = shop.buy("o1", shop.template())
    finding = _one(compared, "o1,ann,paid,12500,2500,CNY")
    shop.adjust("t1", coupon, 100)

    code, evidence = refused_without_a_trace(shop, partial(compared.approve, finding))

    assert ("FINDING_OUTDATED", {"discount": 2_100}) == (code, evidence)
    shop.clock.pass_by(minutes=1)
    [again] = compared.reconcile(DAY)
    assert (400, 100) == (again.amount, again.evidence["here"]["adjusted"])
    compared.approve(again)
    assert 2_500 == shop.expense()


def test_a_finding_is_repaired_once_however_many_approve_it(compared: Comparison) -> None:
    """At once, and again later."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    finding = _one(compared, "o1,ann,paid,12500,2500,CNY")

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: compared.approve(finding), range(8)))

    assert [done[0]] * 9 == [*done, compared.approve(finding)]
    assert 2_500 == shop.expense()


@pytest.mark.parametrize("kind", ["redeem", "refund"])
def test_a_booking_that_is_missing_is_made_up_for(compared: Comparison, kind: str) -> None:
    """On the coupon's own account, once, whichever way the money goes; the books hold then."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    shop.refund("o1", "r1", [("1", 1)])
    before = shop.expense()
    shop.execute("DELETE FROM ledger_entry WHERE kind = :kind", kind=kind)
    lost = before - shop.expense()
    shop.clock.pass_by(minutes=1)
    desk = ReconDesk(shop.services, shop.clock.now)
    [finding] = desk.reconcile(ReconKind.STATE)

    done = compared.approve(finding)

    assert ("booking_missing", FindingState.OPEN, abs(lost)) == (finding.finding_class, finding.state, finding.amount)
    assert [lost] == [each["amount"] for each in (done.outcome or {})["adjustments"]]
    assert before == shop.expense()
    assert [] == desk.later(minutes=1).reconcile(ReconKind.STATE)
    assert check_all(shop.services, patience_s=0).holds


def test_a_booking_that_somebody_has_made_up_for_is_not_made_up_for_again(compared: Comparison) -> None:
    """A person was faster."""
    shop = compared.shop
    coupon = shop.buy("o1", shop.template())
    shop.execute("DELETE FROM ledger_entry")
    shop.clock.pass_by(minutes=1)
    [finding] = ReconDesk(shop.services, shop.clock.now).reconcile(ReconKind.STATE)
    shop.adjust("t1", coupon, 2_000)

    assert "FINDING_OUTDATED" == refused_without_a_trace(shop, partial(compared.approve, finding))[0]
    assert 2_000 == shop.expense()


@pytest.mark.parametrize("there", [2_500, 2_600])
def test_a_booking_and_a_discount_of_one_order_are_not_mended_to_and_fro(compared: Comparison, there: int) -> None:
    """What makes up for a lost booking is no other discount; what a statement corrects is no lost booking."""
    shop = compared.shop
    coupons = [shop.issue(shop.template(amount_minor=amount, threshold_minor=0)) for amount in (2_000, 500)]
    shop.pay_directly("o1", coupons, lines=cart(15_000))
    shop.execute("DELETE FROM ledger_entry WHERE coupon_id = :id", id=coupons[1])
    compared.at(MORNING).give(DAY, f"o1,ann,paid,{15_000 - there},{there},CNY")
    shop.clock.pass_by(minutes=1)
    desk = ReconDesk(shop.services, shop.clock.now)

    for finding in [*compared.reconcile(DAY), *desk.reconcile(ReconKind.STATE)]:
        compared.approve(finding)

    assert there == shop.expense()
    assert [] == desk.later(minutes=1).reconcile(ReconKind.STATE)
    assert _gone(compared)


REPAIRS: dict[str, tuple[SafeRepair, str]] = {
    "redeem": (redeem_order, "locked"),
    "refund": (refund_order, "paid"),
    "book": (book_difference, "paid"),
    "make up": (book_missing, "paid"),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_may_run_twice(compared: Comparison, name: str) -> None:
    """The second time it tells what the first did."""
    repair, state = REPAIRS[name]
    shop = compared.shop
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    if state == "paid":
        shop.pay("o1")
    finding: dict[str, Any] = {
        "finding_id": 17, "user_id": "ann", "order_no": "o1", "amount_minor": 70, "currency": "CNY",
        "finding_class": "x", "subject": "y", "coupon_id": coupon if name == "make up" else None,
        "evidence": {"here": {"discount": 2_000, "adjusted": 0}, "net_minor": 2_000, "missing_minor": 70},
    }  # fmt: skip

    told = []
    for _ in range(2):
        with shop.services.engine.begin() as connection:
            told.append(repair(connection, shop.services, finding, shop.clock.now, CLERK))
        before = shop.ledger()

    assert told[0] == told[1]
    assert len(set(before)) == len(before)
    assert check_all(shop.services, patience_s=0).holds


@pytest.mark.parametrize("name", sorted(REPAIRS.keys() - {"make up"}))
def test_an_order_that_is_unknown_is_refused(compared: Comparison, name: str) -> None:
    """Another user's likewise."""
    shop = compared.shop
    shop.buy("o1", shop.template())
    finding = {"finding_id": 17, "user_id": "bob", "order_no": "o1", "amount_minor": 1, "evidence": {}}

    def repair() -> object:
        with shop.services.engine.begin() as connection:
            return REPAIRS[name][0](connection, shop.services, finding, shop.clock.now, CLERK)

    assert ("ORDER_NOT_FOUND", {}) == refused(repair)


def test_paid_in_time_or_late_both_sides_agree(compared: Comparison) -> None:
    """CASES 12 from the statement's side: 14:59, 15:01 with the coupon free, and 15:01 with it gone."""
    shop = compared.shop
    template = shop.template()
    coupons = {order: shop.issue(template) for order in ("in-time", "late", "gone")}
    for order, coupon in coupons.items():
        shop.lock(order, [coupon])
    shop.clock.pass_by(minutes=14, seconds=59)
    shop.pay("in-time", "p1")
    shop.clock.pass_by(seconds=2)
    shop.sweep()
    shop.pay("late", "p2")
    shop.pay_directly("other", [coupons["gone"]], payment="p3")
    assert "LOCK_EXPIRED" == refused(partial(shop.pay, "gone", "p4"))[0]

    # The order centre took the money of the last one all the same.
    rows = [f"{order},ann,paid,13000,2000,CNY" for order in (*coupons, "other")]
    finding = _one(compared, *rows)

    assert ("discount_without_redemption", "order gone of ann") == (finding.finding_class, finding.subject)


def test_an_order_that_was_closed_in_many_ways_agrees(compared: Comparison) -> None:
    """CASES 13 from the statement's side: released, timed out, cancelled twice, closed after its payment."""
    shop = compared.shop
    template = shop.template()
    for order in ("buyer", "timeout", "twice", "after"):
        shop.lock(order, [shop.issue(template)])
    shop.release("buyer")
    shop.release("twice")
    shop.release("twice", "operator")
    shop.pay("after")
    shop.clock.pass_by(minutes=1)
    shop.tell("e1", "after", "closed", shop.clock.now)
    shop.clock.pass_by(minutes=15)
    shop.sweep()

    compared.at(MORNING).give(DAY, *[f"{o},ann,closed,0,2000,CNY" for o in ("buyer", "timeout", "twice", "after")])

    assert [] == compared.found(DAY)


def test_a_payment_that_was_told_thrice_or_out_of_order_agrees(compared: Comparison) -> None:
    """CASES 16 from the statement's side: ``closed`` heard before ``paid`` of the same order, whichever was last."""
    shop = compared.shop
    template = shop.template()
    start = shop.clock.now
    for order in ("thrice", "closed-last", "paid-last"):
        shop.lock(order, [shop.issue(template)])
    shop.clock.pass_by(minutes=5)
    for event in ("e1", "e1", "e1"):
        shop.tell(event, "thrice", "paid", start, payment_no="p1")
    shop.tell("e2", "closed-last", "closed", shop.clock.now)
    shop.tell("e3", "closed-last", "paid", start, payment_no="p2")
    shop.tell("e4", "paid-last", "closed", start)
    shop.tell("e5", "paid-last", "paid", shop.clock.now, payment_no="p3")

    compared.at(MORNING).give(
        DAY,
        "thrice,ann,paid,13000,2000,CNY",
        "closed-last,ann,closed,13000,2000,CNY",
        "paid-last,ann,paid,13000,2000,CNY",
    )

    assert [] == compared.found(DAY)
