"""Redeeming the coupons of a paid order (API.md, Orders): once, in time or late, with a lock or without one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.order_books import BROKEN, nothing_written, refused_without_a_trace
from tests.support.order_shop import START, OrderShop, line, refused
from tests.support.sale import assert_sound

DEADLINE = START + timedelta(minutes=15)
MOMENTS = {"14:59": timedelta(seconds=-1), "15:00": timedelta(), "15:01": timedelta(seconds=1)}
"""After the lock, as the distance from its deadline."""


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def test_a_payment_redeems_what_is_locked(shop: OrderShop) -> None:
    """The whole answer, the step, the event for listeners, one booking on the day of the template."""
    coupon = shop.issue(shop.template())
    locked = shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=5)

    paid = shop.pay("o1")

    moment = "2026-11-11T04:05:00Z"
    after = {"status": "redeemed", "payment_no": "pay-1", "paid_at": moment, "redeemed_at": moment}
    assert locked | after == paid
    assert [("lock", "locked", "o1"), ("redeem", "redeemed", "o1")] == shop.flow(coupon)
    assert [("redeem", "coupon_expense", "order_discount", 2_000)] == shop.ledger()
    assert [("pay-1", "2026-11-11", "CNY")] == shop.rows(
        "SELECT reference, business_date::text, currency FROM ledger_entry"
    )
    assert ["coupon.locked", "coupon.redeemed"] == [
        event for (event,) in shop.rows("SELECT event FROM outbox ORDER BY outbox_id")
    ]
    assert_sound(shop.services)


def test_the_ledgers_day_is_the_templates(shop: OrderShop) -> None:
    """At noon UTC it is tomorrow in Kiritimati, and still today in Shanghai."""
    coupons = [shop.issue(shop.template(timezone=zone)) for zone in ("Pacific/Kiritimati", "Asia/Shanghai")]
    shop.clock.pass_by(hours=8)

    shop.pay_directly("o1", coupons)

    assert [("2026-11-11",), ("2026-11-12",)] == shop.rows(
        "SELECT business_date::text FROM ledger_entry ORDER BY business_date"
    )


@pytest.mark.parametrize("swept", [False, True], ids=["before the sweep", "after the sweep"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_payment_redeems_around_the_deadline(shop: OrderShop, moment: str, swept: bool) -> None:
    """In time, or late with the coupon still free: the discount of the lock (CASES 12)."""
    coupon = shop.issue(shop.template())
    locked = shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE + MOMENTS[moment]
    released = bool(swept and shop.sweep())

    paid = shop.pay("o1")

    assert (swept and moment != "14:59") == released
    assert ("redeemed", locked["applied"]) == (paid["status"], paid["applied"])
    assert [*["lock"], *["release"] * released, "redeem"] == [action for action, _, _ in shop.flow(coupon)]
    assert (0, 2_000) == (shop.sweep(), shop.expense())
    assert_sound(shop.services)


@pytest.mark.parametrize("paid_in_time", [False, True])
def test_a_payment_finds_its_coupon_on_another_order(shop: OrderShop, paid_in_time: bool) -> None:
    """Whether it was late or only heard of late: it says where the coupon is, and the other order keeps it
    (CASES 12)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE
    shop.sweep()
    shop.lock("o2", [coupon])
    paid_at = {"paid_at": START + timedelta(minutes=14)} if paid_in_time else {}

    evidence = {"coupon_no": str(coupon), "coupon_status": "locked", "order_no": "o2"}
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(shop, lambda: shop.pay("o1", **paid_at))
    shop.pay("o2")
    evidence |= {"coupon_status": "redeemed"}
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(shop, lambda: shop.pay("o1", **paid_at))
    shop.refund("o2", "ref-1")
    assert "redeemed" == shop.pay("o1")["status"]
    assert_sound(shop.services)


def test_of_two_coupons_one_that_is_gone_redeems_neither(shop: OrderShop) -> None:
    """All or none, late too."""
    template = shop.template()
    coupons = [shop.issue(template), shop.issue(template)]
    shop.lock("o1", coupons)
    shop.clock.now = DEADLINE
    shop.sweep()
    shop.lock("o2", coupons[1:])

    assert "LOCK_EXPIRED" == refused_without_a_trace(shop, lambda: shop.pay("o1"))[0]
    assert ["unused", "locked"] == [shop.status(coupon) for coupon in coupons]


@pytest.mark.parametrize("swept", [False, True], ids=["before the sweep", "after the sweep"])
def test_a_late_payment_takes_no_coupon_that_has_ended(shop: OrderShop, swept: bool) -> None:
    """A lock saves a coupon until its deadline and no longer, whether the sweep has come by or not (CASES 14)."""
    coupon = shop.issue(shop.template(), valid_to=DEADLINE)
    shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE
    if swept:
        shop.sweep()

    evidence = {"coupon_no": str(coupon), "coupon_status": "expired"}
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(shop, lambda: shop.pay("o1"))
    shop.sweep()
    expire_coupons(shop.services, shop.clock.now)
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(shop, lambda: shop.pay("o1"))
    assert_sound(shop.services)


