"""Each page of the console in a browser: at a desk in English, and on a phone in the dark in Chinese."""

from __future__ import annotations

import pytest
from flask import url_for

from tests.browser.conftest import NewReader
from tests.support.console_pages import EXAMPLES, LED_ON
from tests.support.console_reader import DESKTOP, PHONE
from tests.support.http_shop import Shop
from web.console.guard import DATA
from web.console.page_table import PAGES

WAYS = {
    "desktop": {"language": "en", "size": DESKTOP},
    "phone": {"language": "zh", "size": PHONE, "dark": True},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_opens_without_a_complaint(name: str, way: str, shop: Shop, new_reader: NewReader) -> None:
    """Nothing in the browser's console, nothing asked elsewhere, readable by aids, nothing sticks out."""
    path = EXAMPLES[name](shop)
    reader = new_reader(*(() if name == "login" else ("admin", "ops")), **WAYS[way])

    reader.open(path)

    reader.shoot(f"{name}-{way}")
    reader.assert_content()
    reader.assert_fits()


@pytest.mark.parametrize("page", [page.endpoint for page in PAGES])
def test_a_page_with_nothing_to_show_says_what_to_do(page: str, shop: Shop, new_reader: NewReader) -> None:
    """An empty installation is where everybody begins."""
    reader = new_reader("admin", "ops")

    with shop.app.test_request_context():
        address = url_for(f"console.{page}")
    reader.open(address.removeprefix("/console"))

    reader.shoot(f"{page}-empty")
    reader.assert_content()


def test_every_page_has_its_example(shop: Shop) -> None:
    """A new page cannot be left out; what scripts ask for is tested by its answer."""
    pages = {
        rule.endpoint.partition(".")[2]
        for rule in shop.app.url_map.iter_rules()
        if rule.endpoint.startswith("console.") and "GET" in (rule.methods or ()) and not rule.rule.startswith(DATA)
    }

    assert pages == EXAMPLES.keys() | LED_ON.keys()
