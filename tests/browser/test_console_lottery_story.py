"""Lotteries in a browser: odds that add up while one types, a report that moves, and what people get wrong."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from coupon_workers.access.api_key import revoke_key
from tests.browser.conftest import NewReader
from tests.support.console_reader import Reader
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop
from tests.support.lottery import Fair, coupon_prize, open_lottery


def _filled(shop: Shop, reader: Reader, **weights: str) -> Page:
    """The form with a coupon and a bicycle in it."""
    shop.desk.open(name="Gift", total_quantity=50, claim_start=from_now(hours=-1), claim_end=from_now(days=40))
    page = reader.open("/lotteries/new")
    page.get_by_label("Name of the lottery").fill("Double Eleven wheel")
    row = page.locator("#rows > fieldset")
    row.nth(0).get_by_label("Name").fill("20 off")
    row.nth(0).get_by_label("What is won").select_option(index=1)
    row.nth(0).get_by_label("Weight").fill(weights.get("first", "250000"))
    row.nth(0).get_by_label("How many").fill("5")
    row.nth(1).get_by_label("Name").fill("A bicycle")
    row.nth(1).get_by_label("Weight").fill(weights.get("second", "1"))
    row.nth(1).get_by_label("How many").fill("1")
    return page


def test_a_lottery_from_its_odds_to_its_end(shop: Shop, reader: Reader) -> None:
    """Odds and preview follow the keys; by keyboard alone a row more and away; draws appear by themselves."""
    page = _filled(shop, reader)
    expect(page.locator("#sum")).to_have_text("749,999 of 1,000,000 win nothing.")
    expect(page.locator("[data-odds]").first).to_have_text("25%")
    expect(page.locator("#preview")).to_contain_text("A bicycle 0.0001%")
    expect(page.locator("#preview")).to_contain_text("Thank you 74.9999%")
    page.get_by_role("button", name="Another prize").press("Enter")
    added = page.locator("#rows > fieldset").nth(3)
    expect(added.get_by_label("Name")).to_be_focused()
    added.get_by_role("button", name="Remove").press("Enter")
    expect(page.locator("#rows > fieldset")).to_have_count(3)
    reader.shoot("story-lottery-editor")
    reader.assert_content()
    page.get_by_role("button", name="Make the lottery").dblclick()

    expect(page.locator("h1 .badge")).to_have_text("scheduled")
    expect(page.get_by_role("status").first).to_contain_text("The lottery is made.")
    assert 1 == len(shop.desk.admin.ask("GET", "/v1/lotteries").ok()["items"])
    reader.press("Pause")
    reader.confirm()
    expect(page.locator("h1 .badge")).to_have_text("paused")
    reader.press("End the lottery")
    reader.confirm()
    expect(page.locator("h1 .badge")).to_have_text("ended")
    reader.assert_content()
    shop.assert_sound()


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("-5", "A weight is a whole number"),
        ("1.5", "A weight is a whole number"),
        ("many", "A weight is a whole number"),
        ("99999999999999999999", "A weight is a whole number"),
        ("1000000", "1 are too many"),
    ],
)
def test_odds_that_do_not_add_up_are_not_sent(shop: Shop, reader: Reader, first: str, told: str) -> None:
    """The weight in question has the focus, and an alert says why."""
    page = _filled(shop, reader, first=first)

    page.get_by_role("button", name="Make the lottery").click()

    expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
    expect(page.locator("#rows > fieldset").first.get_by_label("Weight")).to_be_focused()
    assert page.url.endswith("/lotteries/new")
    assert [] == shop.desk.admin.ask("GET", "/v1/lotteries").ok()["items"]
    reader.assert_content()


def test_without_a_script_the_server_says_the_same(shop: Shop, new_reader: NewReader) -> None:
    """What was typed is still there; a row more is a button of the form."""
    reader = new_reader("admin", scripts=False)
    page = _filled(shop, reader, first="1000000")

    page.get_by_role("button", name="Make the lottery").click()
    expect(page.get_by_role("alert")).to_contain_text("1 are too many")
    row = page.locator("#rows > fieldset")
    expect(row.nth(1).get_by_label("Name")).to_have_value("A bicycle")
    page.get_by_role("button", name="Another prize").click()
    expect(row).to_have_count(3)
    row.nth(0).get_by_label("Weight").fill("999999")
    page.get_by_role("button", name="Make the lottery").click()

    expect(page.locator("h1 .badge")).to_have_text("scheduled")


def test_draws_appear_by_themselves(shop: Shop, reader: Reader) -> None:
    """The empty page fills; counts, odds that came, and who; an end elsewhere is seen here."""
    fair = _fair(shop)
    page = reader.open(f"/lotteries/{fair.lottery_id}")
    expect(page.locator("#no-draws")).to_contain_text("Nobody has drawn yet.")

    fair.draw_each(["ann", "ben", "cleo"])
    fair.drain()
    expect(page.locator("#feed tbody tr")).to_have_count(3)
    expect(page.locator("[data-is=left-1]")).to_have_text("0")
    expect(page.locator("[data-is=came-1]")).to_have_text("66.6667%")
    expect(page.locator("#no-draws")).to_be_hidden()
    reader.shoot("story-lottery-draws")
    reader.assert_content()
    page.get_by_role("searchbox").fill("cleo")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#feed tbody tr")).to_have_count(1)
    shop.desk.admin.ask("POST", f"/v1/lotteries/{fair.lottery_id}/end").ok()

    expect(page.locator("h1 .badge")).to_have_text("ended")
    assert [] == reader.complaints


def test_a_session_that_is_over_makes_nothing(shop: Shop, reader: Reader) -> None:
    """Whoever sends the form then is asked to log in; a page that moves says so."""
    fair = _fair(shop)
    page = _filled(shop, reader)
    moving = page.context.new_page()
    moving.goto(f"/console/lotteries/{fair.lottery_id}")

    revoke_key(shop.services.engine, reader.key.record.key_id)
    page.get_by_role("button", name="Make the lottery").click()

    expect(page).to_have_url(f"{page.url.partition('/console')[0]}/console/login")
    expect(moving.locator("#trouble")).to_contain_text("The session is over.")
    assert 1 == len(shop.desk.admin.ask("GET", "/v1/lotteries").ok()["items"])


def test_two_tabs_do_not_undo_one_another(shop: Shop, reader: Reader) -> None:
    """What the other tab ended cannot be resumed here, and the page says why."""
    fair = _fair(shop)
    fair.pause()
    page = reader.open(f"/lotteries/{fair.lottery_id}")
    reader.press("Resume")
    shop.desk.admin.ask("POST", f"/v1/lotteries/{fair.lottery_id}/end").ok()
    reader.confirm()

    expect(page.get_by_role("alert")).to_contain_text("In its present status this cannot be done.")
    assert "ended" == shop.desk.admin.ask("GET", f"/v1/lotteries/{fair.lottery_id}").ok()["status"]


def test_two_tabs_that_change_it_do_not_undo_one_another(shop: Shop, reader: Reader) -> None:
    """The slower one is told, and what was typed is still there; odds that do not add up are not sent."""
    fair = _fair(shop)
    fair.pause()
    address = f"/lotteries/{fair.lottery_id}/edit"
    page = reader.open(address)
    other = page.context.new_page()
    other.goto(f"/console{address}")

    other.get_by_label("How many").fill("7")
    other.get_by_role("button", name="Change it").dblclick()
    expect(other.get_by_role("status").first).to_have_text("Changed.")
    page.get_by_label("Weight").fill("5")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("alert")).to_have_text("The weights must sum to 1,000,000: 999,995 are missing.")
    page.get_by_label("Weight").fill("1000000")
    page.get_by_label("How many").fill("9")
    page.get_by_role("button", name="Change it").click()

    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed it")
    expect(page.get_by_label("How many")).to_have_value("9")
    reader.shoot("story-lottery-two-tabs")
    reader.complaints.clear()  # the browser's of the 409
    page.get_by_role("link", name="Load it as it is now").click()
    expect(page.get_by_label("How many")).to_have_value("7")
    reader.assert_content()
    assert [7] == fair.prizes("stock") == fair.stock


def _fair(shop: Shop) -> Fair:
    """A lottery of two coupons that runs."""
    template_id = int(shop.desk.open(name="Wheel's", total_quantity=9, claim_start=from_now(hours=-1)))
    return open_lottery(shop.services, [coupon_prize(template_id, 2)])
