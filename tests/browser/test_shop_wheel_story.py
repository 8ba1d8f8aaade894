"""The shop's wheel in a browser: it turns to what the server has drawn, says so in words, and never draws by itself."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from coupon_workers.runtime.services import Services
from tests.browser.conftest import NewReader
from tests.support.console_reader import PHONE, Reader
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.lottery import Fair, coupon_prize, open_lottery, thanks

AT_THE_PIN = """() => {
  const wheel = document.querySelector('.wheel').getBoundingClientRect();
  const part = document.elementFromPoint(wheel.x + wheel.width / 2, wheel.y + wheel.height * .3);
  return [...document.querySelectorAll('.wheel .area')].indexOf(part);
}"""
"""The part that lies under the wheel's pin, from 0."""


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop that serves its storefront."""
    return Shop(services, claim_rate=0, shop=True)


def _fair(shop: Shop, *weights: int, **changed: Any) -> Fair:
    """A wheel of a coupon, a thank-you and another coupon."""
    template_id = int(shop.desk.open(name="Gift", total_quantity=30, claim_start=from_now(hours=-1)))
    first, second, third = weights
    prizes = [coupon_prize(template_id, 5, first), thanks(second), coupon_prize(template_id, 1, third, "Half off")]
    return open_lottery(shop.services, prizes, **changed)


def _enter(reader: Reader) -> Page:
    reader.page.goto("/shop", wait_until="networkidle")
    reader.press("Look around" if reader.page.locator("html[lang=en]").count() else "进入商城")
    return reader.page


def _turn(page: Page) -> None:
    page.get_by_role("button", name="Turn the wheel").press("Enter")


def test_the_wheel_turns_to_what_the_server_drew(shop: Shop, reader: Reader) -> None:
    """It turns, tells, waits for the coupon and shows it; then the prize is used up; then the limit is told."""
    fair = _fair(shop, 0, 0, 1_000_000, per_user_limit=2)
    page = _enter(reader)
    result = page.locator(".result")
    reader.assert_content()
    left = page.locator(".left")
    expect(left).to_have_text("Draws left: 2")

    _turn(page)
    expect(result).to_have_text("The wheel turns…")
    expect(result).to_have_text("You have won: Half off. The coupon is on its way.")
    assert 2 == page.evaluate(AT_THE_PIN)
    expect(left).to_have_text("Draws left: 1")
    reader.shoot("shop-wheel-won")
    expect(page.locator("#wallet .coupon")).to_have_count(0)
    fair.drain()
    expect(result).to_have_text("You have won: Half off. The coupon is in your wallet.")
    expect(page.locator("#wallet .coupon")).to_have_count(1)
    expect(page.get_by_role("button", name="Turn the wheel")).to_be_focused()
    reader.assert_content()

    _turn(page)
    expect(result).to_have_text("Nothing this time.")
    assert 3 == page.evaluate(AT_THE_PIN)
    _turn(page)
    expect(left).to_have_text("Draws left: 0")
    expect(result).to_have_text("You have drawn as often as allowed.")
    assert 3 == page.evaluate(AT_THE_PIN)
    fair.drain()
    assert {"ann": 1} == fair.coupons()
    assert [] == reader.complaints
    shop.assert_sound()


def test_a_double_click_and_a_lost_answer_are_one_draw(shop: Shop, reader: Reader) -> None:
    """The answer is lost on its way back: turned again, the same prize is told."""
    fair = _fair(shop, 1_000_000, 0, 0)
    page = _enter(reader)
    lost: list[int] = []

    def lose(route: Any) -> None:
        if not lost:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/shop/data/draws", lose)
    page.get_by_role("button", name="Turn the wheel").dblclick()
    expect(page.locator(".result")).to_have_text("No answer. Turn again: it is the same draw.")
    page.get_by_role("button", name="Turn the wheel").dblclick()
    expect(page.locator(".result")).to_contain_text("You have won: 20 off.")

    fair.drain()
    assert [200] == lost
    assert {"ann": 1} == fair.coupons()
    assert 1 == len(fair.draws())


def test_who_wants_no_motion_sees_none(shop: Shop, reader: Reader) -> None:
    """The wheel stands at once where it stops."""
    _fair(shop, 0, 1_000_000, 0)
    reader.page.emulate_media(reduced_motion="reduce")
    page = _enter(reader)

    _turn(page)
    expect(page.locator(".result")).to_have_text("You have drawn: Thank you", timeout=3_000)

    assert 0 == page.evaluate("document.querySelector('.disc').getAnimations().length")
    assert 1 == page.evaluate(AT_THE_PIN)


def test_a_visitor_whose_name_is_gone_is_asked_for_it(shop: Shop, reader: Reader) -> None:
    """Nothing is drawn meanwhile."""
    fair = _fair(shop, 0, 1_000_000, 0)
    page = _enter(reader)

    page.context.clear_cookies()
    _turn(page)

    expect(page).to_have_url(re.compile("/shop/welcome"))
    assert 0 == fair.queued


def test_without_a_script_the_form_draws(shop: Shop, new_reader: NewReader) -> None:
    """The page is loaded with what came, and loaded again it is the same draw."""
    fair = _fair(shop, 1_000_000, 0, 0)
    reader = new_reader(scripts=False)
    page = _enter(reader)

    page.get_by_role("button", name="Turn the wheel").click()
    expect(page.locator(".result")).to_contain_text("The coupon is on its way.")
    fair.drain()
    page.get_by_role("button", name="Look again").click()

    expect(page.locator(".result")).to_contain_text("The coupon is in your wallet.")
    assert {"ann": 1} == fair.coupons()


def test_the_wheel_on_a_phone_in_chinese(shop: Shop, new_reader: NewReader) -> None:
    """In the dark; nothing sticks out, everything is readable."""
    _fair(shop, 0, 1_000_000, 0, name="双十一转盘", per_user_daily_limit=1)
    reader = new_reader(language="zh", size=PHONE, dark=True)
    page = _enter(reader)

    page.get_by_role("button", name="转动转盘").click()
    expect(page.locator(".result")).to_have_text("抽奖结果：Thank you")
    page.get_by_role("button", name="转动转盘").click()

    expect(page.locator(".result")).to_have_text("您今天的抽奖次数已用完。")
    reader.shoot("shop-wheel-phone")
    reader.assert_content()
    reader.assert_fits()
