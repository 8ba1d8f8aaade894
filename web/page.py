"""Lists in pages: ``?limit=`` and ``?cursor=``, answered as ``{"items", "next_cursor"}`` (API.md, Conventions)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import Field

from coupon_workers.errors import InvalidInput
from web.query_model import QueryModel

Item = TypeVar("Item")

LONGEST_CURSOR = 512


class PageQuery(QueryModel):
    """How many, and from where on: the cursor is the ``next_cursor`` of the page before."""

    limit: int = Field(50, ge=1, le=200, description="items in a page")
    cursor: str | None = Field(None, max_length=LONGEST_CURSOR, description="the page before's next_cursor")

    @property
    def before(self) -> int | None:
        """The identity below which the page begins, in a list of the newest first. Raises ``InvalidInput``."""
        return read_before(self.cursor)


def page(items: Sequence[Item], limit: int, show: Callable[[Item], Any], position: Callable[[Item], list[Any]]) -> Any:
    """A page of ``items``, of which one more than ``limit`` was asked for if there are as many.

    ``position`` gives JSON values that say where an item stands; the next page's ``read_cursor`` gets them back.
    """
    shown = items[:limit]
    more = len(items) > limit
    return {
        "items": [show(item) for item in shown],
        "next_cursor": _cursor(position(shown[-1])) if more else None,
    }


def read_cursor(cursor: str | None, *types: type) -> list[Any] | None:
    """The position a cursor holds: one JSON value of each of ``types``. None when there is no cursor.

    Raises ``InvalidInput`` for a text that no page gave out.
    """
    if cursor is None:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, RecursionError):
        position = None
    if (
        not isinstance(position, list)
        or len(position) != len(types)
        or not all(type(value) is kind for value, kind in zip(position, types, strict=True))
        or any("\x00" in value or not value.isprintable() for value in position if isinstance(value, str))
        or any(not -(2**63) <= value < 2**63 for value in position if isinstance(value, int))
    ):
        raise bad_cursor()
    return position


def read_before(cursor: str | None) -> int | None:
    """The identity that a cursor holds: the page begins below it. None when there is no cursor.

    Raises ``InvalidInput`` for a text that no page gave out.
    """
    position = read_cursor(cursor, int)
    return position[0] if position else None


def cursor_instant(text: str) -> datetime:
    """The instant in a cursor, in UTC: PostgreSQL takes no offset of sixteen hours and more. Raises ``InvalidInput``
    for a text that is none."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is None:
            raise bad_cursor()
        return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_cursor() from None


def bad_cursor() -> InvalidInput:
    """A cursor that no page gave out."""
    return InvalidInput([("cursor", "is not one that a page has given")])


def _cursor(position: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode()
