"""DESIGN 3.4: the gate counts for each user of a template what he has: coupon rows and queued claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.gate_reading import gate_errors, hash_chunks, queued_claims, warm_buckets
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.services import Services

RULE = "taker_count"

_HELD = text("""
    SELECT user_id, coupon_id FROM coupon
     WHERE template_id = :template_id AND user_id = ANY(CAST(:users AS text[]))
""")

Counts = tuple[int, int]
"""What the gate counts of a user, and what he has."""


def taker_count(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Users of warm templates whom the gate counts wrongly.

    The two stores are read one after the other, so a user found wrong is read again until he is right, moves, or
    stays wrong for ``patience_s`` seconds. Raises ``StoreUnavailable``.
    """
    suspects: dict[BucketKeys, dict[str, Counts]] = {}
    for keys in warm_buckets(services.redis):
        wrong: dict[str, Counts] = {}
        for chunk in hash_chunks(services.redis, keys.takers):
            wrong |= _wrong(services, keys, list(chunk))
        if wrong:
            suspects[keys] = wrong
    for last in looks(patience_s if suspects else 0):
        if not suspects or last:
            break
        suspects = _still_wrong(services, suspects)
    return [
        Breach(RULE, f"template {keys.template_id} user {user_id}", f"{held} coupons and queued claims", f"{counted}")
        for keys, wrong in suspects.items()
        for user_id, (counted, held) in sorted(wrong.items())
    ][:BREACH_LIMIT]


def _still_wrong(
    services: Services, suspects: dict[BucketKeys, dict[str, Counts]]
) -> dict[BucketKeys, dict[str, Counts]]:
    """The suspects that a new reading finds wrong too."""
    again = {keys: _wrong(services, keys, list(users)) for keys, users in suspects.items()}
    return {keys: wrong for keys, wrong in again.items() if wrong}


def _wrong(services: Services, keys: BucketKeys, users: Sequence[str]) -> dict[str, Counts]:
    if not users:
        return {}
    with gate_errors():
        takers: Any = services.redis.hmget(keys.takers, list(users))
    counted = {user: int((taker or b"0").split(b" ")[0]) for user, taker in zip(users, takers, strict=True)}
    held = _held(services, keys, users)
    return {user: (counted[user], held[user]) for user in users if counted[user] != held[user]}


def _held(services: Services, keys: BucketKeys, users: Iterable[str]) -> Counter[str]:
    """Coupon rows and claims of the pending stream that are no coupon rows yet, for each of the users."""
    wanted = list(users)
    queued = queued_claims(services.redis, keys)
    with snapshot(services) as connection:
        rows = list(connection.execute(_HELD, {"template_id": keys.template_id, "users": wanted}))
    held = Counter(row.user_id for row in rows)
    issued = {row.coupon_id for row in rows}
    held.update(claim.user_id for claim in queued if claim.claim_id not in issued)
    return held