@pytest.mark.parametrize("swept", [False, True], ids=["before the sweep", "after the sweep"])
def test_a_payment_in_time_that_is_heard_of_late_counts_as_in_time(shop: OrderShop, swept: bool) -> None:
    """The validity ended while the lock stood: as long as the coupon is free, its lock's word holds (CASES 14)."""
    coupon = shop.issue(shop.template(), valid_to=START + timedelta(minutes=5))
    locked = shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE + timedelta(hours=1)
    if swept:
        shop.sweep()

    paid = shop.pay("o1", paid_at=DEADLINE - timedelta(seconds=1))

    assert (locked["applied"], "2026-11-11T04:14:59Z") == (paid["applied"], paid["paid_at"])
    assert_sound(shop.services)


def test_a_payment_in_time_comes_too_late_for_a_coupon_that_was_ended(shop: OrderShop) -> None:
    """There is no way back from expired but a refund."""
    coupon = shop.issue(shop.template(), valid_to=START + timedelta(minutes=5))
    shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE
    shop.sweep()
    expire_coupons(shop.services, shop.clock.now)

    in_time = DEADLINE - timedelta(seconds=1)
    assert ("LOCK_EXPIRED", {"coupon_no": str(coupon), "coupon_status": "expired"}) == refused_without_a_trace(
        shop, lambda: shop.pay("o1", paid_at=in_time)
    )


def test_a_payment_after_a_release_is_not_in_time(shop: OrderShop) -> None:
    """Whoever let the coupon go before its deadline held no lock any more."""
    coupon = shop.issue(shop.template(), valid_to=START + timedelta(minutes=5))
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=1)
    shop.release("o1")
    shop.clock.pass_by(minutes=9)

    evidence = {"coupon_no": str(coupon), "coupon_status": "expired"}
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(
        shop, lambda: shop.pay("o1", paid_at=START + timedelta(minutes=9))
    )
    assert "redeemed" == shop.pay("o1", paid_at=START + timedelta(seconds=59))["status"]


def test_a_payment_of_before_the_lock_is_not_in_time(shop: OrderShop) -> None:
    """There was no lock whose word it could have."""
    coupon = shop.issue(shop.template(), valid_to=START + timedelta(minutes=5))
    shop.lock("o1", [coupon])
    shop.clock.now = DEADLINE

    evidence = {"coupon_no": str(coupon), "coupon_status": "expired"}
    assert ("LOCK_EXPIRED", evidence) == refused_without_a_trace(
        shop, lambda: shop.pay("o1", paid_at=START - timedelta(milliseconds=1))
    )
    assert "redeemed" == shop.pay("o1", paid_at=START)["status"]


def test_the_same_payment_is_answered_the_same_for_good(shop: OrderShop) -> None:
    """Also after refunds, and much later; nothing is written."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    first = shop.pay("o1")
    shop.clock.pass_by(days=400)

    for refund in (None, "ref-1", None):
        if refund:
            shop.refund("o1", refund)
        with nothing_written(shop.services):
            assert first == shop.pay("o1")
            assert first == shop.pay_directly("o1", [coupon])
            assert first == shop.pay("o1", paid_at=START)


def test_a_second_payment_of_an_order_is_refused(shop: OrderShop) -> None:
    """It is told the first one's number: somebody has paid twice."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.pay("o1")

    for call in (lambda: shop.pay("o1", "pay-2"), lambda: shop.pay_directly("o1", [coupon], payment="pay-2")):
        assert ("ALREADY_REDEEMED", {"payment_no": "pay-1"}) == refused_without_a_trace(shop, call)


@pytest.mark.parametrize("before", ["locked", "released", "redeemed"])
def test_a_payment_of_another_order_than_was_locked_is_refused(shop: OrderShop, before: str) -> None:
    """Another cart or other coupons under a known number: nobody is told that they were redeemed."""
    template = shop.template()
    coupon, other = shop.issue(template), shop.issue(template)
    shop.lock("o1", [coupon])
    if before == "released":
        shop.release("o1")
    elif before == "redeemed":
        shop.pay("o1")

    for call in (
        lambda: shop.pay_directly("o1", [coupon], [line("1", 77_777)]),
        lambda: shop.pay_directly("o1", [other]),
        lambda: shop.pay_directly("o1", [coupon], channel="h5"),
    ):
        assert ("ORDER_DIFFERS", {}) == refused_without_a_trace(shop, call)
    assert "redeemed" == shop.pay_directly("o1", [coupon])["status"]
    assert_sound(shop.services)


