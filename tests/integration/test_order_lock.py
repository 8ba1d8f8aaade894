"""Locking coupons for an order (API.md, Orders): all or none, for one order at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from coupon_workers.runtime.services import Services
from tests.support.order_books import nothing_written, refused_without_a_trace
from tests.support.order_shop import CART, START, Json, OrderShop, line, refused
from tests.support.sale import assert_sound


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def test_a_lock_says_what_the_coupon_takes_off_and_until_when(shop: OrderShop) -> None:
    """The whole answer, the coupon's status, its step, the event for listeners; nothing in the ledger."""
    coupon = shop.issue(shop.template())

    answer = shop.lock("o1", [coupon])

    assert {
        "order_no": "o1",
        "user_id": "ann",
        "status": "locked",
        "currency": "CNY",
        "applied": [
            {
                "coupon_no": str(coupon),
                "discount": 2_000,
                "allocations": [{"line_id": "1", "amount": 1_333}, {"line_id": "2", "amount": 667}],
            }
        ],
        "subtotal": 15_000,
        "discount": 2_000,
        "payable": 13_000,
        "locked_until": "2026-11-11T04:15:00Z",
        "released_at": None,
        "payment_no": None,
        "paid_at": None,
        "redeemed_at": None,
    } == answer
    assert "locked" == shop.status(coupon)
    assert [("lock", "locked", "o1")] == shop.flow(coupon)
    assert [("coupon.locked", {"status": "locked", "order_no": "o1", "flow_no": 2})] == shop.rows(
        "SELECT event, detail FROM outbox"
    )
    assert [] == shop.ledger()
    assert_sound(shop.services)


def test_the_whole_way_of_an_order_with_two_coupons(shop: OrderShop) -> None:
    """Lock, redeem, refund in two parts: the money adds up, the coupons come back with the last piece."""
    first = shop.issue(shop.template())
    second = shop.issue(shop.template(type="percent_off", amount_minor=None, percent_off_bp=1_000, threshold_minor=0))

    locked = shop.lock("o1", [first, second])
    paid = shop.pay("o1")
    part = shop.refund("o1", "ref-1", [("1", 1)])
    rest = shop.refund("o1", "ref-2")

    assert (3_300, 11_700) == (locked["discount"], locked["payable"])
    assert ("redeemed", locked["applied"]) == (paid["status"], paid["applied"])
    assert 11_700 == part["refund_amount"] + rest["refund_amount"]
    assert 3_300 == part["discount_reversed"] + rest["discount_reversed"]
    assert ["redeemed", "redeemed"] == [coupon["status"] for coupon in part["coupons"]]
    assert ["unused", "unused"] == [coupon["status"] for coupon in rest["coupons"]]
    assert [("lock", "locked", "o1"), ("redeem", "redeemed", "o1"), ("refund", "unused", "o1")] == shop.flow(first)
    assert 0 == shop.expense()
    assert ("NOTHING_LEFT", {}) == refused(lambda: shop.refund("o1", "ref-3"))
    assert_sound(shop.services)


def test_an_order_re_enters_its_own_lock(shop: OrderShop) -> None:
    """The card was declined, the buyer tries again: the same lock, the same deadline, nothing written (CASES 11)."""
    coupons = [shop.issue(shop.template()), shop.issue(shop.template(threshold_minor=0))]
    first = shop.lock("o1", coupons, user_tags=["vip", "new"])
    shop.clock.pass_by(minutes=14, seconds=59)

    with nothing_written(shop.services):
        again = shop.lock("o1", coupons, user_tags=["vip", "new"])
        in_other_words = shop.lock("o1", coupons[::-1], user_tags=["new", "vip"], ttl_seconds=3_600)

    assert [first, first] == [again, in_other_words]
    assert_sound(shop.services)


