"""Pages that are read often, kept in Redis for less than a second, and read from the database by one reader at a time.

Filling is leased: who finds nothing puts a token there, reads the database, and stores the page only if the token is
still there. A change in between takes the token away, so that a page read before it is never stored after it.

The page inherits what is left of the token's life. So it is gone ``KEEP_MS`` after its reader began to read, by the one
clock of Redis, whatever became of those who should have forgotten it: nobody's death, no lost call and no Redis that
lost its last second makes a page older than that (decision 0025).
"""

from __future__ import annotations

import itertools
import secrets
import time
from contextlib import suppress
from typing import NamedTuple

import redis

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanThreads, pack
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.shared_read import PATIENCE_S, Read, SharedReads

KEEP_MS = 900
"""How old a page may be when Redis answers it. The rest of the second is for the way to whoever asked."""

POLL_S = 0.004
"""Between two looks for a page that another reader is filling: about what a read takes."""

NOBODY = b""
"""In the place of a page: give the turn back."""

TOKEN = b"filling "
"""How a token begins, and no page."""


class Look(NamedTuple):
    """A kept page, or the token to fill it with. Both None: another reader is filling it, or Redis ``is_away``.

    ``epoch``: of the page that is to be filled (``runtime/vouched_page.py``).
    """

    page: bytes | None = None
    token: str | None = None
    is_away: bool = False
    epoch: bytes = b""


class KeptPages:
    """The kept pages, for one process. Threads share it; each looks over a connection of its own."""

    def __init__(self, lean: LeanThreads, client: redis.Redis) -> None:
        self._lean = lean
        self._redis = client
        self._reads = SharedReads()
        self._mark, self._count = secrets.token_hex(8).encode(), itertools.count()

    def get(self, key: str, read: Read) -> bytes:
        """The page under ``key``, as kept or as ``read``. Raises what ``read`` raises.

        While another reader is filling it this waits for him; without Redis readers of a process share their reads.
        """
        waits_until_s = time.monotonic() + PATIENCE_S
        while True:
            look = self.look(key)
            if look.page is not None:
                return look.page
            if look.token is not None:
                return self._fill(key, look.token, look.epoch, read)
            if look.is_away or time.monotonic() > waits_until_s:
                return self._reads.read(key, read)
            time.sleep(POLL_S)

    def look(self, key: str) -> Look:
        """What is kept, or a turn at filling it. Redis being away is the same as nothing kept."""
        token = self._new_token()
        try:
            [page] = self._lean.ask([pack("SET", key, token, "PX", KEEP_MS, "NX", "GET")])
        except StoreUnavailable:
            return Look(is_away=True)
        if page is None:
            return Look(token=token.decode())
        # An error is an answer too, of a Redis that is loading or full: as good as none.
        if not isinstance(page, bytes):
            return Look(is_away=True)
        return Look() if page.startswith(TOKEN) else Look(page=page)

    def keep(self, key: str, token: str, page: bytes, epoch: bytes = b"") -> None:
        """Keep ``page`` for the rest of the token's life, if nothing has changed since it was given."""
        self._keep(key, token, page, 0)

    def _keep(self, key: str, token: str, page: bytes, more_ms: int) -> None:
        with suppress(StoreUnavailable):
            lua_script("keep_page")(self._redis, [key], [token, page, more_ms])

    def _new_token(self) -> bytes:
        """One that nobody else has, nor had."""
        return b"%b%b-%x" % (TOKEN, self._mark, next(self._count))

    def _fill(self, key: str, token: str, epoch: bytes, read: Read) -> bytes:
        try:
            page = read()
        except BaseException:
            self.keep(key, token, NOBODY)
            raise
        self.keep(key, token, page, epoch)
        return page
