"""Preheating: rebuild a template's keys in Redis from PostgreSQL, at any time, also under traffic (DESIGN 6).

The database's rows are loaded page by page into shadow keys while settling is kept out by the bucket's lock, so that
meanwhile every claim stays in the pending stream. One script then counts the stream in and puts the shadow in the
place of the live keys: claims never see half a build, and a warm template goes on selling all the while.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.claiming.gate_rules import GateRules, read_gate_rules
from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys, bucket_of
from coupon_workers.claiming.settle_sql import settle_lock
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import settle_claims
from coupon_workers.templates.local_day import local_day_number

log = get_logger(__name__)

PAGE = 1_000
DAY_TTL_S = 172_800
"""Two days, as in ``lua/claim.lua``: longer than a local day and the latest rejection of a claim made in it."""

_EPOCH_DAY = date(1970, 1, 1)
_PAGES = {
    "coupon": (
        "SELECT coupon_id AS claim_id, user_id, request_id, claim_seq, claimed_at, 'issued' AS state,"
        " CAST(claimed_at AT TIME ZONE :timezone AS date) AS day FROM coupon"
        " WHERE template_id = :template_id AND coupon_id > :after ORDER BY coupon_id LIMIT :page"
    ),
    "claim_rejection": (
        "SELECT claim_id, user_id, request_id, claim_seq, claimed_at, reason AS state,"
        " CAST(claimed_at AT TIME ZONE :timezone AS date) AS day FROM claim_rejection"
        " WHERE template_id = :template_id AND claim_id > :after ORDER BY claim_id LIMIT :page"
    ),
}


def preheat_template(services: Services, template_id: int) -> int:
    """Rebuild every bucket of the template; returns the number of coupons loaded.

    Raises ``NotFound`` when there is no such template, ``Conflict`` when it was never published, and
    ``StoreUnavailable``: the live keys are then as they were.
    """
    with transaction(services.engine) as connection:
        rules = read_gate_rules(connection, template_id)
        if rules is None:
            _explain_absence(connection, template_id)
            raise AssertionError("unreachable")
    return sum(_preheat_bucket(services, template_id, bucket) for bucket in range(rules.bucket_count))


def _explain_absence(connection: Connection, template_id: int) -> None:
    status = connection.scalar(text("SELECT status FROM coupon_template WHERE template_id = :id"), {"id": template_id})
    if status is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    raise Conflict("INVALID_STATUS", f"a template that is {status} has nothing to preheat", current_status=status)


def _preheat_bucket(services: Services, template_id: int, bucket: int) -> int:
    keys = BucketKeys(template_id, bucket)
    with transaction(services.engine) as connection:
        # Settling takes this lock for each batch: waiting here is short, and nothing settles until the swap is done.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": settle_lock(template_id, bucket)})
        rules = _rules_now(connection, template_id)
        build = _Build(services, keys, rules)
        build.clear()
        issued = sum(build.load(page) for page in _pages(connection, rules, bucket))
        crash_point("preheat.before_swap")
        while (pending := build.swap(rules, issued)) is None:
            older, rules = rules, _rules_now(connection, template_id)
            if rules.version == older.version:
                # The live keys know a version that the database, brought back from a copy, has lost: it leads.
                build.forget_live_version()
        log.info("preheated", template_id=template_id, bucket=bucket, issued=issued, pending=pending)
    if pending:
        services.post.send(settle_claims(template_id, bucket))
    return issued


def _rules_now(connection: Connection, template_id: int) -> GateRules:
    rules = read_gate_rules(connection, template_id)
    if rules is None:
        raise NotFound("TEMPLATE_NOT_FOUND", f"there is no template {template_id}")
    return rules


def _pages(connection: Connection, rules: GateRules, bucket: int) -> Iterator[list[Any]]:
    """Every coupon and rejection of the bucket, a page at a time, by the index on (template_id, coupon_id)."""
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
    """The shadow keys of one bucket, from empty to swapped."""

    def __init__(self, services: Services, keys: BucketKeys, rules: GateRules) -> None:
        self._redis = services.redis
        self._keys = keys
        today = local_day_number(services.clock(), rules.timezone)
        # Yesterday too: a claim accepted before midnight may still be rejected. Tomorrow: clocks differ a little.
        self._days = [today - 1, today, today + 1] if rules.per_user_daily_limit is not None else []
        self._shadow_takers = keys.shadow("takers")
        self._shadow_requests = keys.shadow("requests")
        self._shadow_days = keys.shadow("day:")

    def clear(self) -> None:
        """Forget what a build that did not end has left."""
        days = [f"{self._shadow_days}{day}" for day in self._days]
        try:
            self._redis.unlink(self._shadow_takers, self._shadow_requests, *days)
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error

    def forget_live_version(self) -> None:
        """Declare the live keys cold: claims are refused until the swap, which then asks for no version."""
        try:
            self._redis.unlink(self._keys.generation)
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error

    def load(self, page: list[Any]) -> int:
        """Add a page of rows; returns how many were issued coupons."""
        args: list[str | int] = []
        for row in page:
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
        return int(lua_script("load_shadow")(self._redis, keys, args)) if args else 0

    def swap(self, rules: GateRules, issued: int) -> int | None:
        """Take the live keys' place; returns the claims still pending, or None when ``rules`` are out of date."""
        keys = self._keys
        try:
            # Before the swap: a claim accepted right after it must be found when its status is asked.
            self._redis.sadd(WARM_TEMPLATES, f"{keys.template_id}.{keys.bucket}")
        except RedisError as error:
            raise StoreUnavailable("Redis", str(error)) from error
        reply = lua_script("swap_shadow")(
            self._redis,
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
            ],
            [
                rules.version,
                rules.share_of(keys.bucket),
                issued,
                secrets.token_hex(8),
                ",".join(map(str, self._days)),
                DAY_TTL_S,
                *rules.meta(),
            ],
        )
        return int(reply[1]) if reply[0] == b"SWAPPED" else None
