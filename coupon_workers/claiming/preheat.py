"""Preheating: rebuild a template's keys in Redis from PostgreSQL, at any time, also under traffic (DESIGN 6).

The database's rows are loaded page by page into shadow keys while settling is kept out by the bucket's lock, so that
meanwhile every claim stays in the pending stream. One script then counts the stream in and puts the shadow in the
place of the live keys: claims never see half a build, and a warm template goes on selling all the while.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.claiming.gate_rules import GateRules, read_gate_rules
from coupon_workers.claiming.gate_step import steps_counted
from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys, bucket_of
from coupon_workers.claiming.offer_list import forget_offers
from coupon_workers.claiming.settlement import drain
from coupon_workers.claiming.turn import preheat_lock, settle_lock
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.pools.pool_store import values_left
from coupon_workers.risk.subject_load import load_subjects
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims
from coupon_workers.templates.archived import check_nothing_archived
from coupon_workers.templates.local_day import local_day_number

log = get_logger(__name__)

PAGE = 1_000
DAY_TTL_S = 172_800
"""Two days, as in ``lua/claim.lua``: longer than a local day and the latest rejection of a claim made in it."""

SHADOW_TTL_S = 3_600
"""As in ``lua/load_shadow.lua``: what a build that died has left goes by itself."""

VALUES_AT_A_TIME = 5_000
"""Of a pool: Redis takes so many in a millisecond."""

SMALL_BACKLOG = 2_000
"""Pending claims that a swap goes through in a few hundredths of a second."""

BACKLOG_TURN_S = 60.0
SWAP_TIMEOUT_MS = 30_000
"""The swap of the longest backlog takes seconds, and giving up on it does not stop it."""

PRIZE = "won"
"""The state of coupons that count for nobody's limit."""

_EPOCH_DAY = date(1970, 1, 1)
# A coupon received from another user took no unit of the stock and nothing of its owner's allowance; a prize took a
# unit that was set aside, and nothing of its winner's allowance.
_PAGES = {
    "coupon": (
        "SELECT coupon_id AS claim_id, user_id, CASE source WHEN 'claim' THEN request_id ELSE '' END AS request_id,"
        " claim_seq, claimed_at, CASE WHEN source IN ('lottery', 'manual') THEN 'won' ELSE 'issued' END AS state,"
        " CAST(claimed_at AT TIME ZONE :timezone AS date) AS day FROM coupon"
        " WHERE template_id = :template_id AND coupon_id > :after AND source <> 'transfer'"
        " ORDER BY coupon_id LIMIT :page"
    ),
    "risk_review": (
        "SELECT claim_id, user_id, request_id, claim_seq, claimed_at, state,"
        " CAST(claimed_at AT TIME ZONE :timezone AS date) AS day FROM risk_review"
        " WHERE template_id = :template_id AND claim_id > :after AND state = 'held' ORDER BY claim_id LIMIT :page"
    ),
    "claim_rejection": (
        "SELECT claim_id, user_id, request_id, claim_seq, claimed_at, reason AS state,"
        " CAST(claimed_at AT TIME ZONE :timezone AS date) AS day FROM claim_rejection"
        " WHERE template_id = :template_id AND claim_id > :after ORDER BY claim_id LIMIT :page"
    ),
}


def preheat_template(services: Services, template_id: int, *, wait: bool = True) -> int:
    """Rebuild every bucket of the template; returns the number of coupons loaded.

    While another preheat of the template is at work this waits for it, or leaves the work to it and returns 0 when
    not to ``wait``. Raises ``NotFound`` when there is no such template; ``Conflict`` when it was never published, and
    ``HAS_ARCHIVED`` when coupons of it are archived: the gate would not count them; and ``StoreUnavailable``: the live
    keys are then as they were, or cold.
    """
    with transaction(services.engine) as connection:
        rules = read_gate_rules(connection, template_id)
        if rules is None:
            _explain_absence(connection, template_id)
            raise AssertionError("unreachable")
    loaded = sum(_preheat_bucket(services, template_id, bucket, wait) for bucket in range(rules.bucket_count))
    forget_offers(services)
    return loaded


