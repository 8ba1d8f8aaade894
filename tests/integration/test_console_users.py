"""Users and coupons in the console: found by either number, looked at, taken back with a reason."""

from __future__ import annotations

import re
from html import unescape

import pytest
from sqlalchemy import text

from coupon_workers.coupons.coupon_trail import owner_of, transfer_chain
from coupon_workers.runtime.services import Services
from tests.support.console_visitor import Visitor
from tests.support.gift import give
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def clerk(shop: Shop) -> Visitor:
    """Whoever answers the telephone."""
    return Visitor(shop, "admin")


def test_a_number_leads_to_its_coupon_and_a_user_to_the_wallet(shop: Shop, clerk: Visitor) -> None:
    """One field for both: an id of digits that is no coupon's is a user's."""
    coupon_no = OrderCentre(shop, "12345").coupon()

    assert f"/console/coupons/{coupon_no}" == clerk.get(f"/users?q={coupon_no}").location
    assert coupon_no in clerk.page("/users?q=12345")
    assert "This user has no coupon." in clerk.page("/users?q=54321")
    assert "No user is called so." in clerk.page("/users?q=a%20b")


def test_a_wallet_is_shown_by_status_and_in_pages(shop: Shop, clerk: Visitor) -> None:
    """Fifty at a time; a user id with a slash is one too."""
    template_id = shop.desk.open(total_quantity=60)
    numbers = [shop.front.claimed(template_id, "a/b&c", f"r{n}") for n in range(51)]
    shop.settle(template_id)

    first = clerk.page("/users?q=a/b%26c")
    address = re.search(r'href="/console([^"]+)" rel="next"', first)
    assert address is not None
    older = clerk.page(unescape(address[1]))

    assert 50 == sum(number in first for number in numbers)
    assert 1 == sum(number in older for number in numbers)
    assert "No coupon here." in clerk.page("/users?q=a/b%26c&status=locked")


def test_a_coupon_tells_its_history_and_its_hands(shop: Shop, clerk: Visitor) -> None:
    """From the middle of a chain both ends are seen."""
    first = OrderCentre(shop).coupon(transferable=True)
    second = give(shop.services, "ann", int(first), "ben")
    third = give(shop.services, "ben", second, "cleo")

    page = clerk.page(f"/coupons/{second}")

    assert all(f"/console/coupons/{number}" in page for number in (first, third))
    assert "gift" in page
    hands = [(hand.user_id, hand.coupon_no) for hand in transfer_chain(shop.services, third)]
    assert [("ann", first), ("ben", str(second)), ("cleo", str(third))] == hands
    assert "cleo" == owner_of(shop.services, third)
    assert "From hand to hand" not in clerk.page(f"/coupons/{OrderCentre(shop).coupon('r2')}")


def test_a_coupon_is_taken_back_with_a_reason(shop: Shop, clerk: Visitor) -> None:
    """Without one it is not; the reason is in the audit log, under the clerk's key; again changes nothing."""
    coupon_no = OrderCentre(shop).coupon()

    assert 422 == clerk.post(f"/coupons/{coupon_no}/revoke", reason=" ").status_code
    for _ in range(2):
        clerk.done(f"/coupons/{coupon_no}/revoke", reason="claimed by a robot")

    with shop.services.engine.connect() as connection:
        row = connection.execute(text("SELECT operator, after FROM audit_log WHERE action = 'coupon.revoke'")).one()
    assert (clerk.key.record.key_id, "claimed by a robot") == (row.operator, row.after["reason"])
    assert "revoked" == shop.front.coupon("ann", coupon_no).ok()["status"]
    assert "Revoke</summary>" not in clerk.page(f"/coupons/{coupon_no}")


def test_a_coupon_that_an_order_holds_is_not_taken_back(shop: Shop, clerk: Visitor) -> None:
    """The page says why; nothing has changed."""
    centre = OrderCentre(shop)
    coupon_no = centre.coupon()
    centre.lock("o-1", [coupon_no]).ok()

    answer = clerk.post(f"/coupons/{coupon_no}/revoke", reason="by mistake")

    assert 409 == answer.status_code
    assert "not unused any more" in answer.text
    assert "locked" == shop.front.coupon("ann", coupon_no).ok()["status"]


@pytest.mark.parametrize("number", ["1", "x", "9" * 30, "٣"])
def test_a_number_that_is_no_coupon_is_not_found(clerk: Visitor, number: str) -> None:
    """As a page."""
    answer = clerk.get(f"/coupons/{number}")

    assert (404, True) == (answer.status_code, "There is no such coupon." in answer.text)
