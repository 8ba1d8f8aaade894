"""Users and coupons in the console: found by either number, looked at, taken back with a reason."""

from __future__ import annotations

import re
from html import unescape

import pytest
from sqlalchemy import text

from coupon_workers.coupons.coupon_trail import owner_of, transfer_chain
from tests.support.console_visitor import Visitor
from tests.support.gift import give
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre


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


def test_a_lock_is_freed_with_a_reason_and_by_force(shop: Shop, clerk: Visitor) -> None:
    """While the order may be paid the form says so and keeps the reason; a locked coupon has no other button."""
    centre = OrderCentre(shop)
    coupon_no = centre.coupon()
    centre.lock("o-1", [coupon_no]).ok()
    assert ["Unlock"] == buttons(clerk, coupon_no)

    stands = clerk.post(f"/coupons/{coupon_no}/unlock", reason="a call")
    assert 422 == clerk.post(f"/coupons/{coupon_no}/unlock", reason=" ", force="on").status_code
    assert "locked" == shop.front.coupon("ann", coupon_no).ok()["status"]
    for _ in range(2):
        clerk.done(f"/coupons/{coupon_no}/unlock", reason="a call", force="on")

    assert (409, True) == (stands.status_code, "The order may still be paid." in stands.text)
    assert '<details class="confirm" open>' in stands.text and ">a call</textarea>" in stands.text
    assert f"/console/coupons/{coupon_no}" == clerk.get(f"/coupons/{coupon_no}/unlock").location
    assert [(clerk.key.record.key_id, "a call", None)] == said(shop, "coupon.unlock")
    page = clerk.page(f"/coupons/{coupon_no}")
    assert f"key:{clerk.key.record.key_id}" in page and "“a call”" in page.split("Done by hand, and why")[1]
    assert f"/console/audit?subject=coupon:{coupon_no}" in page
    assert ["Replace", "Revoke"] == buttons(clerk, coupon_no)


def test_a_coupon_is_replaced_once_a_form(shop: Shop, clerk: Visitor) -> None:
    """Pressed twice it leads to the same new coupon; another form hears that it was replaced."""
    coupon_no = OrderCentre(shop).coupon()
    template_id = shop.desk.open()
    sent = {"template_id": template_id, "reason": "the wrong one", "allotted": allotted(clerk, coupon_no)}
    other = allotted(clerk, coupon_no)

    leads = {clerk.done(f"/coupons/{coupon_no}/reissue", **sent) for _ in range(2)}
    again = clerk.post(f"/coupons/{coupon_no}/reissue", **sent | {"allotted": other})

    [new] = {re.findall(r"/coupons/(\d+)", address)[0] for address in leads}
    assert ("manual", template_id) == tuple(
        shop.front.coupon("ann", new).ok()[name] for name in ("source", "template_id")
    )
    assert "revoked" == shop.front.coupon("ann", coupon_no).ok()["status"]
    assert (409, True) == (again.status_code, "has taken its place" in again.text)
    assert [(clerk.key.record.key_id, "the wrong one", coupon_no)] == said(shop, "coupon.reissue")
    page = clerk.page(f"/coupons/{coupon_no}")
    assert f'/console/coupons/{new}"' in page and "“the wrong one”" in page
    assert [] == buttons(clerk, coupon_no)
    made = clerk.page(f"/coupons/{new}")
    assert f'/console/coupons/{coupon_no}"' in made.split("It has taken the place of another coupon:")[1]
    assert "“the wrong one”" in made and "taken the place of another" not in page


@pytest.mark.parametrize("action", ["revoke", "unlock", "reissue"])
def test_what_is_done_with_a_coupon_wants_its_session_and_scope(shop: Shop, clerk: Visitor, action: str) -> None:
    """A form without the session's token, and a key of another scope, do nothing."""
    coupon_no = OrderCentre(shop).coupon()
    address = f"/coupons/{coupon_no}/{action}"

    answers = [
        clerk.post(address, reason="x", form_token="another"),
        Visitor(shop, "ops").post(address, reason="x"),
        Visitor(shop, "storefront").post(address, reason="x"),
    ]

    assert [403] * 3 == [answer.status_code for answer in answers]
    assert [] == said(shop, f"coupon.{action}")


def test_a_paid_coupon_has_no_buttons(shop: Shop, clerk: Visitor) -> None:
    """It is returned with its order. In Chinese the buttons have their words."""
    centre = OrderCentre(shop)
    coupon_no, other = centre.coupon(), centre.coupon("r2")
    centre.lock("o-1", [coupon_no]).ok()
    assert ["解锁"] == buttons(Visitor(shop, "admin", language="zh"), coupon_no)
    centre.redeem("o-1").ok()

    assert [] == buttons(clerk, coupon_no)
    assert ["换发", "撤销"] == buttons(Visitor(shop, "admin", language="zh"), other)


def test_a_coupon_tells_what_it_has_cost_booking_by_booking(shop: Shop, clerk: Visitor) -> None:
    """With its orders, which lead to all of theirs; what a refund took back also where the coupon never comes back."""
    centre = OrderCentre(shop)
    coupon_no, other = centre.coupon(refund={"return": "never"}), centre.coupon("r2")
    centre.lock("o-1", [coupon_no]).ok()
    before = clerk.page(f"/coupons/{coupon_no}")
    centre.redeem("o-1").ok()
    paid = clerk.page(f"/coupons/{coupon_no}")
    centre.refund("o-1", "back-1").ok()

    returned = clerk.page(f"/coupons/{coupon_no}")

    assert "What it has cost" not in before and "What it has cost" not in clerk.page(f"/coupons/{other}")
    assert "What it has cost" in paid and "Taken back by refunds" not in paid
    assert 'href="/console/ledger?user_id=ann&amp;order_no=o-1"' in paid
    assert "redeemed" == shop.front.coupon("ann", coupon_no).ok()["status"]
    assert "−CN¥20.00" in returned.split("What it has cost")[1]
    assert "CN¥20.00 · the coupon has not come back" in returned
    assert "退款收回" in Visitor(shop, "admin", language="zh").page(f"/coupons/{coupon_no}")


def buttons(clerk: Visitor, coupon_no: str) -> list[str]:
    """What the page offers to do, each behind a question."""
    return re.findall(r'<summary class="button[^"]*">([^<]+)</summary>', clerk.page(f"/coupons/{coupon_no}"))


def allotted(clerk: Visitor, coupon_no: str) -> str:
    """The identity that the page's form carries."""
    found = re.search(r'name="allotted" value="([^"]+)"', clerk.page(f"/coupons/{coupon_no}"))
    assert found is not None
    return found[1]


def said(shop: Shop, action: str) -> list[tuple[str, str, str | None]]:
    """Operator, reason and the coupon that was replaced, of each such row of the audit log."""
    rows = text("SELECT operator, after ->> 'reason', after ->> 'in_place_of' FROM audit_log WHERE action = :action")
    with shop.services.engine.connect() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(rows, {"action": action})]


@pytest.mark.parametrize("number", ["1", "x", "9" * 30, "٣"])
def test_a_number_that_is_no_coupon_is_not_found(clerk: Visitor, number: str) -> None:
    """As a page."""
    answer = clerk.get(f"/coupons/{number}")

    assert (404, True) == (answer.status_code, "There is no such coupon." in answer.text)
