"""Preheating: rebuild a lottery's keys in Redis from PostgreSQL, at any time, also under traffic.

As for templates (``claiming/preheat.py``): settled draws are loaded into shadow keys while settling is kept out, and
one script counts in what is pending and puts the shadow in the place of the live keys.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.claiming.preheat import DAY_TTL_S, PAGE, SHADOW_TTL_S, SWAP_TIMEOUT_MS
from coupon_workers.errors import NotFound, StoreUnavailable
from coupon_workers.lottery.key import LotteryKeys
from coupon_workers.lottery.lottery_rules import LotteryRules, read_rules
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_draws
from coupon_workers.templates.local_day import local_day_number

log = get_logger(__name__)

_WAIT = text("SELECT pg_advisory_xact_lock(:lock)")
_TRY = text("SELECT pg_try_advisory_xact_lock(:lock)")
_PAGE = text(
    "SELECT draw_id, user_id, request_id, prize_no, reason,"
    " CAST(drawn_at AT TIME ZONE :timezone AS date) - date '1970-01-01' AS day FROM draw"
    " WHERE lottery_id = :lottery_id AND draw_id > :after ORDER BY draw_id LIMIT :page"
)


def preheat_lottery(services: Services, lottery_id: int, *, wait: bool = True) -> int:
    """Rebuild the lottery's keys; returns the number of draws loaded.

    While another preheat of it is at work this waits for it, or leaves the work to it and returns 0 when not to
    ``wait``. Raises ``NotFound`` ``LOTTERY_NOT_FOUND``, ``StoreUnavailable``: the live keys are then as they were, or
    cold.
    """
    build, swapped = _Build(services, lottery_id), False
    try:
        with transaction(services.engine) as connection:
            turn = {"lock": ~lottery_id}
            if wait:
                connection.execute(_WAIT, turn)
            elif not connection.scalar(_TRY, turn):
                return 0
            connection.execute(_WAIT, {"lock": lottery_id})
            loaded = build.load_all(connection, _rules_now(connection, lottery_id))
            crash_point("lottery.before_swap")
            pending = _swap(build, connection)
            swapped = True
    except StoreUnavailable:
        if swapped:
            # The session was lost, and the locks with it: others may have settled what this build has not seen.
            build.declare_cold()
        raise
    finally:
        build.clear()
    log.info("lottery preheated", lottery_id=lottery_id, draws=loaded, pending=pending)
    if pending:
        services.post.send(settle_draws(lottery_id))
    return loaded


def preheat_if_redis_answers(services: Services, lottery_id: int) -> None:
    """The same; the sweep does it if Redis is away."""
    try:
        preheat_lottery(services, lottery_id)
    except StoreUnavailable as error:
        log.warning("the lottery is warmed later", lottery_id=lottery_id, error=str(error))


def _rules_now(connection: Connection, lottery_id: int) -> LotteryRules:
    rules = read_rules(connection, lottery_id)
    if rules is None:
        raise NotFound("LOTTERY_NOT_FOUND", "there is no such lottery")
    return rules


def _swap(build: _Build, connection: Connection) -> int:
    # Asked again right before: it also tells whether the session, and the locks with it, is still there.
    rules = _rules_now(connection, build.lottery_id)
    while (pending := build.swap(rules)) is None:
        older, rules = rules, _rules_now(connection, build.lottery_id)
        if rules.version == older.version:
            # The gate knows a version that the database, brought back from a copy, has lost: it leads.
            build.declare_cold()
    return pending


def _pages(connection: Connection, rules: LotteryRules) -> Iterator[Sequence[Any]]:
    after, lottery = 0, rules.lottery
    while True:
        named = {"lottery_id": lottery["lottery_id"], "timezone": lottery["timezone"], "after": after, "page": PAGE}
        rows = connection.execute(_PAGE, named).all()
        if not rows:
            return
        after = rows[-1].draw_id
        yield rows


class _Build:
    """The shadow keys of a lottery, from empty to swapped. Each build has its own, so that no two can mix."""

    def __init__(self, services: Services, lottery_id: int) -> None:
        self.lottery_id = lottery_id
        self._redis = services.redis
        self._patient_redis = make_redis(services.settings, timeout_ms=SWAP_TIMEOUT_MS)
        self._now = services.clock()
        self._keys = LotteryKeys(lottery_id)
        self._name = secrets.token_hex(8)
        self._days: list[int] = []
        self._takers = self._keys.shadow(f"{self._name}:takers")
        self._requests = self._keys.shadow(f"{self._name}:requests")
        self._day_prefix = self._keys.shadow(f"{self._name}:day:")

    def clear(self) -> None:
        """Forget the shadow, if it was not swapped; without Redis it goes by itself."""
        with suppress(RedisError):
            self._redis.unlink(self._takers, self._requests, *(f"{self._day_prefix}{day}" for day in self._days))
        self._patient_redis.close()

    def declare_cold(self) -> None:
        """Have the gate refuse draws until a swap, which then asks for no version."""
        try:
            self._redis.unlink(self._keys.generation, self._keys.told)
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error

    def load_all(self, connection: Connection, rules: LotteryRules) -> int:
        """Load every draw; returns how many."""
        today = local_day_number(self._now, rules.lottery["timezone"])
        # Tomorrow too: clocks differ a little.
        self._days = [today - 1, today, today + 1] if rules.lottery["per_user_daily_limit"] is not None else []
        return sum(self._load(rows) for rows in _pages(connection, rules))

    def _load(self, rows: Sequence[Any]) -> int:
        counted = [row for row in rows if row.reason is None]
        answers = {
            f"{row.user_id} {row.request_id}": f"{row.draw_id} {row.prize_no} {row.reason or 'settled'}"
            for row in rows
            if row.reason != "DUPLICATE"  # another draw answers its request
        }
        pipeline = self._redis.pipeline(transaction=False)
        if answers:
            pipeline.hset(self._requests, mapping=answers)  # type: ignore[arg-type]  # texts are values too
            pipeline.expire(self._requests, SHADOW_TTL_S)
        self._count(pipeline, self._takers, Counter(row.user_id for row in counted))
        for day in self._days:
            users = Counter(row.user_id for row in counted if row.day == day)
            self._count(pipeline, f"{self._day_prefix}{day}", users)
        try:
            pipeline.execute()
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error
        return len(rows)

    def _count(self, pipeline: Any, key: str, users: Counter[str]) -> None:
        for user_id, draws in users.items():
            pipeline.hincrby(key, user_id, draws)
        if users:
            pipeline.expire(key, SHADOW_TTL_S)

    def swap(self, rules: LotteryRules) -> int | None:
        """Take the live keys' place; returns the draws still pending, or None when ``rules`` are out of date."""
        keys = self._keys
        live = [keys.meta, keys.generation, keys.stock, keys.takers, keys.requests, keys.pending, keys.day_prefix]
        reply = lua_script("swap_draws")(
            self._patient_redis,
            [*live, self._takers, self._requests, self._day_prefix, keys.told],
            [rules.version, self._name, ",".join(map(str, self._days)), DAY_TTL_S, rules.stock, *rules.meta()],
        )
        return int(reply[1]) if reply[0] == b"SWAPPED" else None
