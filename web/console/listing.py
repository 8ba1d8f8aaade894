"""A list in pages, newest first: which part of it is shown, and the addresses of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from flask import request, url_for

from web.page import page, read_before, read_cursor

Item = TypeVar("Item")

PAGE_SIZE = 50


class Listing(Generic[Item]):
    """``items`` to show; ``older`` and ``newest`` are addresses, or None where there is nothing there."""

    def __init__(self, found: Sequence[Item], position: Callable[[Item], list[Any]]) -> None:
        """``found``: up to ``PAGE_SIZE`` + 1 items; ``position``: as ``web.page.page`` wants it."""
        self.items = found[:PAGE_SIZE]
        cursor = page(found, PAGE_SIZE, lambda item: item, position)["next_cursor"]
        self.older = _address(cursor) if cursor else None
        self.newest = _address(None) if "cursor" in request.args else None


def cursor_of(*types: type) -> list[Any] | None:
    """The position from which on this request asks, or None. Raises ``InvalidInput``."""
    return read_cursor(_cursor(), *types)


def page_before() -> int | None:
    """The identity below which the page begins that this request asks for, or None. Raises ``InvalidInput``."""
    return read_before(_cursor())


def _cursor() -> str | None:
    return request.args.get("cursor") or None


def _address(cursor: str | None) -> str:
    """This page's, with what it was asked; not by ``url_for`` alone, to which some names mean something."""
    kept = {name: value for name, value in request.args.items() if name not in ("cursor", "done")}
    query = urlencode(kept | ({"cursor": cursor} if cursor else {}))
    bare = url_for(request.endpoint or "", **(request.view_args or {}))
    return f"{bare}?{query}" if query else bare