def test_a_second_order_is_told_which_one_holds_the_coupon(shop: OrderShop) -> None:
    """And has no row of its own, until the first lets go (CASES 11)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    assert ("LOCKED_BY_ORDER", {"coupon_no": str(coupon), "order_no": "o1"}) == refused_without_a_trace(
        shop, lambda: shop.lock("o2", [coupon])
    )
    assert ("ORDER_NOT_FOUND", {}) == refused(lambda: shop.read("o2"))
    shop.release("o1")
    assert "o2" == shop.lock("o2", [coupon])["order_no"]
    assert_sound(shop.services)


def test_another_cart_or_other_coupons_do_not_slip_into_a_lock(shop: OrderShop) -> None:
    """The lock stands as it is; the order may release it, and lock anew."""
    template = shop.template()
    first, second = shop.issue(template), shop.issue(template)
    shop.lock("o1", [first])
    expected = ("LOCKED_OTHERWISE", {"locked_until": START + timedelta(minutes=15)})

    for lock in (
        lambda: shop.lock("o1", [first], [line("1", 10_001), line("2", 5_000)]),
        lambda: shop.lock("o1", [second]),
        lambda: shop.lock("o1", [first, second]),
        lambda: shop.lock("o1", [first], channel="h5"),
        lambda: shop.lock("o1", [first], user_tags=["vip"]),
        lambda: shop.lock("o1", [first], currency="JPY"),
    ):
        assert expected == refused_without_a_trace(shop, lock)
    shop.release("o1")
    assert [str(second)] == [use["coupon_no"] for use in shop.lock("o1", [second])["applied"]]
    assert ("unused", "locked") == (shop.status(first), shop.status(second))
    assert_sound(shop.services)


def test_at_its_deadline_a_lock_is_over(shop: OrderShop) -> None:
    """Asked for again at that instant it is let go, and a new one."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)

    again = shop.lock("o1", [coupon])

    assert "2026-11-11T04:30:00Z" == again["locked_until"]
    assert ["lock", "release", "lock"] == [action for action, _, _ in shop.flow(coupon)]
    assert_sound(shop.services)


def test_an_order_that_was_closed_holds_other_coupons_if_it_is_asked_to(shop: OrderShop) -> None:
    """Its old lock, sent again, does not come back; another one is no repetition."""
    old, new = shop.issue(shop.template()), shop.issue(shop.template())
    shop.lock("o1", [old])
    shop.tell("e1", "o1", "closed", shop.clock.now)

    repeated, another = shop.lock("o1", [old])["status"], shop.lock("o1", [new])["status"]

    assert ("released", "locked") == (repeated, another)
    assert ("unused", "locked") == (shop.status(old), shop.status(new))
    assert_sound(shop.services)


def test_a_lock_of_a_released_order_is_a_new_one(shop: OrderShop) -> None:
    """A lock has no number of its own: one that comes again after the release holds again, until a new deadline."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.release("o1")
    shop.clock.pass_by(minutes=1)

    again = shop.lock("o1", [coupon])

    assert ("locked", "2026-11-11T04:16:00Z", None) == tuple(
        again[name] for name in ("status", "locked_until", "released_at")
    )
    assert ["lock", "release", "lock"] == [action for action, _, _ in shop.flow(coupon)]
    assert_sound(shop.services)


def test_a_lock_of_a_paid_order_is_refused(shop: OrderShop) -> None:
    """A late duplicate, the same or another; also when all has gone back: then the coupon is free for others."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.pay("o1")
    expected = ("ALREADY_REDEEMED", {"payment_no": "pay-1"})

    assert expected == refused_without_a_trace(shop, lambda: shop.lock("o1", [coupon]))
    assert expected == refused_without_a_trace(shop, lambda: shop.lock("o1", [coupon], [line("9", 99_999)]))
    shop.refund("o1", "ref-1")
    assert expected == refused_without_a_trace(shop, lambda: shop.lock("o1", [coupon]))
    assert "locked" == shop.lock("o2", [coupon])["status"]
    assert_sound(shop.services)


