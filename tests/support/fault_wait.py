"""Waiting for an event, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable

SOON_S = 30.0


def until(happened: Callable[[], object], within_s: float = SOON_S, what: str = "it") -> float:
    """Return the seconds until ``happened`` is true; fail when it is not within ``within_s``."""
    began = time.monotonic()
    while not happened():
        assert time.monotonic() < began + within_s, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.02)
    return time.monotonic() - began