def test_without_a_lock_an_order_redeems_directly(shop: OrderShop) -> None:
    """From unused to redeemed in one step, with the refusals of a lock."""
    coupon = shop.issue(shop.template())

    assert (
        "THRESHOLD_NOT_MET"
        == refused_without_a_trace(shop, lambda: shop.pay_directly("o1", [coupon], [line("1", 9_999)]))[0]
    )
    paid = shop.pay_directly("o1", [coupon])
    assert ("redeemed", None, "pay-1") == (paid["status"], paid["locked_until"], paid["payment_no"])
    assert [("redeem", "redeemed", "o1")] == shop.flow(coupon)
    assert paid == shop.pay_directly("o1", [coupon])
    assert "LOCKED_BY_ORDER" != refused_without_a_trace(shop, lambda: shop.pay_directly("o2", [coupon]))[0]
    assert_sound(shop.services)


def test_a_payment_of_an_unknown_order_is_refused(shop: OrderShop) -> None:
    """Also of another user's order of that number."""
    coupon = shop.issue(shop.template(), "bob")
    replace(shop, user="bob").lock("o1", [coupon])

    assert ("ORDER_NOT_FOUND", {}) == refused_without_a_trace(shop, lambda: shop.pay("o1"))


def test_an_order_of_which_nothing_is_left_to_pay_is_a_normal_order(shop: OrderShop) -> None:
    """Locked, paid and returned with 0 (CASES 23)."""
    coupon = shop.issue(shop.template(type="cash", amount_minor=50_000, threshold_minor=0))
    lines = [line("1", 49_999)]

    assert (0, 0) == (shop.lock("o1", [coupon], lines)["payable"], shop.pay("o1")["payable"])
    refund = shop.refund("o1", "ref-1")
    assert (0, 49_999, "unused") == (
        refund["refund_amount"],
        refund["discount_reversed"],
        refund["coupons"][0]["status"],
    )
    assert 0 == shop.expense()
    assert_sound(shop.services)


def test_a_payment_lies_at_most_minutes_in_the_future(shop: OrderShop) -> None:
    """Clocks differ a little; and a payment of tomorrow is a mistake."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    ahead = timedelta(minutes=5)

    assert ("INVALID", {"paid_at": "It lies in the future"}) == refused_without_a_trace(
        shop, lambda: shop.pay("o1", paid_at=START + ahead + timedelta(milliseconds=1))
    )
    assert "redeemed" == shop.pay("o1", paid_at=START + ahead)["status"]


BEHIND_OUR_BACK = {
    "the coupon is revoked": "UPDATE coupon SET status = 'revoked'",
    "the coupon is unused": "UPDATE coupon SET status = 'unused', order_no = NULL",
    "the coupon is another order's": "UPDATE coupon SET order_no = 'o9'",
    "the use is gone": "DELETE FROM coupon_use",
    "the use is released": "UPDATE coupon_use SET state = 'released'",
    "the coupon is gone": "DELETE FROM coupon",
}


@pytest.mark.parametrize("change", BEHIND_OUR_BACK)
def test_a_lock_that_was_changed_behind_our_back_is_not_half_redeemed(shop: OrderShop, change: str) -> None:
    """The books contradict one another, and a person has to look."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.execute(BEHIND_OUR_BACK[change])

    assert BROKEN == refused_without_a_trace(shop, lambda: shop.pay("o1"))


@pytest.mark.parametrize("status", ["revoked", "transferred", "expired"])
def test_a_coupon_that_went_elsewhere_after_the_release_is_gone(shop: OrderShop, status: str) -> None:
    """That is no contradiction: it was free."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.release("o1")
    shop.execute(f"UPDATE coupon SET status = '{status}'")

    assert ("LOCK_EXPIRED", {"coupon_no": str(coupon), "coupon_status": status}) == refused_without_a_trace(
        shop, lambda: shop.pay("o1")
    )


def test_the_machines_clock_decides(services: Services) -> None:
    """The clock of production, moved along (CASES 12)."""
    shop = OrderShop(services)
    template = shop.template()
    coupons = [shop.issue(template) for _ in range(3)]
    shop.services = replace(shop.services, clock=utc_now)
    answers: list[Any] = []

    with freeze_time(START) as frozen:
        for number, coupon in enumerate(coupons):
            shop.lock(f"o{number}", [coupon])
        frozen.tick(timedelta(minutes=14, seconds=59))
        answers += [shop.sweep(), shop.pay("o0")["redeemed_at"]]
        frozen.tick(timedelta(seconds=2))
        answers += [shop.sweep(), shop.pay("o1")["redeemed_at"]]
        shop.lock("o9", [coupons[2]])
        answers.append(refused(lambda: shop.pay("o2"))[0])

    assert [0, "2026-11-11T04:14:59Z", 2, "2026-11-11T04:15:01Z", "LOCK_EXPIRED"] == answers
