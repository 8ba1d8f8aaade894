"""Makes the pictures of this folder anew: ``.venv/bin/python docs/pictures/remake.py``, with Chromium on the machine.

Opens ``coupon-workers demo --serve``, logs in with the key it prints, waits until there is something to see, and ends
the demo.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZE = {"width": 1180, "height": 860}
TRAFFIC_MS = 120_000
"""Before the first picture is taken: each kind of wave is in it several times over."""
DRAWN_MS = 4_000


def main() -> None:
    """Take each picture. Raises ``SystemExit`` where there is no browser or no demo."""
    if CHROMIUM is None:
        raise SystemExit("no Chromium on this machine")
    demo = subprocess.Popen(
        [sys.executable, "-m", "coupon_workers.cli.main", "demo", "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        live, key = _opened(demo)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            _take(browser, live, key, "en-GB", HERE / "live-en.png", wait_ms=TRAFFIC_MS)
            _take(browser, live, key, "zh-CN", HERE / "live-zh.png", wait_ms=DRAWN_MS)
            browser.close()
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(60)


def _opened(demo: subprocess.Popen[str]) -> tuple[str, str]:
    """The address of the busiest template's live view, and the key."""
    assert demo.stdout is not None
    told = ""
    for line in demo.stdout:
        told += line
        if line.startswith("ready "):
            live, key = re.search(r"http\S+/console/live/\d+", told), re.search(r"its key\s+(\S+)", told)
            assert live and key, told
            return live[0], key[1]
    raise SystemExit("the demo did not open")


def _take(browser: Browser, live: str, key: str, locale: str, file: Path, *, wait_ms: int) -> None:
    page = browser.new_page(viewport=SIZE, locale=locale, timezone_id="Asia/Shanghai")  # type: ignore[arg-type]  # a size
    page.goto(live)
    page.locator("input[name=key]").fill(key)
    page.locator("input[name=key]").press("Enter")
    page.wait_for_url("**/console**")
    page.goto(live)
    page.wait_for_timeout(wait_ms)
    page.screenshot(path=file)
    page.close()


if __name__ == "__main__":
    main()
