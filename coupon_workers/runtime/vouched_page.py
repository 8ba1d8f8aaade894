"""Kept pages that live for half a minute, for as long as somebody vouches for them (decision 0026).

Whoever vouches looks every quarter of a second which pages no longer show what the database holds, has them forgotten,
and says so in Redis: for ``KEEP_MS`` from the moment at which he began to look, and for the pages of one epoch. Who
reads a page asks in the same round trip whether it is vouched for. A page that is not is shown no longer than any other
kept page; so it is when the one who vouches has died, or cannot see the database, or Redis has lost what he told it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KEEP_MS, TOKEN, KeptPages, Look
from coupon_workers.runtime.lean_redis import pack
from coupon_workers.runtime.lua_script import lua_script

LIVE_MS = 30_000
"""How old a page may be that is vouched for."""

EPOCH_BYTES = 16
_NO_EPOCH = b"-" * EPOCH_BYTES
_OUTLIVES_MS = LIVE_MS - KEEP_MS


def vouched_key(shard: str) -> str:
    """String: the epoch of the shard's pages that are vouched for. ``shard`` is the hash tag of their keys."""
    return f"cw:{{{shard}}}:vouched"


def watch_key(shard: str) -> str:
    """String: what whoever vouches has left there at his last call."""
    return f"cw:{{{shard}}}:watch"


class VouchedPages(KeptPages):
    """As ``KeptPages``, of keys with the hash tag of their shard.

    A page lies behind its epoch and the mark of its filling. One that was filled while nobody vouched has no epoch and
    goes with its token's life.
    """

    def look(self, key: str) -> Look:
        """What is kept and may be shown, or a turn at filling it."""
        token = self._new_token()
        shard = key[key.index("{") + 1 : key.index("}")]
        questions = [pack("GET", vouched_key(shard)), pack("SET", key, token, "PX", KEEP_MS, "NX", "GET")]
        try:
            vouched, found, left_ms = self._lean.ask([*questions, pack("PTTL", key)])
        except StoreUnavailable:
            return Look(is_away=True)
        # The epoch was asked for before the turn was taken: what is read now is not older than it.
        epoch = vouched if isinstance(vouched, bytes) else b""
        if found is None:
            return Look(token=token.decode(), epoch=epoch)
        if not isinstance(found, bytes):
            return Look(is_away=True)
        if found.startswith(TOKEN):
            return Look()
        if _may_be_shown(found[:EPOCH_BYTES], epoch, left_ms):
            return Look(page=found[found.index(b" ") + 1 :])
        return self._replace(key, found[: found.index(b" ")], token, epoch)

    def keep(self, key: str, token: str, page: bytes, epoch: bytes = b"") -> None:
        """Keep ``page``, with an epoch for ``LIVE_MS`` from the beginning of the token's life."""
        if page:
            page = b"%b%b %b" % (epoch or _NO_EPOCH, token.encode().removeprefix(TOKEN), page)
        self._keep(key, token, page, _OUTLIVES_MS if epoch else 0)

    def _replace(self, key: str, head: bytes, token: bytes, epoch: bytes) -> Look:
        with suppress(StoreUnavailable):
            if lua_script("replace_page")(self._redis, [key], [head, token, KEEP_MS]) == b"TAKEN":
                return Look(token=token.decode(), epoch=epoch)
        return Look()  # another one was quicker


def _may_be_shown(head: bytes, vouched: bytes, left_ms: Any) -> bool:
    if head in (vouched, _NO_EPOCH):
        return True
    return isinstance(left_ms, int) and left_ms > _OUTLIVES_MS  # as young as any kept page
