"""Somebody calls about a coupon: an order keeps it, it is the wrong one; all of it by keyboard, and in Chinese."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import NewReader
from tests.support.console_reader import PHONE, Reader
from tests.support.http_shop import Shop
from tests.support.order_http import OrderCentre


def _ask(page: Page, name: str, reason: str) -> None:
    """Open a question by keyboard, and say why."""
    page.locator("summary", has_text=name).focus()
    page.keyboard.press("Enter")
    expect(page.locator("details.confirm[open] textarea")).to_be_focused()
    page.keyboard.type(reason)


def test_a_lock_is_freed_and_the_coupon_replaced_by_keyboard(shop: Shop, reader: Reader) -> None:
    """The order may still be paid: it takes a second decision. The new coupon's page says whence it came."""
    centre = OrderCentre(shop)
    coupon_no = centre.coupon(restock_on_revoke=True)
    centre.lock("order-7", [coupon_no]).ok()
    page = reader.open(f"/coupons/{coupon_no}")

    _ask(page, "Unlock", "the buyer gave up")
    reader.shoot("story-unlock")
    reader.assert_content()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The order may still be paid.")
    reader.complaints.clear()  # the browser's own word on that answer
    reader.assert_content()
    reason = page.locator("details.confirm[open] textarea")
    expect(reason).to_have_value("the buyer gave up")
    reason.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Unlocked")
    expect(page.locator("h1 .badge")).to_have_text("unused")

    _ask(page, "Replace", "the wrong one")
    reader.assert_content()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_role("status")).to_contain_text("This is the new coupon.")
    expect(page.get_by_text("by hand", exact=True)).to_be_visible()
    reader.shoot("story-replaced")
    statuses = {coupon["coupon_no"]: coupon["status"] for coupon in shop.front.wallet("ann").ok()["items"]}
    assert ("revoked", ["revoked", "unused"]) == (statuses[coupon_no], sorted(statuses.values()))
    reader.assert_content()


def test_on_a_phone_in_chinese_it_fits(shop: Shop, new_reader: NewReader) -> None:
    """The question with its field is read by aids too."""
    coupon_no = OrderCentre(shop).coupon()
    reader = new_reader("admin", language="zh", size=PHONE)
    page = reader.open(f"/coupons/{coupon_no}")

    reader.press("换发")
    reader.shoot("story-replace-phone-zh")
    reader.assert_content()
    reader.assert_fits()
    reader.confirm("寄丢了")

    expect(page.get_by_role("status")).to_contain_text("这是新券")
    assert [] == reader.complaints
