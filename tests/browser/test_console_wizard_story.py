"""A template's form in a browser: what is wrong is told where it stands, and nobody loses the place."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import NewReader
from tests.support.console_reader import PHONE, Reader
from tests.support.http_desk import from_now
from tests.support.http_shop import Shop

SENT = "performance.getEntriesByType('navigation').length + performance.timeOrigin"
"""Another number after a page was loaded."""


def _wrong(page: Page) -> list[str]:
    """The labels of the fields that are marked, on whichever step, with what is told beside them."""
    marked = page.locator("#wizard .wrong")
    labels, told = (marked.locator(part).all_text_contents() for part in ("label", ".error"))
    return [f"{label.strip()}: {message}" for label, message in zip(labels, told, strict=True)]


def test_a_fault_is_told_beside_its_field_once_the_preview_is_asked_for(shop: Shop, reader: Reader) -> None:
    """On its step, without another page; mended it is told no longer."""
    page = reader.open("/templates/new")
    page.get_by_label("Amount off", exact=True).fill("19.901")
    page.get_by_label("Amount off", exact=True).press("Tab")
    expect(page.get_by_label("Amount off", exact=True)).to_have_attribute("aria-invalid", "true")
    assert ["Amount off: Write an amount such as 20 or 19.90, with no more decimals than the currency has"] == _wrong(
        page
    )
    loaded = page.evaluate(SENT)

    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    assert ["Name", "Amount off", "Total"] == [told.partition(":")[0] for told in _wrong(page)]
    expect(page.locator(".step-list .bad")).to_have_text(["Worth", "How many"])
    reader.shoot("story-wizard-faults")
    reader.assert_content()
    page.get_by_label("Name", exact=True).fill("Double Eleven")
    page.get_by_label("Amount off", exact=True).fill("20")
    expect(page.locator(".step-list .bad")).to_have_text(["How many"])
    page.locator("#preview").get_by_role("link", name="Total", exact=True).click()
    expect(page.get_by_label("Total", exact=True)).to_be_focused()
    page.keyboard.type("1000")
    expect(page.locator("#preview")).to_contain_text("CN¥20.00 off")
    assert [] == _wrong(page)
    assert loaded == page.evaluate(SENT)
    assert [] == shop.desk.admin.ask("GET", "/v1/templates").ok()["items"]


def test_a_field_that_nobody_has_come_to_is_not_called_wrong(reader: Reader) -> None:
    """It stands in the list of what is still to be done."""
    page = reader.open("/templates/new")

    page.get_by_label("Name", exact=True).fill("Double Eleven")
    page.get_by_label("Name", exact=True).press("Tab")

    expect(page.locator("#preview .faults a")).to_have_text(["Amount off", "Total"])
    assert [] == _wrong(page)
    reader.assert_content()


def test_the_preview_keeps_the_step_and_comes_into_sight_on_a_phone(new_reader: NewReader) -> None:
    """It stands below the form there; a price of the sample cart that cannot be read has its own fault."""
    reader = new_reader("admin", size=PHONE)
    page = reader.open("/templates/new")
    for label, text in (("Name", "Double Eleven"), ("Amount off", "20")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="How many").click()
    page.get_by_label("Total", exact=True).fill("1000")
    page.get_by_role("button", name="Look over").click()
    page.get_by_label("Price 2", exact=True).fill("a lot")

    page.get_by_role("button", name="Preview", exact=True).press("Enter")
    expect(page.get_by_label("Price 2", exact=True)).to_be_focused()
    assert ["Price 2: Write an amount such as 20 or 19.90, with no more decimals than the currency has"] == _wrong(page)
    page.get_by_label("Price 2", exact=True).fill("120")
    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_role("heading", name="What a user sees")).to_be_in_viewport()
    expect(page.get_by_label("Price 2", exact=True)).to_be_visible()
    reader.assert_fits()
    reader.assert_content()


def test_without_a_script_the_preview_is_where_the_page_opens(new_reader: NewReader) -> None:
    """And the form is as it was left."""
    reader = new_reader("admin", scripts=False, size=PHONE)
    page = reader.open("/templates/new")
    page.get_by_label("Name", exact=True).fill("Double Eleven")
    page.get_by_label("Amount off", exact=True).fill("20")
    page.get_by_label("Total", exact=True).fill("1000")

    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_role("heading", name="Preview")).to_be_in_viewport()
    expect(page.locator("#preview")).to_contain_text("CN¥20.00 off")
    expect(page.get_by_label("Total", exact=True)).to_have_value("1000")


def test_the_preview_of_a_lottery_keeps_the_place_too(shop: Shop, reader: Reader) -> None:
    """What is typed is shown, and no page is loaded."""
    shop.desk.open(name="Gift", total_quantity=50, claim_start=from_now(hours=-1), claim_end=from_now(days=40))
    page = reader.open("/lotteries/new")
    loaded = page.evaluate(SENT)
    page.get_by_label("Name of the lottery").fill("Double Eleven wheel")

    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.locator("#preview")).to_contain_text("Double Eleven wheel")
    assert loaded == page.evaluate(SENT)
    assert [] == reader.complaints


def test_a_preview_for_nobody_who_is_logged_in_leads_to_the_log_in(shop: Shop, reader: Reader) -> None:
    """Not into the preview's place."""
    page = reader.open("/templates/new")
    for name in shop.services.redis.keys("cw:console:*"):
        shop.services.redis.delete(name)

    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_label("API key")).to_be_visible()
    expect(page.locator("#preview")).to_have_count(0)
