"""What is around every page of the console: the way to each page, forms that lead to their faults, and paper."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewReader
from tests.support.console_pages import EXAMPLES
from tests.support.console_reader import DESKTOP, PHONE, Reader
from tests.support.http_shop import Shop

LOW = (1280, 600)

ALL_SEEN = """() => [...document.querySelectorAll('.side nav a, .who button')].every((each) => {
  const { x, y, width, height } = each.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2) === each;
})"""


def _box(page: Page, selector: str) -> dict[str, Any]:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return dict(box)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_in_sight_on_a_laptop(new_reader: NewReader, language: str) -> None:
    """And the way out; nothing of the navigation is below the fold."""
    page = new_reader("admin", "ops", language=language, size=DESKTOP).open("/templates")

    assert page.evaluate(ALL_SEEN)


def test_on_a_low_screen_the_page_and_the_way_out_are_in_sight(new_reader: NewReader) -> None:
    """The navigation scrolls below it, to the page that is shown."""
    reader = new_reader("admin", "ops", size=LOW)
    page = reader.open("/keys")

    expect(page.locator(".side nav [aria-current]")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Log out")).to_be_in_viewport(ratio=1)
    current, who = _box(page, ".side nav [aria-current]"), _box(page, ".who")
    assert current["y"] + current["height"] <= who["y"]
    reader.shoot("frame-low")


def test_on_a_phone_the_menu_stays_at_hand(shop: Shop, new_reader: NewReader) -> None:
    """In one row at the top, also far down a page; open, it leads to every page."""
    reader = new_reader("admin", "ops", size=PHONE)
    page = reader.open(EXAMPLES["jobs"](shop))
    page.mouse.wheel(0, 2_000)
    page.wait_for_function("scrollY > 500")

    menu = page.locator("#menu > summary")
    expect(menu).to_be_in_viewport(ratio=1)
    assert _box(page, ".side")["height"] < 60
    menu.press("Enter")
    page.get_by_role("link", name="Templates", exact=True).click()

    expect(page.get_by_role("heading", name="Templates", level=1)).to_be_visible()
    reader.assert_fits()


def test_a_form_that_is_refused_leads_to_its_fault(reader: Reader) -> None:
    """The focus is on the first field to mend, what was typed is kept; in the wizard its step is open."""
    page = reader.open("/templates/new")
    page.get_by_label("Name", exact=True).fill("Double Eleven")
    page.get_by_label("Amount off").fill("20")
    page.get_by_role("button", name="Save the draft").click()
    expect(page.get_by_label("Total", exact=True)).to_be_focused()

    page = reader.open("/keys/new")
    page.get_by_label("Name", exact=True).fill("warehouse")
    page.get_by_role("button", name="Make the key").click()

    expect(page.get_by_role("alert").get_by_role("link", name="Scopes")).to_be_focused()
    assert "warehouse" == page.get_by_label("Name", exact=True).input_value()
    page = reader.open("/lotteries/new")
    assert "BODY" == page.evaluate("document.activeElement.tagName")


@pytest.mark.parametrize("name", ["findings", "ledger", "risk_verdicts", "daily_closes"])
def test_fields_that_narrow_a_list_stand_in_one_row(shop: Shop, reader: Reader, name: str) -> None:
    """As high as one another and as their button, of whatever sort they are."""
    page = reader.open(EXAMPLES[name](shop))

    parts = page.locator(".filters :is(input:not([type=hidden]), select), .filters > button").all()
    boxes = [place.bounding_box() for place in parts]

    assert len(boxes) >= 2
    assert 1 == len({(round(box["y"]), round(box["height"])) for box in boxes if box})


def test_the_audit_log_is_narrowed_down_in_rows_that_fit(shop: Shop, new_reader: NewReader) -> None:
    """At a desk three in a row, all as high as one another; on a phone each in a row of its own."""
    path = f"{EXAMPLES['audit'](shop)}?action=template.create"
    for size, columns in ((DESKTOP, 3), (PHONE, 1)):
        reader = new_reader("admin", "ops", size=size)
        page = reader.open(path)

        fields = [place.bounding_box() for place in page.locator(".filters .field").all()]
        inputs = [place.bounding_box() for place in page.locator(".filters :is(input, select)").all()]
        assert 5 == len(fields) == len(inputs)
        assert 1 == len({round(box["height"]) for box in inputs if box})
        assert columns == len({round(box["x"]) for box in fields if box})
        reader.shoot(f"audit-filter-{size[0]}")
        reader.assert_content()
        reader.assert_fits()


def test_a_long_difference_is_folded(shop: Shop, reader: Reader) -> None:
    """Its first lines are shown; the rest opens by key."""
    page = reader.open(f"{EXAMPLES['audit'](shop)}?action=template.create")
    more = page.locator("details.more").first

    expect(page.locator("td .change:visible")).to_have_count(4)
    more.locator("summary").press("Enter")

    expect(more.locator(".change").last).to_be_visible()


def test_the_daily_close_on_paper_is_its_numbers(shop: Shop, reader: Reader) -> None:
    """No navigation and nothing to press; every row and sum, black on white."""
    page = reader.open(EXAMPLES["daily_close"](shop))
    rows = page.locator("tbody tr").count()

    page.emulate_media(media="print", color_scheme="dark")

    expect(page.locator(".side")).to_be_hidden()
    expect(page.locator("main button:visible, main .button:visible")).to_have_count(0)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("tbody tr:visible")).to_have_count(rows)
    assert "rgb(255, 255, 255)" == page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert 0 == _box(page, "main")["x"]
    reader.shoot("daily-close-paper")
