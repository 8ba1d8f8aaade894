"""A day's orders against the order centre's statement: each kind of difference is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.run import reconcile_due
from coupon_workers.runtime.services import Services
from tests.support.closing import ClosingShop, cart
from tests.support.statement import Comparison, Found

BEFORE, DAY, NEXT = "2026-11-10", "2026-11-11", "2026-11-12"
NOON = f"{DAY}T12:00+08:00"
MORNING = f"{NEXT}T09:00+08:00"
REFUND, REDEEM, ADJUST = RepairName.REFUND_ORDER, RepairName.REDEEM_ORDER, RepairName.BOOK_ADJUSTMENT
SUBJECT = "order o1 of ann"


@pytest.fixture
def compared(services: Services) -> Comparison:
    """Noon in Shanghai."""
    return Comparison(ClosingShop(services).at(NOON))


def _bought(compared: Comparison, order: str = "o1") -> int:
    """An order of 150.00 with 20.00 off."""
    return compared.shop.buy(order, compared.shop.template())


def test_where_both_say_the_same_nothing_differs(compared: Comparison) -> None:
    """Paid, returned in part or whole, closed unpaid; orders without coupons are none of ours."""
    for order in ("o1", "part", "whole", "gone", "other"):
        _bought(compared, order)
    held = compared.shop.issue(compared.shop.template())
    compared.shop.lock("unpaid", [held])
    compared.shop.refund("part", "r1", [("2", 1)])
    compared.shop.refund("whole", "r2")
    for order, refund in (("gone", "r3"), ("other", "r4")):
        compared.shop.refund(order, refund)

    compared.at(MORNING).give(
        DAY,
        "o1,ann,paid,13000,2000,CNY",
        "part,ann,partly_refunded,13000,2000,CNY",
        "whole,ann,refunded,13000,2000,CNY",
        "gone,ann,closed,13000,2000,CNY",
        "unpaid,ann,closed,0,2000,CNY",
        "never,ann,closed,0,500,CNY",
        "back,ann,refunded,100,500,CNY",
        "other,ann,refunded,12500,2500,CNY",
        "plain,bob,paid,500,0,JPY",
    )

    reading = compared.read(DAY)

    assert ([], frozenset(), 14) == (reading.differences, reading.unjudged, reading.examined)


CASES: dict[str, tuple[Callable[[ClosingShop], object], str, Found]] = {
    "in no statement": (lambda s: s, "o9,ann,paid,1,0,CNY", ("redeemed_without_order", SUBJECT, 2_000, "CNY", REFUND)),
    "in no statement, a part returned": (
        lambda s: s.refund("o1", "r1", [("2", 1)]),
        "o9,ann,paid,1,0,CNY",
        ("redeemed_without_order", SUBJECT, 1_333, "CNY", REFUND),
    ),
    "closed there": (
        lambda s: s,
        "o1,ann,closed,0,0,CNY",
        ("redeemed_without_order", SUBJECT, 2_000, "CNY", REFUND),
    ),
    "another currency, and so other amounts": (
        lambda s: s,
        "o1,ann,refunded,13,2,KWD",
        ("currency_differs", SUBJECT, 2_000, "CNY", None),
    ),
    "more off there, and so less paid": (
        lambda s: s,
        "o1,ann,paid,12500,2500,CNY",
        ("discount_differs", SUBJECT, 500, "CNY", ADJUST),
    ),
    "less off there": (
        lambda s: s,
        "o1,ann,paid,15000,0,CNY",
        ("discount_differs", SUBJECT, -2_000, "CNY", ADJUST),
    ),
    "less paid there": (lambda s: s, "o1,ann,paid,12999,2000,CNY", ("paid_differs", SUBJECT, -1, "CNY", None)),
    "returned there": (
        lambda s: s,
        "o1,ann,refunded,13000,2000,CNY",
        ("refund_missing_here", SUBJECT, 2_000, "CNY", REFUND),
    ),
    "returned there, a part here": (
        lambda s: s.refund("o1", "r1", [("2", 1)]),
        "o1,ann,refunded,13000,2000,CNY",
        ("refund_missing_here", SUBJECT, 1_333, "CNY", REFUND),
    ),
    "a part returned there": (
        lambda s: s,
        "o1,ann,partly_refunded,13000,2000,CNY",
        ("refund_missing_here", SUBJECT, 2_000, "CNY", None),
    ),
    "returned here": (
        lambda s: s.refund("o1", "r1"),
        "o1,ann,paid,13000,2000,CNY",
        ("refund_missing_there", SUBJECT, 2_000, "CNY", None),
    ),
    "returned here, a part there": (
        lambda s: s.refund("o1", "r1"),
        "o1,ann,partly_refunded,13000,2000,CNY",
        ("refund_missing_there", SUBJECT, 2_000, "CNY", None),
    ),
    "a part returned here": (
        lambda s: s.refund("o1", "r1", [("2", 1)]),
        "o1,ann,paid,13000,2000,CNY",
        ("refund_missing_there", SUBJECT, 667, "CNY", None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_difference_is_found_once(compared: Comparison, name: str) -> None:
    """By its root: an order has one finding for its money, beside thousands that agree."""
    change, row, expected = CASES[name]
    _bought(compared)
    _bought(compared, "good")
    change(compared.shop)
    compared.at(MORNING).give(DAY, row, "good,ann,paid,13000,2000,CNY")

    assert [expected] == compared.found(DAY)
    assert [] == compared.found(NEXT) == compared.found(BEFORE)


@pytest.mark.parametrize(
    ("status", "repair"), [("unknown", None), ("locked", REDEEM), ("released", REDEEM), ("another user's", None)]
)
def test_a_discount_that_was_given_without_a_redemption_is_found(
    compared: Comparison, status: str, repair: RepairName | None
) -> None:
    """Whether the order holds its coupons, has let them go, or was never heard of."""
    coupon = compared.shop.issue(compared.shop.template())
    if status != "unknown":
        compared.shop.lock("o1", [coupon])
    if status == "released":
        compared.shop.release("o1")
    user = "bob" if status == "another user's" else "ann"
    compared.at(MORNING).give(DAY, f"o1,{user},paid,13000,2000,CNY", f"o2,{user},partly_refunded,1,3,KWD")

    assert [
        ("discount_without_redemption", f"order o1 of {user}", 2_000, "CNY", repair),
        ("discount_without_redemption", f"order o2 of {user}", 3, "KWD", None),
    ] == compared.found(DAY)


@pytest.mark.parametrize("lines", [None, [("2", 1)]], ids=["all", "a part"])
def test_a_return_after_the_statement_came_is_no_difference(
    compared: Comparison, lines: list[tuple[str, int]] | None
) -> None:
    """It cannot be in it: the next one may have it."""
    _bought(compared)
    compared.at(MORNING).give(DAY, "o1,ann,paid,13000,2000,CNY")
    compared.shop.clock.pass_by(minutes=1)

    compared.shop.refund("o1", "r1", lines)

    assert [] == compared.found(DAY)


def test_a_refund_differs_beside_an_amount(compared: Comparison) -> None:
    """They have two causes: ignoring the one does not hide the other."""
    _bought(compared)
    compared.at(MORNING).give(DAY, "o1,ann,refunded,12500,2500,CNY")

    assert ["discount_differs", "refund_missing_here"] == [found[0] for found in compared.found(DAY)]


def test_both_sides_are_in_the_evidence(compared: Comparison) -> None:
    """By name, in minor units, with the statement's day; nothing in it grows with time."""
    _bought(compared)
    compared.at(MORNING).give(NEXT, "o1,ann,paid,12500,2500,CNY")
    compared.give(DAY)

    [first] = compared.read(DAY).differences
    compared.shop.clock.pass_by(hours=5)
    compared.give(NEXT, "o0,ann,closed,0,0,CNY", "o1,ann,paid,12500,2500,CNY")
    compared.give(DAY, "o0,ann,closed,0,0,CNY")

    assert [first] == compared.read(DAY).differences
    assert {"date": NEXT, "discount": 2_500, "paid": 12_500, "currency": "CNY"} == first.evidence["there"]
    assert {
        "discount": 2_000,
        "adjusted": 0,
        "payable": 13_000,
        "currency": "CNY",
        "redeemed_at": "2026-11-11T04:00:00Z",
    } == first.evidence["here"]
    assert ("ann", "o1", None) == (first.user_id, first.order_no, first.coupon_id)


