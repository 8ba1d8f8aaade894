"""A finding in a browser: read, and approved."""

from __future__ import annotations

from playwright.sync_api import expect

from coupon_workers.reconciliation.finding_reading import read_finding
from tests.support.console_money_pages import compared
from tests.support.console_reader import Reader
from tests.support.http_shop import Shop


def test_a_finding_is_read_and_approved(shop: Shop, reader: Reader) -> None:
    """From the inbox to the booking; afterwards the inbox is empty."""
    finding_id = compared(shop)
    page = reader.open("/findings")

    page.get_by_role("link", name="another discount").click()
    expect(page.locator(".tile").first).to_contain_text("CN¥1.00")
    reader.press("Approve the repair")
    reader.shoot("story-finding-approve")
    reader.assert_content()
    reader.confirm("the centre is right")

    expect(page.get_by_role("status")).to_have_text("Approved, and repaired.")
    expect(page.locator("h1 .badge")).to_have_text("approved")
    expect(page.get_by_text("What the repair did")).to_be_visible()
    assert "approved" == read_finding(shop.services, int(finding_id)).state
    page.get_by_role("link", name="Findings").first.click()
    expect(page.locator(".empty")).to_contain_text("Nothing is open.")
    assert [] == reader.complaints
