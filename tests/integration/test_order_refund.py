"""Refunds of orders that were paid with coupons (API.md, Orders): exact, each once, and the coupon's way back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.runtime.services import Services
from tests.support.order_books import BROKEN, nothing_written, refused_without_a_trace
from tests.support.order_shop import Json, OrderShop, line, refused
from tests.support.sale import assert_sound

TEN_PERCENT: Json = {"type": "percent_off", "amount_minor": None, "percent_off_bp": 1_000, "threshold_minor": 0}


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def paid(shop: OrderShop, lines: list[Json], **template: Any) -> int:
    """Order ``o1``, paid with a coupon of a template of its own; the coupon."""
    coupon = shop.issue(shop.template(**template))
    shop.lock("o1", [coupon], lines)
    shop.pay("o1")
    return coupon


def money(refund: Json) -> tuple[int, int]:
    """What is paid back, and the discount that goes with it."""
    return refund["refund_amount"], refund["discount_reversed"]


def test_a_part_takes_its_share_of_the_discount_back(shop: OrderShop) -> None:
    """3 × 10000 with 10 % off, two of them returned: the coupon stays redeemed (CASES 17)."""
    coupon = paid(shop, [line("1", 10_000, 3)], **TEN_PERCENT)

    refund = shop.refund("o1", "ref-1", [("1", 2)])

    assert {
        "refund_no": "ref-1",
        "order_no": "o1",
        "refund_amount": 18_000,
        "discount_reversed": 2_000,
        "lines": [{"line_id": "1", "quantity": 2}],
        "coupons": [{"coupon_no": str(coupon), "status": "redeemed", "discount_reversed": 2_000}],
        "at": "2026-11-11T04:00:00Z",
    } == refund
    assert ("redeemed", 1_000) == (shop.status(coupon), shop.expense())
    assert [("refund", "order_discount", "coupon_expense", 2_000)] == shop.ledger()[1:]
    whole = shop.read("o1")
    assert (18_000, [refund], [("redeemed", 2_000)]) == (
        whole["refunded"],
        whole["refunds"],
        [(use["state"], use["discount_reversed"]) for use in whole["applied"]],
    )
    assert_sound(shop.services)


def test_each_line_goes_back_with_its_own_share(shop: OrderShop) -> None:
    """600 and 400 with 10 % off: 540, then 360, then nothing is left (CASES 18)."""
    coupon = paid(shop, [line("1", 600), line("2", 400)], **TEN_PERCENT)

    refunds = [shop.refund("o1", "ref-1", [("1", 1)]), shop.refund("o1", "ref-2", [("2", 1)])]

    assert [(540, 60), (360, 40)] == list(map(money, refunds))
    for again in (None, [("1", 1)]):
        assert ("NOTHING_LEFT", {}) == refused_without_a_trace(shop, lambda: shop.refund("o1", "ref-3", again))  # noqa: B023
    assert ("unused", 0) == (shop.status(coupon), shop.expense())
    assert ["lock", "redeem", "refund"] == [action for action, _, _ in shop.flow(coupon)]
    assert ["coupon.locked", "coupon.redeemed", "coupon.returned"] == [
        event for (event,) in shop.rows("SELECT event FROM outbox ORDER BY outbox_id")
    ]
    assert_sound(shop.services)


@pytest.mark.parametrize(("threshold", "amount"), [("keep", 22_500), ("recheck", 22_000)])
def test_a_threshold_that_is_no_longer_reached_keeps_or_costs_the_discount(
    shop: OrderShop, threshold: str, amount: int
) -> None:
    """6 × 5000, 10 % from 30000, five returned (CASES 19); with the last piece all of it is paid back."""
    terms = {"refund": {"threshold": threshold}, "threshold_minor": 30_000}
    coupon = paid(shop, [line("1", 5_000, 6)], **TEN_PERCENT | terms)

    part, rest = shop.refund("o1", "ref-1", [("1", 5)]), shop.refund("o1", "ref-2")

    assert [amount, 27_000 - amount] == [part["refund_amount"], rest["refund_amount"]]
    assert 3_000 == part["discount_reversed"] + rest["discount_reversed"]
    assert ("unused", 0) == (shop.status(coupon), shop.expense())
    assert_sound(shop.services)


def test_a_refund_is_answered_the_same_for_good(shop: OrderShop) -> None:
    """After others, much later, and when the coupon is on another order: the same answer, nothing written."""
    coupon = paid(shop, [line("1", 10_000, 3)])
    first = shop.refund("o1", "ref-1", [("1", 1)])
    last = shop.refund("o1", "ref-2")
    shop.lock("o2", [coupon])
    shop.clock.pass_by(days=400)

    with nothing_written(shop.services):
        assert [first, last] == [shop.refund("o1", "ref-1", [("1", 1)]), shop.refund("o1", "ref-2")]


def test_a_refund_number_means_one_refund(shop: OrderShop) -> None:
    """With another body it is refused by its field; also for another order, paid or not."""
    paid(shop, [line("1", 10_000, 3)])
    shop.refund("o1", "ref-1", [("1", 1)])
    shop.pay_directly("o2", [shop.issue(shop.template())])
    shop.lock("o3", [shop.issue(shop.template())])
    expected = ("INVALID", {"refund_no": "belongs to another refund"})

    for order, lines in (("o1", None), ("o1", [("1", 2)]), ("o2", None), ("o2", [("1", 1)]), ("o3", None)):
        assert expected == refused_without_a_trace(shop, lambda: shop.refund(order, "ref-1", lines))  # noqa: B023
    bob = replace(shop, user="bob")
    bob.pay_directly("o1", [bob.issue(shop.template())])
    assert 13_000 == bob.refund("o1", "ref-1")["refund_amount"]


def test_a_refund_before_the_payment_is_refused(shop: OrderShop) -> None:
    """And leaves nothing behind: the same number returns the order once it is paid."""
    assert ("ORDER_NOT_FOUND", {}) == refused_without_a_trace(shop, lambda: shop.refund("o1", "ref-1"))
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    assert ("NOT_REDEEMED", {"order_status": "locked"}) == refused_without_a_trace(
        shop, lambda: shop.refund("o1", "ref-1")
    )
    shop.release("o1")
    assert ("NOT_REDEEMED", {"order_status": "released"}) == refused_without_a_trace(
        shop, lambda: shop.refund("o1", "ref-1")
    )
    shop.pay("o1")
    assert 13_000 == shop.refund("o1", "ref-1")["refund_amount"]
    assert ("ORDER_NOT_FOUND", {}) == refused(lambda: replace(shop, user="bob").refund("o1", "ref-2"))


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ([("1", 3)], "lines.0.quantity"),
        ([("2", 1), ("1", 3)], "lines.1.quantity"),
        ([("9", 1)], "lines.0.line_id"),
        ([("1", 1), ("1", 1)], "lines.1.line_id"),
    ],
)
def test_what_is_not_there_to_return_is_refused_by_its_field(
    shop: OrderShop, lines: list[tuple[str, int]], field: str
) -> None:
    """More than is left, a line that does not exist, a line twice: all or nothing."""
    paid(shop, [line("1", 10_000, 3), line("2", 5_000)])
    shop.refund("o1", "ref-1", [("1", 1)])

    code, fields = refused_without_a_trace(shop, lambda: shop.refund("o1", "ref-2", lines))

    assert ("INVALID", [field]) == (code, list(fields))


@pytest.mark.parametrize(
    ("terms", "status", "days"),
    [
        ({}, "unused", 0),
        ({"return": "never"}, "redeemed", None),
        ({"expired": "expire"}, "expired", 7),
        ({"expired": "extend", "grace_days": 3}, "unused", 7),
        ({"expired": "extend", "grace_days": 0}, "expired", 7),
        ({"return": "never", "expired": "extend", "grace_days": 3}, "redeemed", 7),
    ],
)
def test_where_the_coupon_goes_is_its_templates_policy(
    shop: OrderShop, terms: Json, status: str, days: int | None
) -> None:
    """``days`` after the payment. The money goes back in any case."""
    coupon = paid(shop, [line("1", 10_000, 3)], refund=terms)
    [(ends,)] = shop.rows("SELECT valid_to FROM coupon")
    shop.clock.pass_by(days=days or 0)

    part, rest = shop.refund("o1", "ref-1", [("1", 2)]), shop.refund("o1", "ref-2")

    assert ["redeemed", status] == [refund["coupons"][0]["status"] for refund in (part, rest)]
    assert (status, 0) == (shop.status(coupon), shop.expense())
    assert 28_000 == part["refund_amount"] + rest["refund_amount"]
    extended = shop.clock.now + timedelta(days=3) if status == "unused" and days else ends
    order_no = "o1" if status == "redeemed" else None
    assert [(extended, order_no)] == shop.rows("SELECT valid_to, order_no FROM coupon")
    assert_sound(shop.services)


def test_an_extended_coupon_is_used_again_and_ends_in_the_end(shop: OrderShop) -> None:
    """On another order, until its grace is over."""
    coupon = paid(shop, [line("1", 10_000)], refund={"expired": "extend", "grace_days": 3})
    shop.clock.pass_by(days=30)
    shop.refund("o1", "ref-1")

    assert "locked" == shop.lock("o2", [coupon])["status"]
    shop.release("o2")
    shop.clock.pass_by(days=3)
    assert "EXPIRED" == refused(lambda: shop.lock("o3", [coupon]))[0]
    assert 1 == expire_coupons(shop.services, shop.clock.now)
    assert_sound(shop.services)


def test_a_returned_coupon_pays_once_more(shop: OrderShop) -> None:
    """Two orders, one coupon after the other: each has its own use, money and step."""
    coupon = paid(shop, [line("1", 10_000)])
    shop.refund("o1", "ref-1")
    shop.pay_directly("o2", [coupon])

    shop.refund("o2", "ref-2", [("2", 1)])

    assert [("o1", "returned", 2_000), ("o2", "redeemed", 667)] == shop.rows(
        "SELECT order_no, state, reversed_minor FROM coupon_use ORDER BY order_no"
    )
    assert 2_000 - 667 == shop.expense()
    assert_sound(shop.services)


BEHIND_OUR_BACK = {
    "the coupon is unused": "UPDATE coupon SET status = 'unused', order_no = NULL",
    "the coupon is another order's": "UPDATE coupon SET order_no = 'o9'",
    "the coupon is revoked": "UPDATE coupon SET status = 'revoked'",
    "the use is returned": "UPDATE coupon_use SET state = 'returned'",
    "the use is gone": "DELETE FROM coupon_use",
    "the coupon is gone": "DELETE FROM coupon",
}


@pytest.mark.parametrize("change", BEHIND_OUR_BACK)
def test_an_order_that_was_changed_behind_our_back_is_not_half_returned(shop: OrderShop, change: str) -> None:
    """It is refused by name."""
    paid(shop, [line("1", 10_000)])
    shop.execute(BEHIND_OUR_BACK[change])

    assert BROKEN == refused_without_a_trace(shop, lambda: shop.refund("o1", "ref-1"))


LINES = st.lists(st.tuples(st.integers(1, 9_999), st.integers(1, 4)), min_size=1, max_size=4)


# On a real database: few examples, and the first that fails is told as it is.
@settings(max_examples=20, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=LINES, amount=st.integers(1, 20_000), percent=st.integers(1, 10_000), recheck=st.booleans(), data=st.data()
)
def test_however_an_order_is_returned_the_parts_sum_to_what_was_paid(
    shop: OrderShop, lines: list[tuple[int, int]], amount: int, percent: int, recheck: bool, data: st.DataObject
) -> None:
    """Piece by piece in any order: the refunds are what was paid, the reversals are the discount, the ledger nets."""
    order = str(shop.services.next_id(0))
    cart = [line(str(number), price, quantity) for number, (price, quantity) in enumerate(lines)]
    subtotal = sum(price * quantity for price, quantity in lines)
    policy = {"threshold": "recheck" if recheck else "keep"}
    coupons = [
        shop.issue(shop.template(amount_minor=amount, threshold_minor=subtotal, refund=policy)),
        shop.issue(shop.template(**TEN_PERCENT | {"percent_off_bp": percent, "refund": policy})),
    ]
    usable = [int(use["coupon_no"]) for use in shop.quote(coupons, cart)["applied"]]
    shop.lock(order, usable, cart)
    paid = shop.pay(order)
    left = {str(number): quantity for number, (_, quantity) in enumerate(lines)}
    refunds = []

    while left:
        line_id = data.draw(st.sampled_from(sorted(left)))
        quantity = data.draw(st.integers(1, left[line_id]))
        left = {name: kept - quantity * (name == line_id) for name, kept in left.items()}
        left = {name: kept for name, kept in left.items() if kept}
        refunds.append(shop.refund(order, f"{order}-{len(refunds)}", [(line_id, quantity)]))

    assert (paid["payable"], paid["discount"]) == (
        sum(refund["refund_amount"] for refund in refunds),
        sum(refund["discount_reversed"] for refund in refunds),
    )
    assert all(amount >= 0 for refund in refunds for amount in money(refund))
    assert {"unused"} == {shop.status(coupon) for coupon in coupons}
    assert (0, "NOTHING_LEFT") == (expense(shop, order), refused(lambda: shop.refund(order, f"{order}-more"))[0])


def expense(shop: OrderShop, order: str) -> int:
    """What one order has cost."""
    [(cost,)] = shop.rows(
        "SELECT coalesce(sum(CASE debit_account WHEN 'coupon_expense' THEN amount_minor ELSE -amount_minor END), 0)"
        " FROM ledger_entry WHERE order_no = :order",
        order=order,
    )
    return int(cost)


def test_the_books_of_many_returns_are_sound(shop: OrderShop) -> None:
    """What the last test did, once more with the eyes of the checker."""
    template = shop.template(refund={"threshold": "recheck"})
    for number in range(5):
        shop.pay_directly(f"o{number}", [shop.issue(template)], payment=f"pay-{number}")
        shop.refund(f"o{number}", f"a{number}", [("1", 1)] if number % 2 else [("2", 1)])
        if number > 2:
            shop.refund(f"o{number}", f"b{number}")

    assert_sound(shop.services)