@pytest.mark.parametrize("day", [BEFORE, NEXT])
def test_an_order_may_be_in_the_neighbours_statement(compared: Comparison, day: str) -> None:
    """It is compared with that row, by its own day's run alone."""
    _bought(compared)
    compared.at("2026-11-13T09:00+08:00")
    for each in (BEFORE, DAY, NEXT):
        compared.give(each, *(["o1,ann,paid,12999,2000,CNY"] if each == day else []))

    assert [("paid_differs", SUBJECT, -1, "CNY", None)] == compared.found(DAY)
    assert [] == compared.found(BEFORE) == compared.found(NEXT)


def test_a_statement_two_days_away_is_another_orders(compared: Comparison) -> None:
    """Here it has no order, and there it has no redemption that could be meant."""
    _bought(compared)
    compared.at("2026-11-15T09:00+08:00").give(DAY)
    compared.give("2026-11-13", "o1,ann,paid,13000,2000,CNY")

    assert ["redeemed_without_order"] == [found[0] for found in compared.found(DAY)]


def test_the_latest_of_two_days_holds(compared: Comparison) -> None:
    """An order that was paid on one day and returned on the next may be in both statements."""
    _bought(compared)
    _bought(compared, "o2")
    compared.shop.refund("o1", "r1")
    compared.at("2026-11-13T09:00+08:00")
    compared.give(DAY, "o1,ann,paid,13000,2000,CNY", "o2,ann,paid,13000,2000,CNY", "x,ann,paid,1,1,CNY")
    compared.give(NEXT, "o1,ann,refunded,13000,2000,CNY", "x,ann,closed,1,1,CNY")

    assert [] == compared.found(DAY) == compared.found(NEXT)


