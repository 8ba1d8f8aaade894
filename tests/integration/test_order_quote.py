"""Quotes (API.md, Orders): what coupons would take off, without taking anything."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coupon_workers.orders.quote import MOST_TRIED
from coupon_workers.runtime.services import Services
from tests.support.order_books import nothing_written, refused_without_a_trace
from tests.support.order_shop import START, Json, OrderShop, line
from tests.support.sale import assert_sound


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def used(answer: Json) -> list[str]:
    """The numbers of the coupons that a quote applies."""
    return [applied["coupon_no"] for applied in answer["applied"]]


def test_a_quote_says_what_a_lock_would(shop: OrderShop) -> None:
    """The whole answer; to the letter what the lock of the same coupons answers, and nothing is stored."""
    template = shop.template()
    coupons = [shop.issue(template), shop.issue(shop.template(type="cash", amount_minor=700, threshold_minor=0))]

    with nothing_written(shop.services):
        quote = shop.quote(coupons)
    lock = shop.lock("o1", coupons)

    shared = {name: quote[name] for name in ("applied", "subtotal", "discount", "payable")}
    assert shared | {"rejected": [], "exact": True} == quote
    assert shared == {name: lock[name] for name in shared}
    assert (15_000, 2_700, 12_300) == (quote["subtotal"], quote["discount"], quote["payable"])
    assert_sound(shop.services)


def test_without_numbers_the_best_of_the_wallet_is_quoted(shop: OrderShop) -> None:
    """Of two that exclude each other the larger; and only what is the user's, free, valid and of the currency."""
    exclusive = {"stacking": {"exclusive": True, "group": None, "priority": 100}}
    small, large = shop.issue(shop.template(**exclusive)), shop.issue(shop.template(amount_minor=3_000, **exclusive))
    huge = {"amount_minor": 9_000}
    shop.issue(shop.template(**huge), "bob")
    shop.issue(shop.template(**huge), valid_to=START)
    shop.issue(shop.template(**huge), valid_from=START + timedelta(seconds=1))
    shop.issue(shop.template(currency="JPY", **huge))
    shop.issue(shop.template(status="offline", **huge))
    shop.issue(shop.template(threshold_minor=15_001, **huge))

    with nothing_written(shop.services):
        quote = shop.quote()

    assert ([str(large)], 3_000, True) == (used(quote), quote["discount"], quote["exact"])
    assert {"STACKING_CONFLICT"} >= {each["code"] for each in quote["rejected"] if each["coupon_no"] == str(small)}


def test_an_empty_wallet_takes_nothing_off(shop: OrderShop) -> None:
    """A normal answer."""
    assert {
        "applied": [],
        "rejected": [],
        "subtotal": 15_000,
        "discount": 0,
        "payable": 15_000,
        "exact": True,
    } == shop.quote()


def test_a_quote_of_named_coupons_says_why_each_is_not_used(shop: OrderShop) -> None:
    """In the order in which they were named; the others are applied all the same."""
    good, locked, expired, revoked, poor = (shop.issue(shop.template()) for _ in range(5))
    shop.lock("o1", [locked])
    shop.execute("UPDATE coupon SET status = 'expired' WHERE coupon_id = :id", id=expired)
    shop.execute("UPDATE coupon SET status = 'revoked' WHERE coupon_id = :id", id=revoked)
    poor = shop.issue(shop.template(threshold_minor=15_750))

    quote = shop.quote([poor, revoked, good, expired, locked])

    assert ([str(good)], 2_000) == (used(quote), quote["discount"])
    assert [
        (str(poor), "THRESHOLD_NOT_MET", 750),
        (str(revoked), "COUPON_NOT_AVAILABLE", None),
        (str(expired), "EXPIRED", None),
        (str(locked), "LOCKED_BY_ORDER", None),
    ] == [(each["coupon_no"], each["code"], each["shortfall"]) for each in quote["rejected"]]
    assert "order o1" in quote["rejected"][3]["detail"]


def test_a_coupon_of_another_currency_is_not_used(shop: OrderShop) -> None:
    """In either direction, whatever the amounts (CASES 24)."""
    yuan = shop.issue(shop.template(type="cash", amount_minor=275, threshold_minor=0))
    yen = shop.issue(shop.template(type="cash", amount_minor=275, threshold_minor=0, currency="JPY"))
    lines = [line("1", 1_000)]

    assert ([str(yen)], 725) == (
        used(shop.quote(None, lines, currency="JPY")),
        shop.quote([yen], lines, currency="JPY")["payable"],
    )
    for coupon, currency in ((yuan, "JPY"), (yen, "CNY")):
        quote = shop.quote([coupon], lines, currency=currency)
        assert ("CURRENCY_MISMATCH", 1_000) == (quote["rejected"][0]["code"], quote["payable"])
        assert (
            "CURRENCY_MISMATCH"
            == refused_without_a_trace(
                shop,
                lambda: shop.lock("o1", [coupon], lines, currency=currency),  # noqa: B023
            )[0]
        )


def test_a_coupon_on_an_order_is_quoted_again_when_it_is_free(shop: OrderShop) -> None:
    """Locked: not; released, returned: again."""
    coupon = shop.issue(shop.template())

    shop.lock("o1", [coupon])
    locked = shop.quote()
    shop.release("o1")
    released = shop.quote()
    shop.pay("o1")
    paid = shop.quote()
    shop.refund("o1", "ref-1")

    assert [0, 2_000, 0, 2_000] == [answer["discount"] for answer in (locked, released, paid, shop.quote())]


def test_a_large_wallet_is_quoted_from_what_ends_first(shop: OrderShop) -> None:
    """As many as are tried; the answer says so much as it knows."""
    template = shop.template(type="cash", amount_minor=10, threshold_minor=0)
    last = shop.issue(
        shop.template(type="cash", amount_minor=5_000, threshold_minor=0), valid_to=START + timedelta(days=9)
    )
    for _ in range(MOST_TRIED):
        shop.issue(template)

    quote = shop.quote()

    assert str(last) not in used(quote)
    assert quote["discount"] > 0
    assert 5_000 == shop.quote([last])["discount"]
