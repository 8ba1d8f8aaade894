"""Whom the gate counts otherwise than his coupons and queued claims are, of one template (DESIGN 3.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import NamedTuple

from sqlalchemy import text

from coupon_workers.checking.gate_reading import chunks, gate_errors, hash_fields
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.reconciliation.difference import MOST
from coupon_workers.runtime.services import Services

SHOWN_USERS = 5
PAGE = 5_000

# OFFSET 0 keeps the look-up of each user one by index.
_HELD = text(f"""
    SELECT taker.user_id, held.coupons
      FROM unnest(CAST(:user_ids AS text[])) AS taker(user_id)
     CROSS JOIN LATERAL (SELECT count(*) AS coupons FROM coupon c
                          WHERE c.user_id = taker.user_id AND c.template_id + 0 = :template_id
                            AND {COUNTED} OFFSET 0) AS owned
     CROSS JOIN LATERAL (SELECT owned.coupons + count(*) AS coupons FROM risk_review r
                          WHERE r.user_id = taker.user_id AND r.template_id = :template_id
                            AND r.state = 'held' OFFSET 0) AS held
""")
_OWNERS = text(f"""
    SELECT coupon_id, user_id FROM coupon
     WHERE template_id = :template_id AND coupon_id > :after AND {COUNTED}
     ORDER BY coupon_id LIMIT :page
""")

_IN_REVIEW = text("SELECT DISTINCT user_id FROM risk_review WHERE template_id = :template_id AND state = 'held'")


class WrongTaker(NamedTuple):
    """``counted`` by the gate, ``held`` in coupons and queued claims."""

    user_id: str
    counted: int
    held: int


def wrong_takers(services: Services, keys: BucketKeys, queued: Mapping[str, int]) -> tuple[int, list[WrongTaker]]:
    """How many users the gate counts wrongly, and the first of them by name; ``queued`` claims of each count as his.

    A few above ``MOST`` stand for more. It says something only when the template held still. Raises
    ``StoreUnavailable``.
    """
    wrong: dict[str, WrongTaker] = {}
    for user_ids in chunks(_users(services, keys, queued)):
        counted = _counted(services, keys, user_ids)
        held = _held(services, keys.template_id, user_ids, queued)
        wrong |= {
            user_id: WrongTaker(user_id, counted[user_id], held[user_id])
            for user_id in user_ids
            if counted[user_id] != held[user_id]
        }
        if len(wrong) > MOST:
            break
    return len(wrong), nsmallest(SHOWN_USERS, wrong.values())


def _users(services: Services, keys: BucketKeys, queued: Iterable[str]) -> Iterator[str]:
    """Everyone whom the gate counts, and everyone whom it does not count though it should."""
    for _, user_id, _ in hash_fields(services.redis, [keys.takers]):
        yield user_id
    for user_ids in chunks(_owners(services, keys.template_id, queued)):
        pipeline = services.redis.pipeline(transaction=False)
        for user_id in user_ids:
            pipeline.hexists(keys.takers, user_id)
        with gate_errors():
            known = pipeline.execute()
        yield from (user_id for user_id, counted in zip(user_ids, known, strict=True) if not counted)


def _owners(services: Services, template_id: int, queued: Iterable[str]) -> Iterator[str]:
    yield from queued
    with snapshot(services) as connection:
        yield from connection.scalars(_IN_REVIEW, {"template_id": template_id}).all()
    after = 0
    while True:
        with snapshot(services) as connection:
            named = {"template_id": template_id, "after": after, "page": PAGE}
            page = connection.execute(_OWNERS, named).all()
        if not page:
            return
        after = page[-1].coupon_id
        yield from (row.user_id for row in page)


def _counted(services: Services, keys: BucketKeys, user_ids: list[str]) -> dict[str, int]:
    pipeline = services.redis.pipeline(transaction=False)
    for user_id in user_ids:
        pipeline.hget(keys.takers, user_id)
    with gate_errors():
        stored = pipeline.execute()
    return {user_id: int((value or b"0").partition(b" ")[0]) for user_id, value in zip(user_ids, stored, strict=True)}


def _held(services: Services, template_id: int, user_ids: list[str], queued: Mapping[str, int]) -> Counter[str]:
    with snapshot(services) as connection:
        rows = connection.execute(_HELD, {"template_id": template_id, "user_ids": list(set(user_ids))}).all()
    held: Counter[str] = Counter({row.user_id: row.coupons for row in rows})
    for user_id in set(user_ids):
        held[user_id] += queued.get(user_id, 0)
    return held
