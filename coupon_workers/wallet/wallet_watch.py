"""Vouching for kept wallets: who has changed is forgotten, whoever should have done it (``runtime/vouched_page.py``).

Every change of a coupon notes its users in its own transaction (``coupons/wallet_note.py``). One front at a time looks
for new notes every ``LOOK_S``, forgets those users' pages, and then says in Redis that the pages of its epoch hold what
the database held when it began to look. It misses nothing: a note is of a transaction that an earlier look saw
unfinished or not at all. What it cannot be sure of ends the epoch, and all pages with it:

* another front takes over, because this one was silent; the rows it may have missed are then nobody's loss,
* the connection is lost or leads to another server, which may have lost what it had committed,
* Redis does not remember the last call: a forgotten page may have come back,
* more was changed than is worth telling one by one, or something that every wallet may show.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Thread
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import database_errors, make_engine
from coupon_workers.runtime.kept_page import KEEP_MS
from coupon_workers.runtime.lean_redis import pack
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.vouched_page import EPOCH_BYTES, vouched_key, watch_key
from coupon_workers.wallet.wallet_cache import forget_wallets
from coupon_workers.wallet.wallet_key import SHARDS, shard_tag

LOOK_S = 0.25
"""Between two looks: three of them may come late before pages are no longer vouched for."""

MOST_FORGOTTEN = 20_000
"""Users of a look that are forgotten one by one: a few hundredths of a second. Of more, every page is."""

MOST_NOTES = 2_000
"""Notes that a look reads."""

LOOKS_A_CLEANING = 4
CLEANED = 5_000
"""Old notes that are deleted at once, about once a second: more than are written meanwhile, a note a transaction."""

_PRESENT = """
    SELECT CAST(pg_current_snapshot() AS text) AS seen,
           pg_backend_pid() || ' ' || pg_postmaster_start_time() AS server"""
_NOW = text(_PRESENT)
# Notes of the future are of another server, from which a backup was taken.
_LOOK = text(
    f"""
    SELECT s.seen, s.server, n.txid, n.user_ids
      FROM ({_PRESENT}) AS s
      LEFT JOIN (SELECT txid, user_ids FROM wallet_change
                  WHERE txid >= :unfinished
                    AND txid < CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
                    AND NOT pg_visible_in_snapshot(CAST(CAST(txid AS text) AS xid8), CAST(:seen AS pg_snapshot))
                  LIMIT :most) AS n ON true
    """
)
# Deleted entries of the index are passed by: while somebody reads an old snapshot they cannot be taken out of it.
_CLEAN = text(
    """
    WITH gone AS (
        DELETE FROM wallet_change
         WHERE ctid = ANY(ARRAY(SELECT ctid FROM wallet_change
                                 WHERE txid >= :cleaned AND txid < :finished ORDER BY txid LIMIT :most))
        RETURNING txid
    )
    SELECT CASE WHEN count(*) < :most THEN :finished ELSE max(txid) END FROM gone
    """
)

log = get_logger(__name__)


class Heard(NamedTuple):
    """``asked_ms``: Redis's clock before the database was asked; ``seen``: the snapshot that it answered from."""

    asked_ms: int
    seen: str


