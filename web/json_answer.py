"""JSON answers: members in the order they were given, instants in UTC with ``Z`` (API.md, Conventions)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flask.json.provider import DefaultJSONProvider

from coupon_workers.runtime.clock import rfc3339


def _default(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    raise TypeError(f"{type(value).__name__} is not for answers")


class JsonAnswers(DefaultJSONProvider):
    """Flask's own, but for instants and the order. ASCII only: no text, however odd, can fail to be sent."""

    default = staticmethod(_default)
    sort_keys = False
    compact = True
    ensure_ascii = True
