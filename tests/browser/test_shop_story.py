"""The demo shop in a browser: one story from the countdown to the refund, and what it looks like on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from pydantic import SecretStr

from coupon_workers.codes.code_generation import run_generation
from coupon_workers.runtime.services import Services
from tests.browser.conftest import NewReader
from tests.support.console_reader import PHONE, Reader
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop that serves its storefront, and has a pepper for codes."""
    return Shop(services, claim_rate=0, shop=True, code_pepper=SecretStr("a-pepper-of-sixteen-bytes"))


def _enter(reader: Reader) -> Page:
    reader.page.goto("/shop", wait_until="networkidle")
    reader.press("Look around" if reader.page.locator("html[lang=en]").count() else "进入商城")
    return reader.page


def _code(shop: Shop) -> str:
    """One code for a coupon of a template."""
    template_id = shop.desk.open(name="From a leaflet", type="cash", amount=500, threshold=0)
    body = {"template_id": template_id, "quantity": 1}
    batch = shop.desk.admin.ask("POST", "/v1/code-batches", body).ok(202)["code_batch_id"]
    run_generation(shop.services, int(batch))
    return shop.desk.admin.ask("GET", f"/v1/code-batches/{batch}/codes.csv").body.decode().split()[1]


def test_a_coupon_from_the_countdown_to_the_refund(shop: Shop, reader: Reader) -> None:
    """Counted down, claimed, queued, issued, held, paid with, sent back; and a code becomes a coupon."""
    template_id = shop.desk.open(name="Double Eleven", claim_start=from_now(seconds=20), refund={"return": "full_only"})
    code = _code(shop)
    page = _enter(reader)
    offer = page.locator("article.coupon").filter(has_text="Double Eleven").first
    expect(offer.locator(".countdown")).to_have_text(re.compile(r"00:00:\d\d"))

    offer.get_by_role("button", name="Claim").click(timeout=40_000)
    expect(page.locator("#claim")).to_contain_text("In the queue")
    reader.shoot("shop-queued")
    shop.settle(template_id)
    expect(page.locator("#claim")).to_contain_text("Yours!")
    reader.shoot("shop-issued")
    reader.assert_content()

    page.get_by_label("Pieces Desk lamp").fill("2")
    reader.press("To the cart")
    expect(page.locator("dl")).to_contain_text("CN¥238.00")
    reader.assert_content()
    reader.press("Place the order")
    status = page.get_by_role("status")
    expect(status).to_have_text("coupons held")
    reader.press("Pay")
    expect(status).to_have_text("paid")
    reader.shoot("shop-paid")
    reader.assert_content()
    reader.press("Send one back Desk lamp")
    expect(status).to_have_text("returned in part")
    reader.shoot("shop-returned-in-part")
    reader.assert_content()
    reader.press("Send the rest back")
    expect(status).to_have_text("returned")
    expect(page.locator("dl")).to_contain_text("Paid back altogether")

    reader.press("On to the shop")
    page.get_by_label("Code").fill(code)
    reader.press("Exchange")
    expect(page.get_by_role("status")).to_contain_text("The code is exchanged")
    expect(page.locator("article.unused")).to_have_count(2)
    shop.assert_sound()
    assert [] == reader.complaints


def test_the_shop_on_a_phone_in_chinese(shop: Shop, new_reader: NewReader) -> None:
    """In the dark; nothing sticks out, everything is readable."""
    template_id = shop.desk.open(name="满100减20 双十一")
    shop.desk.open(name="八五折", type="percent_off", amount=None, percent_off=1_500, claim_start=from_now(hours=3))
    shop.front.claimed(template_id, "ann")
    shop.settle(template_id)
    reader = new_reader(language="zh", size=PHONE, dark=True)
    reader.page.goto("/shop/welcome", wait_until="networkidle")
    reader.shoot("shop-welcome-phone")

    _enter(reader)

    expect(reader.page.get_by_role("heading", name="领券中心")).to_be_visible()
    reader.shoot("shop-phone")
    reader.assert_content()
    reader.assert_fits()


def test_the_shop_is_told_the_visitors_zone(shop: Shop, reader: Reader) -> None:
    """By its own script, at the door: no page after it speaks of UTC."""
    shop.desk.open(name="Midsummer", timezone="Asia/Tokyo")

    page = _enter(reader)

    told = {cookie["name"]: cookie["value"] for cookie in page.context.cookies() if cookie["path"] == "/shop"}
    assert "Asia/Shanghai" == told["cw_zone"]
    assert "UTC" not in page.content() and "Asia/Tokyo" not in page.content()


def test_a_long_state_stays_within_its_card(shop: Shop, reader: Reader) -> None:
    """At a desktop's width, in English: it is the longest there is."""
    template_id = shop.desk.open(name="Aside", total_quantity=1)
    shop.desk.admin.ask("POST", "/v1/code-batches", {"template_id": template_id, "quantity": 1}).ok(202)
    page = _enter(reader)

    card = page.locator("article.coupon").filter(has_text="Aside")
    state = card.get_by_text("by code, prize or gift only")
    inside, outside = state.bounding_box(), card.bounding_box()

    assert inside is not None and outside is not None
    assert inside["x"] + inside["width"] < outside["x"] + outside["width"]