def _explain_absence(connection: Connection, template_id: int) -> None:
    status = connection.scalar(text("SELECT status FROM coupon_template WHERE template_id = :id"), {"id": template_id})
    if status is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    raise Conflict("INVALID_STATUS", f"a template that is {status} has nothing to preheat", current_status=status)


def _preheat_bucket(services: Services, template_id: int, bucket: int, wait: bool) -> int:
    keys = BucketKeys(template_id, bucket)
    _settle_backlog(services, keys)
    build, swapped = _Build(services, keys), False
    try:
        with transaction(services.engine) as connection:
            if not _take_turn(connection, template_id, bucket, wait):
                return 0
            check_nothing_archived(connection, template_id)
            rules = _rules_now(connection, template_id)
            issued = build.load_all(connection, rules)
            if rules.risk_policy is not None:
                load_subjects(services, connection, keys, rules.risk_policy)
            if rules.has_pool:
                build.load_pool(values_left(connection, template_id))
            crash_point("preheat.before_swap")
            pending = _swap(build, connection, issued)
            swapped = True
    except StoreUnavailable:
        if swapped:
            # The session was lost, and the locks with it: others may have settled what this build has not seen.
            build.declare_cold()
        raise
    finally:
        build.clear()
    log.info("preheated", template_id=template_id, bucket=bucket, issued=issued, pending=pending)
    if pending:
        services.post.send(settle_claims(template_id, bucket))
    return issued


def _settle_backlog(services: Services, keys: BucketKeys) -> None:
    """The swap goes through all that is pending while Redis stands still: settle first what can be settled."""
    if stock_of(services, [keys.template_id])[keys.template_id].queued > SMALL_BACKLOG:
        drain(services, keys.template_id, keys.bucket, turn_s=BACKLOG_TURN_S)


def _take_turn(connection: Connection, template_id: int, bucket: int, wait: bool) -> bool:
    """Keep other preheats out, then settling: that takes its lock for each batch, so the second wait is short."""
    turn = {"turn": preheat_lock(template_id, bucket), "settling": settle_lock(template_id, bucket)}
    if wait:
        connection.execute(text("SELECT pg_advisory_xact_lock(:turn)"), turn)
    elif not connection.scalar(text("SELECT pg_try_advisory_xact_lock(:turn)"), turn):
        return False
    connection.execute(text("SELECT pg_advisory_xact_lock(:settling)"), turn)
    return True


def _swap(build: _Build, connection: Connection, issued: int) -> int:
    # Asked again right before: it also tells whether the session, and the locks with it, is still there.
    rules = _rules_now(connection, build.template_id)
    steps = steps_counted(connection, build.template_id)
    while (pending := build.swap(rules, issued, steps)) is None:
        older, rules = rules, _rules_now(connection, build.template_id)
        if rules.version == older.version:
            # The gate knows a version that the database, brought back from a copy, has lost: it leads.
            build.declare_cold()
    return pending


def _rules_now(connection: Connection, template_id: int) -> GateRules:
    rules = read_gate_rules(connection, template_id)
    if rules is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    return rules


def _pages(connection: Connection, rules: GateRules, bucket: int) -> Iterator[list[Any]]:
    """Every coupon, held claim and rejection of the bucket, a page at a time, by indexes on template and number."""
    for statement in _PAGES.values():
        after = 0
        while True:
            arguments = {
                "template_id": rules.template_id,
                "timezone": rules.timezone,
                "after": after,
                "page": PAGE,
            }
            rows = connection.execute(text(statement), arguments).all()
            if not rows:
                break
            after = rows[-1].claim_id
            yield [row for row in rows if bucket_of(row.user_id, rules.bucket_count) == bucket]


