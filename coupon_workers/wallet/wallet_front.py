"""Reading a wallet: the first page from Redis where it is kept, everything else from the database."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from coupon_workers.runtime.services import Services
from coupon_workers.wallet.wallet import Coupon, read_wallet
from coupon_workers.wallet.wallet_cache import keep_wallet, kept_wallet

FIRST_PAGE = 50
"""The page that is kept: the default limit of a list (API.md, Conventions)."""


def first_page(services: Services, user_id: str) -> dict[str, Any]:
    """The newest coupons as ``{"items", "next_cursor"}``. Raises ``StoreUnavailable`` when neither store answers."""
    kept, token = kept_wallet(services.redis, user_id)
    if kept is not None:
        page: dict[str, Any] = json.loads(kept)
        return page | {"items": [_at_this_instant(services, coupon) for coupon in page["items"]]}
    wallet = read_wallet(services, user_id, limit=FIRST_PAGE)
    page = {"items": wallet.items, "next_cursor": wallet.next_cursor}
    if token is not None:
        keep_wallet(services.redis, user_id, token, json.dumps(page).encode())
    return page


def _at_this_instant(services: Services, coupon: Coupon) -> Coupon:
    """A kept coupon may have run out since it was kept."""
    if coupon["status"] == "unused" and datetime.fromisoformat(coupon["valid_to"]) <= services.clock():
        return coupon | {"status": "expired"}
    return coupon
