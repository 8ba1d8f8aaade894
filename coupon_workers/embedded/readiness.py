"""Waits until the front answers, and says it is ready."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException

from coupon_workers.errors import EmbeddedServerError

PATHS = ("/livez", "/readyz")
_POLL_S = 0.1
_ANSWER_TIMEOUT_S = 5.0
_SHOWN_BYTES = 500


def wait_until_ready(base_url: str, timeout_s: float, check_alive: Callable[[], None]) -> None:
    """Ask ``/livez``, then ``/readyz``, until each has answered 200.

    Raises ``EmbeddedServerError`` with the last answer after ``timeout_s``, and whatever ``check_alive`` raises.
    """
    deadline = time.monotonic() + timeout_s
    for path in PATHS:
        while (answer := _ask(base_url + path)) is not None:
            check_alive()
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"{base_url}{path} was not ready within {timeout_s:g} s: {answer}")
            time.sleep(_POLL_S)


# No proxy of the environment stands between us and our own front.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def _ask(url: str) -> str | None:
    try:
        with _open(url, timeout=_ANSWER_TIMEOUT_S) as response:
            return None if response.status == 200 else f"HTTP {response.status}"
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code} {error.read(_SHOWN_BYTES).decode(errors='replace')}"
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
