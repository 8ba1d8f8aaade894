"""What operators come for, done in a browser, mostly by keyboard."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from coupon_workers.access.api_key import create_key
from coupon_workers.claiming.live_tally import tell_live
from coupon_workers.runtime.metrics import take_claims
from tests.browser.conftest import NewReader
from tests.support.console_reader import PHONE, Reader
from tests.support.http_shop import Shop


def _type(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def test_a_person_gets_in_and_out_by_keyboard(shop: Shop, new_reader: NewReader) -> None:
    """The key's field has the focus; Tab finds the way, the first stop leads past the navigation."""
    key = create_key(shop.services.engine, name="Zoe", scopes=["admin"]).key
    reader = new_reader()
    page = reader.open("/approvals")
    expect(page).to_have_url(re.compile("/console/login"))

    page.keyboard.type(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Approvals", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("button", name="Log out").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_label("API key")).to_be_visible()
    assert [] == reader.complaints


def test_a_template_is_made_step_by_step_and_published(shop: Shop, reader: Reader) -> None:
    """The preview follows what is typed; what is wrong is on its step."""
    page = reader.open("/templates")
    page.get_by_role("link", name="New template").first.click()
    _type(page, "Name", "Double Eleven")
    _type(page, "Amount off", "20")
    _type(page, "From an amount of", "100")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Total", exact=True)).to_be_focused()
    page.get_by_role("button", name="Save the draft").click()
    expect(page.get_by_role("alert")).to_contain_text("Total: Fill this in.")
    assert ["422"] == [complaint for text in reader.complaints for complaint in re.findall(r"\b4\d\d\b", text)]
    reader.complaints.clear()  # the browser's own word on that answer
    _type(page, "Total", "1000")

    expect(page.locator("#preview")).to_contain_text("CN¥20.00 off from CN¥100.00")
    reader.shoot("story-wizard-preview")
    reader.assert_content()
    reader.press("Save the draft")
    expect(page.get_by_role("status")).to_contain_text("The draft is made.")
    reader.press("Publish")
    reader.confirm()

    expect(page.get_by_role("status")).to_have_text("Published.")
    expect(page.locator("h1 .badge")).to_have_text("active")
    assert ["active"] == [template["status"] for template in shop.desk.admin.ask("GET", "/v1/templates").ok()["items"]]
    assert [] == reader.complaints


def test_the_live_view_moves(shop: Shop, reader: Reader) -> None:
    """Claims appear in the picture without anybody's doing; held still, it waits."""
    take_claims()
    template_id = shop.desk.open(total_quantity=100, per_user_limit=1)
    page = reader.open(f"/live/{template_id}")
    left = page.locator("[data-is='left']")
    expect(left).to_have_text("100")

    for user in range(8):
        shop.front.claimed(template_id, f"u-{user}")
    shop.front.claim(template_id, "u-1", "another")
    tell_live(shop.services)

    expect(left).to_have_text("92")
    expect(page.locator("#codes")).to_contain_text("accepted 8")
    expect(page.locator("#codes")).to_contain_text("limit reached 1")
    expect(page.locator("#claims svg")).to_have_attribute("aria-label", re.compile("accepted 1.6/s"))
    page.get_by_role("button", name="Hold still").click()
    shop.front.claimed(template_id, "late")
    expect(page.get_by_role("button", name="Hold still")).to_have_attribute("aria-pressed", "true")
    expect(left).to_have_text("92")
    page.get_by_role("button", name="Hold still").click()
    expect(left).to_have_text("91")
    reader.assert_content()


def test_the_live_view_says_that_the_session_is_over(shop: Shop, reader: Reader) -> None:
    """It asks no longer, and nobody takes an old picture for the present."""
    page = reader.open(f"/live/{shop.desk.open()}")
    expect(page.locator("#claims svg")).to_have_attribute("aria-label", re.compile("accepted"))

    for name in shop.services.redis.keys("cw:console:*"):
        shop.services.redis.delete(name)

    expect(page.locator("#trouble")).to_have_text("The session is over. Load the page again to log in.")


def test_a_second_person_decides_with_a_reason(shop: Shop, new_reader: NewReader) -> None:
    """On a phone: the difference is there, and no button that does it unasked."""
    template_id = shop.desk.open(approval_required=True)
    reader = new_reader("admin", size=PHONE)
    page = reader.open("/approvals")

    reader.press("Reject")
    reason = page.get_by_label("Reason").locator("visible=true")
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).to_be_hidden()
    reader.press("Reject")
    reason.fill("half the budget, please")
    reader.shoot("story-reject-phone")
    reader.assert_content()
    reader.assert_fits()
    reader.confirm()

    expect(page.get_by_role("status")).to_contain_text("Rejected")
    assert "draft" == shop.desk.admin.ask("GET", f"/v1/templates/{template_id}").ok()["status"]


def test_the_language_is_switched_and_stays(reader: Reader) -> None:
    """On the page where one was."""
    page = reader.open("/templates?status=paused")

    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("券模板")
    expect(page).to_have_url(re.compile(r"status=paused"))
    page.get_by_role("link", name="审批", exact=True).click()

    expect(page.get_by_role("heading", level=1)).to_have_text("审批")
    assert [] == reader.complaints


def test_a_second_of_a_chart_is_read_by_pointing_at_it(shop: Shop, reader: Reader) -> None:
    """With its moment, in words; away from the chart nothing is told."""
    page = reader.open(f"/live/{shop.desk.open(total_quantity=100)}")
    readout = page.locator("#stock .readout")
    expect(page.locator("#stock .line")).to_have_count(1)
    expect(readout).to_have_count(0)

    page.locator("#stock svg").hover(position={"x": 300, "y": 60})
    expect(readout).to_have_text(re.compile(r"^\d\d:\d\d:\d\d · left 100$"))
    reader.shoot("story-live-readout")
    page.mouse.move(1, 1)

    expect(readout).to_have_count(0)
    assert [] == reader.complaints


def test_a_picture_that_nobody_answers_says_since_when(shop: Shop, reader: Reader) -> None:
    """And looks it; answered again, it goes on as if nothing had been."""
    page = reader.open(f"/live/{shop.desk.open(total_quantity=100)}")
    expect(page.locator("[data-is='left']")).to_have_text("100")
    alert, stale = page.locator("#trouble"), page.locator("main.stale")

    page.route("**/console/data/**", lambda route: route.abort())
    expect(alert).to_have_text(re.compile(r"No answer\. Asking again… \(\d\d:\d\d:\d\d\)"))
    expect(stale).to_have_count(1)
    reader.shoot("story-live-lost")
    page.unroute("**/console/data/**")

    expect(alert).to_be_hidden()
    expect(stale).to_have_count(0)


def test_everything_but_the_charts_works_without_a_script(shop: Shop, new_reader: NewReader) -> None:
    """The navigation is there, a confirmation opens, a template is paused."""
    template_id = shop.desk.open()
    reader = new_reader("admin", scripts=False)
    page = reader.open("/approvals")
    page.get_by_role("link", name="Templates").first.click()
    page.get_by_role("link", name="Double Eleven").click()

    reader.press("Pause")
    reader.confirm()

    expect(page.get_by_role("status")).to_contain_text("Paused")
    assert "paused" == shop.desk.admin.ask("GET", f"/v1/templates/{template_id}").ok()["status"]