@pytest.mark.parametrize(
    ("redeemed", "waits"),
    [("23:59", True), ("22:01", True), ("21:59", False), ("12:00", False), ("02:01", False), ("01:59", True)],
)
def test_around_midnight_an_order_waits_for_the_neighbours_statement(
    compared: Comparison, redeemed: str, waits: bool
) -> None:
    """Until it comes, or is overdue: a repair that returns an order must not be proposed too early."""
    _bought(compared.at(f"{DAY}T{redeemed}+08:00"))
    compared.at(MORNING).give(DAY)

    found = [("redeemed_without_order", SUBJECT, 2_000, "CNY", REFUND)]
    assert ([] if waits else found) == compared.found(DAY)
    assert (frozenset({SUBJECT}) if waits else frozenset()) == compared.read(DAY).unjudged
    assert found == compared.at("2026-11-16T09:00+08:00").found(DAY)
    compared.at("2026-11-14T09:00+08:00").give(NEXT)
    compared.give(BEFORE)
    assert found == compared.found(DAY)


def test_an_order_that_has_waited_in_vain_is_found_on_schedule(compared: Comparison) -> None:
    """The neighbour's statement never comes, and nobody asks."""
    _bought(compared.at(f"{DAY}T23:30+08:00"))
    compared.at(MORNING).give(DAY)

    found = []
    for day in range(12, 20):
        compared.at(f"2026-11-{day}T20:00+00:00")
        reconcile_due(compared.shop.services, ReconKind.ORDERS, compared.shop.clock.now)
        found.append(compared.states(DAY))

    assert [[]] * 4 == found[:4]
    assert [[("redeemed_without_order", "open")]] * 4 == found[4:]


def test_a_payment_that_is_heard_late_is_looked_for_where_it_was_made(compared: Comparison) -> None:
    """From the day on which the order was first locked; the run of that day leaves it to the day of its bookings."""
    coupon = compared.shop.issue(compared.shop.template())
    compared.shop.lock("o1", [coupon])
    compared.at(MORNING).give(DAY, "o1,ann,paid,13000,2000,CNY")
    compared.at("2026-11-14T12:00+08:00").shop.pay("o1")
    compared.at("2026-11-15T09:00+08:00").give("2026-11-14")

    assert [] == compared.found(DAY) == compared.found("2026-11-14")


def test_a_day_is_the_local_day_of_the_coupons_template(compared: Comparison) -> None:
    """Of an order with coupons from two zones, the earlier."""
    west = compared.shop.template(timezone="America/Los_Angeles")
    coupons = [compared.shop.issue(west), compared.shop.issue(compared.shop.template())]
    compared.shop.pay_directly("o1", coupons)
    compared.at("2026-11-14T09:00+08:00").give(DAY, "o1,ann,paid,1,4000,CNY")
    compared.give(BEFORE)

    assert [("paid_differs", SUBJECT, -10_999, "CNY", None)] == compared.found(BEFORE)
    assert [] == compared.found(DAY)