REFUSED: dict[str, tuple[Json, Json, Json]] = {
    # code: what is different in the template, the coupon, the order
    "EXPIRED": ({}, {"valid_to": START}, {}),
    "NOT_YET_VALID": ({}, {"valid_from": START + timedelta(milliseconds=1)}, {}),
    "THRESHOLD_NOT_MET": ({"threshold_minor": 15_001}, {}, {}),
    "SCOPE_MISMATCH": ({"scope": {"products": {"include": ["p7"], "exclude": []}}}, {}, {}),
    "CURRENCY_MISMATCH": ({"currency": "JPY"}, {}, {}),
    "STACKING_CONFLICT": ({"stacking": {"exclusive": True, "group": None, "priority": 200}}, {}, {}),
    "NOTHING_TO_DISCOUNT": ({"scope": {"products": {"include": ["p3"], "exclude": []}}, "threshold_minor": 0}, {}, {}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_one_coupon_that_does_not_apply_refuses_them_all(shop: OrderShop, code: str) -> None:
    """The good one beside it stays free, and there is no order; the refusal names the coupon."""
    template, coupon, order = REFUSED[code]
    good, bad = shop.issue(shop.template()), shop.issue(shop.template(**template), **coupon)
    lines = [*CART, line("3", 0)]

    found, evidence = refused_without_a_trace(shop, lambda: shop.lock("o1", [good, bad], lines, **order))

    assert (code, str(bad)) == (found, evidence["coupon_no"])
    assert [(str(bad), code)] == [(each["coupon_no"], each["code"]) for each in evidence["rejected"]]
    assert (1 if code == "THRESHOLD_NOT_MET" else None) == evidence.get("shortfall")
    assert_sound(shop.services)


@pytest.mark.parametrize("status", ["redeemed", "expired", "revoked", "transferred"])
def test_a_coupon_that_is_not_free_refuses_them_all(shop: OrderShop, status: str) -> None:
    """With what it is; one that has ended by the sweep reads as one that has ended by the clock."""
    good, bad = shop.issue(shop.template()), shop.issue(shop.template())
    order = "'o9'" if status == "redeemed" else "NULL"
    shop.execute(f"UPDATE coupon SET status = '{status}', order_no = {order} WHERE coupon_id = {bad}")

    code = "EXPIRED" if status == "expired" else "COUPON_NOT_AVAILABLE"
    assert (code, {"coupon_no": str(bad), "coupon_status": status}) == refused_without_a_trace(
        shop, lambda: shop.lock("o1", [good, bad])
    )


def test_unknown_and_foreign_coupons_are_one_and_the_same(shop: OrderShop) -> None:
    """Nobody learns that a number is another user's."""
    mine, foreign = shop.issue(shop.template()), shop.issue(shop.template(), "bob")

    for coupons in ([foreign], [4_711], [mine, foreign], [foreign, mine]):
        for call in (
            lambda: shop.lock("o1", coupons),  # noqa: B023 - called at once
            lambda: shop.pay_directly("o1", coupons),  # noqa: B023
            lambda: shop.quote(coupons),  # noqa: B023
        ):
            assert ("COUPON_NOT_FOUND", {}) == refused_without_a_trace(shop, call)


@pytest.mark.parametrize("status", ["offline", "archived"])
def test_a_template_taken_offline_stops_locks_but_not_what_is_locked(shop: OrderShop, status: str) -> None:
    """The buyer who is at the cash desk pays what he was told (API.md, Templates)."""
    template = shop.template()
    locked, free = shop.issue(template), shop.issue(template)
    shop.lock("o1", [locked])
    shop.execute(f"UPDATE coupon_template SET status = '{status}'")

    expected = {"coupon_no": str(free), "coupon_status": "unused", "template_status": status}
    assert ("COUPON_NOT_AVAILABLE", expected) == refused_without_a_trace(shop, lambda: shop.lock("o2", [free]))
    assert ("COUPON_NOT_AVAILABLE", expected) == refused_without_a_trace(shop, lambda: shop.pay_directly("o2", [free]))
    assert [] == shop.quote()["applied"]
    assert "COUPON_NOT_AVAILABLE" == shop.quote([free])["rejected"][0]["code"]
    assert shop.lock("o1", [locked])["applied"] == shop.pay("o1")["applied"]


def test_a_paused_template_stops_neither(shop: OrderShop) -> None:
    """A pause is for claims: who has a coupon uses it (CASES 15)."""
    template = shop.template()
    locked, free = shop.issue(template), shop.issue(template)
    shop.lock("o1", [locked])
    shop.execute("UPDATE coupon_template SET status = 'paused'")

    assert "redeemed" == shop.pay("o1")["status"]
    assert "locked" == shop.lock("o2", [free])["status"]


def test_a_lock_outlives_the_validity_of_its_coupon(shop: OrderShop) -> None:
    """Locked one second before the end: paid within the lock's time, at the discount of the lock (CASES 14)."""
    template = shop.template()
    ends = START + timedelta(seconds=1)
    coupon, other = shop.issue(template, valid_to=ends), shop.issue(template, valid_to=ends)
    locked = shop.lock("o1", [coupon])
    shop.execute("UPDATE coupon_template SET amount_minor = 1, threshold_minor = 99999")
    shop.clock.pass_by(seconds=1)

    assert "EXPIRED" == refused_without_a_trace(shop, lambda: shop.lock("o2", [other]))[0]
    assert locked == shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=14)
    paid = shop.pay("o1")
    assert (2_000, 13_000, locked["applied"]) == (paid["discount"], paid["payable"], paid["applied"])
    assert 2_000 == shop.expense()


def test_the_last_instant_of_a_local_day_is_the_millisecond_before_its_end(shop: OrderShop) -> None:
    """Valid until the end of 2026-11-11 in Shanghai: usable at 15:59:59.999Z, not at 16:00:00Z (CASES 33)."""
    ends = datetime.fromisoformat("2026-11-12T00:00:00+08:00")
    template = shop.template()
    first, second = shop.issue(template, valid_to=ends), shop.issue(template, valid_to=ends)

    shop.clock.now = datetime.fromisoformat("2026-11-11T15:59:59.999+00:00")
    assert "locked" == shop.lock("o1", [first])["status"]
    assert 2_000 == shop.quote([second])["discount"]

    shop.clock.now = datetime.fromisoformat("2026-11-11T16:00:00+00:00")
    assert "EXPIRED" == refused(lambda: shop.lock("o2", [second]))[0]
    assert "EXPIRED" == shop.quote([second])["rejected"][0]["code"]
    assert [] == shop.quote()["applied"]


MONEY: list[tuple[Json, list[Json], int, list[int]]] = [
    # CASES 20: the template, the lines, the discount, its shares
    ({"amount_minor": 1_000}, [line("1", 10_000), line("2", 10_000), line("3", 10_000)], 1_000, [334, 333, 333]),
    ({"amount_minor": 7}, [line("1", 999), line("2", 999), line("3", 2)], 7, [4, 3, 0]),
    ({"amount_minor": 100}, [line("1", 1), line("2", 1), line("3", 1), line("4", 9_997)], 100, [0, 0, 0, 100]),
    # CASES 21: integers only
    ({"percent_off_bp": 2_900}, [line("1", 100)], 29, [29]),
    ({"percent_off_bp": 7_000}, [line("1", 90)], 63, [63]),
    # CASES 22: half up on the discount
    ({"percent_off_bp": 1_000}, [line("1", 2_545)], 255, [255]),
    ({"percent_off_bp": 1_000}, [line("1", 4_995)], 500, [500]),
    # CASES 23: never below zero
    ({"amount_minor": 50_000}, [line("1", 49_999)], 49_999, [49_999]),
    # CASES 24: no decimals
    ({"amount_minor": 275, "currency": "JPY"}, [line("1", 1_000)], 275, [275]),
]


@pytest.mark.parametrize(("columns", "lines", "discount", "shares"), MONEY)
def test_money_is_exact(shop: OrderShop, columns: Json, lines: list[Json], discount: int, shares: list[int]) -> None:
    """The same in the quote, in the lock, in the payment, in the ledger; and back (CASES 20 to 24)."""
    kind: Json = {"type": "percent_off", "amount_minor": None} if "percent_off_bp" in columns else {"type": "cash"}
    coupon = shop.issue(shop.template(threshold_minor=0, **kind, **columns))
    currency = {"currency": columns.get("currency", "CNY")}
    subtotal = sum(each["unit_price"] for each in lines)

    answers = shop.quote(None, lines, **currency), shop.lock("o1", [coupon], lines, **currency), shop.pay("o1")

    for answer in answers:
        assert (discount, subtotal - discount) == (answer["discount"], answer["payable"])
        assert shares == [share["amount"] for share in answer["applied"][0]["allocations"]]
    assert discount == shop.expense()
    back = shop.refund("o1", "ref-1")
    assert (subtotal - discount, discount, 0) == (back["refund_amount"], back["discount_reversed"], shop.expense())
    assert_sound(shop.services)


def test_a_free_cart_consumes_no_coupon(shop: OrderShop) -> None:
    """There is nothing to take off (CASES 23)."""
    coupon = shop.issue(shop.template(type="cash", threshold_minor=0))

    assert "NOTHING_TO_DISCOUNT" == refused_without_a_trace(shop, lambda: shop.lock("o1", [coupon], [line("1", 0)]))[0]
    assert "NOTHING_TO_DISCOUNT" == refused(lambda: shop.pay_directly("o1", [coupon], [line("1", 0)]))[0]


def test_a_coupon_for_which_others_leave_nothing_is_not_consumed(shop: OrderShop) -> None:
    """The whole order is refused: the caller leaves that coupon out."""
    large = shop.issue(shop.template(type="cash", amount_minor=50_000, threshold_minor=0, stacking={"priority": 1}))
    small = shop.issue(shop.template(type="cash", threshold_minor=0))

    code, evidence = refused_without_a_trace(shop, lambda: shop.lock("o1", [small, large]))

    assert ("NOTHING_TO_DISCOUNT", str(small)) == (code, evidence["coupon_no"])


def test_a_thousand_lines_are_locked_and_paid(shop: OrderShop) -> None:
    """Every unit of the discount is on a line."""
    lines = [line(str(number), 100 + number) for number in range(1_000)]
    coupon = shop.issue(shop.template())

    locked = shop.lock("o1", [coupon], lines)
    shop.pay("o1")
    refunded = [shop.refund("o1", f"ref-{number}", [(str(number), 1)]) for number in range(0, 1_000, 250)]
    rest = shop.refund("o1", "rest")

    assert 2_000 == sum(share["amount"] for share in locked["applied"][0]["allocations"])
    assert locked["payable"] == sum(each["refund_amount"] for each in [*refunded, rest])
    assert 0 == shop.expense()


@pytest.mark.parametrize("ttl_seconds", [60, 86_400])
def test_a_lock_stands_for_as_long_as_was_asked(shop: OrderShop, ttl_seconds: int) -> None:
    """From a minute to a day."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon], ttl_seconds=ttl_seconds)

    swept: list[Any] = []
    for moment in (ttl_seconds - 1, ttl_seconds):
        shop.clock.now = START + timedelta(seconds=moment)
        swept.append(shop.sweep())

    assert [0, 1] == swept
