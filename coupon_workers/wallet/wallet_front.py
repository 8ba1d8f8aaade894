"""Reading a wallet: the first page from Redis where it is kept, everything else from the database.

A page is kept as the JSON that is answered, behind the instant at which one of its coupons runs out: until then it is
sent as it is, unread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.vouched_page import VouchedPages
from coupon_workers.wallet.wallet import Coupon, read_wallet
from coupon_workers.wallet.wallet_key import wallet_key

FIRST_PAGE = 50
"""The page that is kept: the default limit of a list (API.md, Conventions)."""

NEVER_MS = 2**62
"""No coupon of the page can run out."""


def first_page(services: Services, user_id: str) -> dict[str, Any]:
    """The newest coupons as ``{"items", "next_cursor"}``. Raises ``StoreUnavailable`` when neither store answers."""
    pages = VouchedPages(services.lean, services.redis)
    page: dict[str, Any] = json.loads(first_page_json(services, pages, user_id))
    return page


def first_page_json(services: Services, pages: KeptPages, user_id: str) -> bytes:
    """As ``first_page``, as JSON in UTF-8."""
    until_ms, _, page = pages.get(wallet_key(user_id), lambda: page_to_keep(services, user_id)).partition(b" ")
    now = services.clock()
    return page if to_ms(now) < int(until_ms) else _at(now, page)


def page_to_keep(services: Services, user_id: str) -> bytes:
    """The first page as it is kept, read from the database. Raises ``StoreUnavailable``."""
    wallet = read_wallet(services, user_id, limit=FIRST_PAGE)
    page = _json({"items": wallet.items, "next_cursor": wallet.next_cursor})
    return b"%d %b" % (_until_ms(wallet.items), page)


def _at(now: datetime, page: bytes) -> bytes:
    """A kept page some of whose coupons have run out since."""
    read = json.loads(page)
    items = [
        coupon | {"status": "expired"}
        if coupon["status"] == "unused" and datetime.fromisoformat(coupon["valid_to"]) <= now
        else coupon
        for coupon in read["items"]
    ]
    return _json(read | {"items": items})


def _until_ms(coupons: Iterable[Coupon]) -> int:
    ends = (to_ms(datetime.fromisoformat(coupon["valid_to"])) for coupon in coupons if coupon["status"] == "unused")
    return min(ends, default=NEVER_MS)


def _json(page: dict[str, Any]) -> bytes:
    return json.dumps(page, separators=(",", ":")).encode()