class _Build:
    """The shadow keys of one bucket, from empty to swapped. Each build has its own, so that no two can mix."""

    def __init__(self, services: Services, keys: BucketKeys) -> None:
        self._redis = services.redis
        self._patient_redis = make_redis(services.settings, timeout_ms=SWAP_TIMEOUT_MS)
        self._now = services.clock()
        self._keys = keys
        self._name = secrets.token_hex(8)
        self._days: list[int] = []
        self._shadow_takers = keys.shadow(f"{self._name}:takers")
        self._shadow_requests = keys.shadow(f"{self._name}:requests")
        self._shadow_days = keys.shadow(f"{self._name}:day:")
        self._shadow_pool = keys.shadow(f"{self._name}:pool")

    @property
    def template_id(self) -> int:
        """The template that is built."""
        return self._keys.template_id

    def clear(self) -> None:
        """Forget the shadow, if it was not swapped; without Redis it goes by itself."""
        days = [f"{self._shadow_days}{day}" for day in self._days]
        with suppress(RedisError):
            self._redis.unlink(self._shadow_takers, self._shadow_requests, self._shadow_pool, *days)
        self._patient_redis.close()

    def declare_cold(self) -> None:
        """Have the gate refuse claims until a swap, which then asks for no version."""
        try:
            self._redis.unlink(self._keys.generation, self._keys.told)
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error

    def load_all(self, connection: Connection, rules: GateRules) -> int:
        """Load every coupon, held claim and rejection of the bucket; returns how many units these have taken."""
        today = local_day_number(self._now, rules.timezone)
        # Yesterday too: a claim accepted before midnight may still be rejected. Tomorrow: clocks differ a little.
        self._days = [today - 1, today, today + 1] if rules.per_user_daily_limit is not None else []
        return sum(self.load(page) for page in _pages(connection, rules, self._keys.bucket))

    def load(self, page: list[Any]) -> int:
        """Add a page of rows; returns how many were issued coupons."""
        args: list[str | int] = []
        counted = [row for row in page if row.state != PRIZE]
        for row in counted:
            day = (row.day - _EPOCH_DAY) // timedelta(days=1)
            args += (
                row.claim_id,
                row.user_id,
                row.request_id,
                row.claim_seq,
                day if day in self._days else "",
                row.state,
            )
        keys = [self._shadow_takers, self._shadow_requests, self._shadow_days]
        issued = int(lua_script("load_shadow")(self._redis, keys, args)) if args else 0
        return issued + len(page) - len(counted)

    def load_pool(self, values: array[int]) -> None:
        """Load what is left of the pool, of a template of random amounts."""
        try:
            for start in range(0, len(values), VALUES_AT_A_TIME):
                self._redis.rpush(self._shadow_pool, *values[start : start + VALUES_AT_A_TIME])
                self._redis.expire(self._shadow_pool, SHADOW_TTL_S)
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error

    def swap(self, rules: GateRules, issued: int, steps: list[str | int]) -> int | None:
        """Take the live keys' place; returns the claims still pending, or None when ``rules`` are out of date."""
        keys = self._keys
        try:
            # Before the swap: a claim accepted right after it must be found when its status is asked.
            self._redis.sadd(WARM_TEMPLATES, f"{keys.template_id}.{keys.bucket}")
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error
        reply = lua_script("swap_shadow")(
            self._patient_redis,
            [
                keys.meta,
                keys.generation,
                keys.stock,
                keys.takers,
                keys.requests,
                keys.claims,
                keys.pending,
                keys.day_prefix,
                self._shadow_takers,
                self._shadow_requests,
                self._shadow_days,
                keys.told,
                keys.pool,
                self._shadow_pool,
            ],
            [
                rules.version,
                rules.share_of(keys.bucket),
                issued - rules.granted,
                self._name,
                ",".join(map(str, self._days)),
                DAY_TTL_S,
                *rules.meta(),
                *steps,
            ],
        )
        return int(reply[1]) if reply[0] == b"SWAPPED" else None