@pytest.mark.parametrize("currency", ["JPY", "KWD"])
def test_amounts_are_exact_to_the_last_unit(compared: Comparison, currency: str) -> None:
    """A yen and a fils are one unit each, up to what every JSON reader holds."""
    most = 2**53 - 1
    template = compared.shop.template(currency=currency, amount_minor=most - 1, threshold_minor=0)
    compared.shop.buy("o1", template, lines=cart(most), currency=currency)
    compared.at(MORNING).give(DAY, f"o1,ann,paid,0,{most},{currency}")

    assert [("discount_differs", SUBJECT, 1, currency, ADJUST)] == compared.found(DAY)
    compared.give(DAY, f"o1,ann,paid,1,{most - 1},{currency}")
    assert [] == compared.found(DAY)


def test_the_same_moment_has_the_same_differences(compared: Comparison) -> None:
    """Whatever is paid, returned, adjusted, locked or stated afterwards (DESIGN 3.8)."""
    shop = compared.shop
    held = shop.issue(shop.template())
    shop.lock("held", [held])
    for order in ("none", "less", "back"):
        _bought(compared, order)
    compared.at(MORNING).give(
        DAY, "less,ann,paid,13500,1500,CNY", "back,ann,refunded,13000,2000,CNY", "held,ann,paid,1,5,CNY",
        "late,ann,paid,1,7,CNY",
    )  # fmt: skip
    as_of = shop.clock.now
    before = compared.read(DAY, as_of)

    shop.clock.pass_by(minutes=1)
    shop.pay("held")
    _bought(compared, "late")
    for order in ("none", "back"):
        shop.refund(order, f"r-{order}")
    [(coupon,)] = shop.rows("SELECT coupon_id FROM coupon_use WHERE order_no = 'less'")
    shop.adjust("t1", coupon, -500, "less")
    compared.give(DAY, "none,ann,paid,13000,2000,CNY")
    compared.give(NEXT, "less,ann,closed,0,0,CNY")
    after = compared.read(DAY, as_of)

    assert 5 == len(before.differences)
    assert before == after
    assert before.differences != compared.read(DAY).differences


def test_what_is_forgotten_is_not_said_to_be_missing(compared: Comparison) -> None:
    """As of a moment whose statement was replaced long ago and deleted, nothing is said of the day."""
    _bought(compared)
    compared.at(MORNING).give(DAY, "o1,ann,paid,13000,2000,CNY")
    as_of = compared.shop.clock.now
    compared.shop.clock.pass_by(hours=1)
    compared.give(DAY, "o1,ann,paid,1,2000,CNY")
    compared.shop.execute("DELETE FROM order_statement WHERE revision = 1")

    reading = compared.read(DAY, as_of)

    assert ([], frozenset({f"day {DAY}"})) == (reading.differences, reading.unjudged)


def test_a_missing_statement_is_one_finding_until_it_comes(compared: Comparison) -> None:
    """However many orders the day has; a day that goes on, or has no orders, misses none."""
    _bought(compared)
    _bought(compared, "o2")
    assert [] == compared.found(DAY) == compared.at(MORNING).found(NEXT)

    compared.reconcile(DAY)
    compared.at("2026-11-13T09:00+08:00").reconcile(DAY)
    missing = compared.findings(DAY)
    rows = [f"{order},ann,paid,13000,2000,CNY" for order in ("o1", "o2")]
    compared.at("2026-11-14T09:00+08:00").give(DAY, *rows)
    compared.shop.clock.pass_by(hours=1)
    came = compared.reconcile(DAY)

    assert [("statement_missing", f"day {DAY}", None, 2)] == [
        (each.finding_class, each.subject, each.amount, each.seen_count) for each in missing
    ]
    assert [("statement_missing", "resolved")] == [(each.finding_class, str(each.state)) for each in came]


def test_a_statement_has_its_day_and_its_neighbours_compared(compared: Comparison) -> None:
    """As of the moment at which it came; the same file again asks for nothing new."""
    for day in (NEXT, BEFORE, "2026-11-09"):
        compared.at("2026-11-13T09:00+08:00").give(day)
    compared.shop.execute("TRUNCATE recon_run")
    compared.shop.clock.pass_by(hours=1)

    compared.give(DAY)
    compared.shop.clock.pass_by(hours=1)
    compared.give(DAY)

    came = compared.shop.clock.now - timedelta(hours=1)
    assert [(day, came) for day in (BEFORE, DAY, NEXT)] == [
        (str(day), as_of)
        for day, as_of in compared.shop.rows("SELECT business_date, as_of FROM recon_run ORDER BY business_date")
    ]
