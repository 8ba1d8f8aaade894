"""Debian's Chromium for these tests, and a console to look at. Without a browser they are skipped, and say so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from coupon_workers.runtime.services import Services
from tests.support.console_reader import Reader
from tests.support.console_site import served
from tests.support.http_shop import Shop

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

NewReader = Callable[..., Reader]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The machine's own browser, for all tests of this folder."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: `apt-get install chromium`, and these tests run")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores."""
    return Shop(services, claim_rate=0)


@pytest.fixture
def new_reader(browser: Browser, shop: Shop) -> Iterator[NewReader]:
    """Makes persons at this shop's console: ``new_reader("admin", language="zh", size=PHONE)``."""
    readers: list[Reader] = []
    with served(shop) as base_url:

        def make(*scopes: str, **wishes: Any) -> Reader:
            readers.append(Reader(browser, shop, base_url, *scopes, **wishes))
            return readers[-1]

        yield make
        for reader in readers:
            reader.close()


@pytest.fixture
def reader(new_reader: NewReader) -> Reader:
    """A person with every scope, at a desk, in English."""
    return new_reader("admin", "ops")
