"""Codes in a browser: how many there can be is told while one types, and the file is there once."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from coupon_workers.codes.code_generation import run_generation
from tests.support.console_reader import Reader
from tests.support.http_shop import Shop


def test_codes_are_made_and_fetched_once(shop: Shop, reader: Reader) -> None:
    """The page says by itself that they were fetched."""
    shop.desk.open(name="Gift", total_quantity=500)
    page = reader.open("/code-batches/new")
    page.get_by_label("Template", exact=True).select_option(index=1)
    page.get_by_label("How many").fill("300")
    page.get_by_label("Length").fill("7")
    expect(page.locator("#capacity")).to_contain_text(re.compile(r"at most 148 can be made"))
    page.get_by_label("Length").fill("12")
    expect(page.locator("#capacity")).to_contain_text("there are plenty")
    reader.press("Generate the codes")
    expect(page.locator("h1 .badge")).to_have_text("being generated")
    run_generation(shop.services, int(page.url.rpartition("/")[2].partition("?")[0]))

    expect(page.locator("h1 .badge")).to_have_text("done")
    reader.press("Fetch the codes")
    reader.shoot("story-codes-fetch")
    with page.expect_download() as fetched:
        reader.confirm()
    assert 301 == len(fetched.value.path().read_text().split())
    expect(page.locator("#changed")).to_contain_text("It stands differently now.")
    page.get_by_role("link", name="Load again").click()

    expect(page.locator(".notice.good")).to_contain_text("The codes were fetched at")
    expect(page.get_by_text("Fetch the codes")).to_have_count(0)
    assert [] == reader.complaints
