"""The first page of a wallet, kept in Redis for a short while and forgotten with every change.

Filling is leased: who finds nothing puts a token there, reads the database, and stores the page only if the token is
still there. A change in between takes the token away, so that a page read before it is never stored after it; and
one reader at a time fills.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import cast

import redis
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.wallet.wallet_key import wallet_key, wallet_keys

KEEP_MS = 30_000
FILL_MS = 2_000
"""Longest time one reader may take to fill before another may try."""

_TOKEN = b"filling "

Look = tuple[bytes | None, str | None]
"""A kept page, or the token to fill it with; both None: another reader is filling it, or Redis is away."""


def forget_wallets(client: redis.Redis, user_ids: Collection[str]) -> None:
    """Forget the pages of these users, and any filling under way. Raises ``StoreUnavailable``."""
    pipeline = client.pipeline(transaction=False)
    for keys in wallet_keys(user_ids):
        pipeline.unlink(*keys)
    try:
        pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error


def kept_wallet(client: redis.Redis, user_id: str) -> Look:
    """The kept page, or None and a token to fill it with; None and None when another reader is filling it.

    Redis being away is the same as nothing kept: the wallet is read from the database.
    """
    token = new_token()
    try:
        page = cast(bytes | None, client.set(wallet_key(user_id), token, px=FILL_MS, nx=True, get=True))
    except RedisError:
        return None, None
    return what_is_kept(page, token)


def new_token() -> str:
    """What stands for a page while its reader fills it."""
    return (_TOKEN + secrets.token_hex(8).encode()).decode()


def what_is_kept(page: bytes | None, token: str) -> Look:
    """What the value that was found means to a reader who would have put ``token`` there."""
    if page is None:
        return None, token
    return (None, None) if page.startswith(_TOKEN) else (page, None)


def keep_wallet(client: redis.Redis, user_id: str, token: str, page: bytes) -> None:
    """Keep ``page`` if nothing has changed since ``token`` was given."""
    try:
        lua_script("fill_wallet")(client, [wallet_key(user_id)], [token, page, KEEP_MS])
    except StoreUnavailable:
        return