class WalletWatch:
    """The watch of one front, for one thread. ``hear`` and ``vouch`` are the halves of a ``turn``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._engine = make_engine(services.settings)
        self._connection: Connection | None = None
        self._name, self._calls = secrets.token_hex(8), count(1)
        # What was left in Redis at the last call; empty while another one watches.
        self._left = self._seen = self._server = ""
        self._epoch = secrets.token_hex(EPOCH_BYTES // 2)
        self._looks = self._cleaned = 0
        self._is_away = False

    def turn(self) -> bool:
        """Look once, and vouch; whether this front vouches for pages now. Raises nothing."""
        was_watching = bool(self._left)
        try:
            heard = self.hear()
            vouches = heard is not None and self.vouch(heard)
        except (StoreUnavailable, DBAPIError) as error:
            if not self._is_away:  # once, however long it lasts
                log.warning("wallets_not_vouched_for", error=str(error))
            self._is_away = True
            return False
        self._is_away = False
        if vouches != was_watching:
            log.info("wallets_watched" if vouches else "wallets_watched_by_another", epoch=self._epoch)
        return vouches

    def close(self) -> None:
        """Give the connection back."""
        self._stop()
        self._engine.dispose()

    def hear(self) -> Heard | None:
        """Forget the wallets that have changed; None while another front does.

        Raises ``StoreUnavailable`` or ``DBAPIError``: then nothing is known any more.
        """
        with self._sure():
            asked_ms = self._redis_ms()
            if not self._left:
                if not self._take_over():
                    return None
                self._connect()
                asked_ms = self._redis_ms()
            return Heard(asked_ms, self._forget_changed())

    def vouch(self, heard: Heard) -> bool:
        """Say that pages of the epoch hold what the database held. False: this front no longer watches. Raises as
        ``hear`` does."""
        with self._sure():
            if not self._left or not self._call(self._epoch, heard.asked_ms + KEEP_MS):
                self._stop()
                return False
            self._seen = heard.seen
            self._looks += 1
            if self._looks % LOOKS_A_CLEANING == 0:
                self._clean()
            return True

    @contextmanager
    def _sure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._stop()
            raise

    def _connect(self) -> None:
        with database_errors():
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._seen, self._server = self._connection.execute(_NOW).one()

    def _take_over(self) -> bool:
        [vouched] = self._services.lean.ask([pack("EXISTS", vouched_key(shard_tag(0)))])
        return vouched == 0 and self._call("", 0)

    def _forget_changed(self) -> str:
        assert self._connection is not None
        known = {"unfinished": int(self._seen.partition(":")[0]), "seen": self._seen, "most": MOST_NOTES + 1}
        with database_errors():
            rows = self._connection.execute(_LOOK, known).all()
        notes = [row.user_ids for row in rows if row.txid is not None]
        users = {user for each in notes for user in each or ()}
        is_same_server, self._server = self._server == rows[0].server, rows[0].server
        if not is_same_server or None in notes or len(notes) > MOST_NOTES or len(users) > MOST_FORGOTTEN:
            self._epoch = secrets.token_hex(EPOCH_BYTES // 2)
        elif users:
            forget_wallets(self._services.redis, users)
        return str(rows[0].seen)

    def _call(self, epoch: str, until_ms: int) -> bool:
        """Whether every shard has taken the call."""
        leaves = f"{self._name} {next(self._calls)}"
        script = lua_script("vouch_pages").source
        tags = [shard_tag(shard) for shard in range(SHARDS)]
        answers = self._services.lean.ask(
            [
                pack("EVAL", script, 2, vouched_key(tag), watch_key(tag), self._left, leaves, epoch, until_ms)
                for tag in tags
            ]
        )
        is_done = all(answer == b"DONE" for answer in answers)
        self._left = leaves if is_done else ""
        return is_done

    def _clean(self) -> None:
        """Delete notes that every watch to come may do without: those of before the last look that was vouched for."""
        assert self._connection is not None
        known = {"cleaned": self._cleaned, "finished": int(self._seen.partition(":")[0]), "most": CLEANED}
        with database_errors():
            self._cleaned = int(self._connection.execute(_CLEAN, known).scalar_one())

    def _redis_ms(self) -> int:
        [answer] = self._services.lean.ask([pack("TIME")])
        if not isinstance(answer, list):
            raise StoreUnavailable("Redis", str(answer))
        return int(answer[0]) * 1000 + int(answer[1]) // 1000

    def _stop(self) -> None:
        """Know nothing any more: whoever watches next begins a new epoch."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
        self._connection = None
        self._left = self._seen = self._server = ""
        self._epoch = secrets.token_hex(EPOCH_BYTES // 2)
        self._looks = self._cleaned = 0


def watch_wallets_for_ever(services: Services) -> None:
    """Watch in a thread that ends with the process. Start it after a fork."""

    def run() -> None:
        watch = WalletWatch(services)
        while True:
            time.sleep(LOOK_S)
            watch.turn()

    Thread(target=run, name="wallet-watch", daemon=True).start()
