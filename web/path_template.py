"""A route as OpenAPI writes it: ``/v1/users/{user_id}/coupons``, without Flask's converters."""

from __future__ import annotations

import re
from functools import cache

_PARAMETER = re.compile(r"<(?:[^<:]+:)?([^>]+)>")


@cache
def path_template(rule: str) -> str:
    """The path template of a route's ``rule``. Kept: there are as many as routes."""
    return _PARAMETER.sub(r"{\1}", rule)
