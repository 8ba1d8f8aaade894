"""Risk control in a browser: a policy made and tried, held claims decided by keyboard, somebody blocked."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from coupon_workers.access.console_session import end_session
from coupon_workers.risk.listing import read_entries
from coupon_workers.risk.policy_reading import read_policy
from coupon_workers.risk.review_desk import approve
from coupon_workers.risk.review_reading import read_reviews
from tests.browser.conftest import NewReader
from tests.support.console_reader import Reader
from tests.support.console_risk_pages import held
from tests.support.http_shop import Shop
from web.console.guard import COOKIE


def forgive(reader: Reader, *statuses: str) -> None:
    """The browser's own word on answers that were to be refused."""
    assert list(statuses) == [found for told in reader.complaints for found in re.findall(r"\b4\d\d\b", told)]
    reader.complaints.clear()


def states(shop: Shop) -> dict[str, str]:
    """What became of held claims, by user."""
    return {review.user_id: review.state for review in read_reviews(shop.services, limit=9)}


def test_a_policy_is_made_tried_and_put_in_earnest(shop: Shop, reader: Reader) -> None:
    """What is wrong is told at its rule; the switch says first what it does."""
    page = reader.open("/risk-policies")
    reader.press("New policy")
    page.get_by_label("Name", exact=True).fill("night-watch")
    rule = page.get_by_role("group", name="Rule 1")
    rule.get_by_label("Within the last").fill("")
    reader.press("Put in force")

    expect(page.get_by_role("alert")).to_contain_text("Say how far back it looks.")
    forgive(reader, "422")
    reader.shoot("story-risk-policy-wrong")
    reader.assert_content()
    rule.get_by_label("Within the last").fill("10")
    reader.press("Put in force")
    expect(page.get_by_role("status")).to_have_text("In force, for every template that names it.")
    expect(page.locator("tbody tr")).to_contain_text("more claims of one device than 5 in 10 min")
    reader.press("In earnest")
    reader.confirm()

    expect(page.get_by_role("status")).to_have_text("The rule holds now.")
    found = read_policy(shop.services, "night-watch").policy
    assert found is not None and not found.rules[0].shadow
    assert [] == reader.complaints


def test_held_claims_are_decided_by_keyboard(shop: Shop, reader: Reader) -> None:
    """Enter decides nothing; r asks for a reason first."""
    held(shop, "ann", "ben", "cleo", "dan")
    page = reader.open("/risk-reviews")
    boxes = page.get_by_role("checkbox")

    boxes.first.focus()
    page.keyboard.press("Enter")
    for key in "jxkx":
        page.keyboard.press(key)
    expect(boxes.first).to_be_checked()
    expect(page.locator("#count")).to_have_text("2 chosen")
    assert {"held"} == set(states(shop).values())
    reader.shoot("story-risk-reviews")
    reader.assert_content()
    page.keyboard.press("a")
    expect(page.get_by_role("status").first).to_contain_text("Approved")
    boxes.first.focus()
    page.keyboard.press("x")
    page.keyboard.press("r")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("a farm")
    reader.press("Refuse the chosen")

    expect(page.get_by_role("status").first).to_contain_text("Refused")
    assert {"ann": "approved", "ben": "approved", "cleo": "rejected", "dan": "held"} == states(shop)
    assert [] == reader.complaints


def test_two_operators_have_the_same_queue_open(shop: Shop, reader: Reader) -> None:
    """Who is later is told of whom, and the rest of his choice is done."""
    claims = held(shop, "ann", "ben")
    page = reader.open("/risk-reviews")
    for box in page.get_by_role("checkbox").all():
        box.check()
    approve(shop.services, int(claims["ann"]), "somebody else")

    page.get_by_label("Reason").fill("a farm")
    reader.press("Refuse the chosen")

    expect(page.get_by_role("alert")).to_contain_text("ann · approved: It was decided already")
    assert {"ann": "approved", "ben": "rejected"} == states(shop)
    forgive(reader, "409")
    reader.assert_content()


def test_a_session_that_is_over_decides_nothing(shop: Shop, reader: Reader) -> None:
    """The way leads to the login; the claim waits as before."""
    held(shop, "ann")
    page = reader.open("/risk-reviews")
    page.get_by_role("checkbox").check()
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE)
    end_session(shop.services, token)

    reader.press("Approve the chosen")

    expect(page).to_have_url(re.compile("/console/login"))
    assert {"ann": "held"} == states(shop)


def test_a_device_of_a_held_claim_is_blocked(shop: Shop, new_reader: NewReader) -> None:
    """From the claim to the list, in Chinese, without a script."""
    held(shop, "ann")
    reader = new_reader("admin", language="zh", scripts=False)
    page = reader.open("/risk-reviews")

    page.get_by_role("link", name="phone-ann").click()
    page.get_by_label("原因").fill("养号设备")
    page.get_by_role("button", name="加入名单").click()

    expect(page.get_by_role("status")).to_have_text("已加入名单，即刻生效。")
    [entry] = read_entries(shop.services, "block", limit=9)
    assert ("device", "phone-ann", "养号设备") == (entry.dimension, entry.value, entry.comment)
