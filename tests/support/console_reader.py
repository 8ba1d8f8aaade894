"""A person at the console with a browser: what the page complains of is kept, and what it looks like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

from coupon_workers.access.api_key import create_key
from coupon_workers.access.console_session import open_session
from tests.support.http_shop import Shop
from web.console.guard import COOKIE
from web.console.show import ZONE_COOKIE

SHOTS = Path(__file__).parents[2] / "screenshots"
"""Kept out of git."""

DESKTOP, PHONE = (1280, 800), (390, 844)

ZONE = "Asia/Shanghai"

WAIT_MS = 10_000

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
}


class Reader:
    """Logged in by a new key of ``scopes``; by none, not at all."""

    def __init__(
        self,
        browser: Browser,
        shop: Shop,
        base_url: str,
        *scopes: str,
        language: str = "en",
        size: tuple[int, int] = DESKTOP,
        dark: bool = False,
        scripts: bool = True,
    ) -> None:
        self.shop = shop
        self.complaints: list[str] = []
        self._base_url = base_url
        self._context = browser.new_context(
            base_url=base_url,
            java_script_enabled=scripts,
            locale={"en": "en-GB", "zh": "zh-CN"}[language],
            timezone_id=ZONE,
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
        )
        self._context.set_default_timeout(WAIT_MS)
        self._context.add_cookies([{"name": ZONE_COOKIE, "value": ZONE, "domain": "127.0.0.1", "path": "/console"}])
        if scopes:
            self.key = create_key(shop.services.engine, name="Zoe", scopes=scopes)
            token = open_session(shop.services, self.key.record.key_id)
            self._context.add_cookies(
                [{"name": COOKIE, "value": token, "domain": "127.0.0.1", "path": "/console", "sameSite": "Strict"}]
            )
        self.page: Page = self._context.new_page()
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._look_where)

    def open(self, path: str) -> Page:
        """Go to a page of the console, ``path`` without ``/console``, and wait until it is quiet."""
        answer = self.page.goto(f"/console{path}", wait_until="networkidle")
        assert answer is not None
        assert answer.ok, f"{answer.status} {path}"
        return self.page

    def press(self, name: str, within: Locator | None = None) -> None:
        """Press the button or link that is called so."""
        place = within or self.page.locator("main")
        named = re.compile(rf"^\s*{re.escape(name)}\s*$")
        place.locator("button, a, summary").filter(has_text=named, visible=True).first.click()

    def confirm(self, reason: str | None = None) -> None:
        """Give the confirmation that is open, with a reason if it wants one."""
        form = self.page.locator("details.confirm[open] form")
        if reason is not None:
            form.locator("textarea").fill(reason)
        form.get_by_role("button").click()

    def assert_content(self) -> None:
        """No complaint in the browser's console, nothing asked of anybody else, nothing an aid cannot read."""
        found: list[dict[str, Any]] = Axe().run(self.page, options=RULES).response["violations"]
        told = [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]
        assert [] == self.complaints
        assert [] == told

    def assert_fits(self) -> None:
        """Nothing sticks out at the side."""
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert 0 == wide

    def shoot(self, name: str) -> None:
        """Keep what it looks like, from top to bottom."""
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Leave."""
        self._context.close()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _look_where(self, request: Any) -> None:
        if not request.url.startswith((self._base_url, "data:", "blob:")):
            self.complaints.append(f"asked elsewhere: {request.url}")
