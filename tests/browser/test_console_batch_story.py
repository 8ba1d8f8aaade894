"""A batch in a browser: a file is given, the bar moves, the failures are fetched."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.support.batch_worker import sent_by, work
from tests.support.console_reader import Reader
from tests.support.http_shop import Shop


def _audience(folder: Path, users: int) -> Path:
    file = folder / "north.csv"
    rows = ["user_id", *(f"u-{number}" for number in range(users)), "not a user", "u-1", "u-2"]
    file.write_text("\n".join([*rows, ""]))
    return file


def test_a_file_is_given_watched_to_its_end_and_its_failures_are_fetched(
    shop: Shop, reader: Reader, tmp_path: Path
) -> None:
    """The test plays the worker, so the bar moves when it does; at the end the page has its buttons by itself."""
    shop.desk.open(name="Gift", total_quantity=5_000)
    page = reader.open("/batches")
    page.get_by_role("link", name="New batch").first.click()
    page.get_by_label("Name", exact=True).fill("Regulars of the north")
    page.get_by_label("Template", exact=True).select_option(label="Gift · 5,000 left")
    page.get_by_label("File of users").set_input_files(_audience(tmp_path, 2_500))
    page.get_by_label("Starts").fill("")
    reader.press("Make the batch")

    expect(page.get_by_role("status").first).to_contain_text("Its audience is being read.")
    expect(page.locator("h1 .badge")).to_have_text("reading the audience")
    work(shop.services, sent_by(shop.services), most=2)
    expect(page.locator("h1 .badge")).to_have_text("running")
    work(shop.services, sent_by(shop.services), most=1)
    bar = page.get_by_role("img", name=re.compile("Progress"))
    expect(bar).to_have_attribute("aria-label", re.compile(r"Progress [1-9]"))
    reader.shoot("story-batch-runs")
    reader.assert_content()
    work(shop.services, sent_by(shop.services))

    expect(page.locator("h1 .badge")).to_have_text("done")
    expect(page.locator(".legend")).to_contain_text(re.compile(r"issued 2,500.*named twice 2.*not readable 1"))
    expect(page.locator(".legend")).to_contain_text("together 2,503")
    with page.expect_download() as fetched:
        reader.press("Download failures")
    lines = list(csv.reader(fetched.value.path().open()))
    assert ["row", "value", "reason"] == lines[0]
    assert {"not a user", "u-1", "u-2"} == {line[1] for line in lines[1:]}
    assert [] == reader.complaints


def test_a_batch_is_paused_while_it_runs(shop: Shop, reader: Reader, tmp_path: Path) -> None:
    """Whoever is about to confirm is told that it moved on, and not interrupted."""
    shop.desk.open(name="Gift", total_quantity=5_000)
    page = reader.open("/batches/new")
    page.get_by_label("Name", exact=True).fill("Regulars")
    page.get_by_label("Template", exact=True).select_option(index=1)
    page.get_by_label("File of users").set_input_files(_audience(tmp_path, 2_500))
    page.get_by_label("Starts").fill("")
    reader.press("Make the batch")
    page.locator("summary", has_text="Cancel the batch").click()
    work(shop.services, sent_by(shop.services), most=2)

    expect(page.locator("#changed")).to_contain_text("It stands differently now.")
    page.get_by_role("link", name="Load again").click()
    reader.press("Pause")
    reader.confirm()

    expect(page.get_by_role("status").first).to_contain_text("Paused: nothing is issued")
    work(shop.services, sent_by(shop.services))
    expect(page.locator("h1 .badge")).to_have_text("paused")
    reader.press("Resume")
    reader.confirm()
    work(shop.services, sent_by(shop.services))
    expect(page.locator("h1 .badge")).to_have_text("done")
    assert [] == reader.complaints
