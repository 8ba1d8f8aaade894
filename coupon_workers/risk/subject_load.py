"""Loading lists and scores into a gate: whole when it is preheated, and later whatever it has missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy import Connection, text

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.risk.policy import RiskPolicyBody
from coupon_workers.risk.subject import AT_A_TIME, BROUGHT, Fields, field_of, flat, gates_with_risk, note, value_of
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

OVERLAP = 1_000
"""Versions that are brought once more: a change with a lower one may have been committed after a higher one."""

_NEWEST = text("""
    SELECT greatest((SELECT max(version) FROM risk_list_entry), (SELECT max(version) FROM risk_score), 0)
""")
_LISTED = text("""
    SELECT dimension, value, list AS word, expires_at, version FROM risk_list_entry
     WHERE version > :after ORDER BY version LIMIT :page
""")
_SCORED = text("""
    SELECT 'score' AS dimension, user_id AS value, coalesce(score::text, 'none') AS word, expires_at, version
      FROM risk_score WHERE version > :after AND coalesce(score, 0) >= :least ORDER BY version LIMIT :page
""")


def load_subjects(services: Services, connection: Connection, keys: BucketKeys, policy: RiskPolicyBody) -> None:
    """Everyone who is listed, and those scored whom the policy can tell from others: above the least threshold, or all
    where a missing score has a verdict of its own.

    Into the live keys: a later word that comes meanwhile stays. Raises ``StoreUnavailable``.
    """
    newest = int(connection.scalar(_NEWEST) or 0)
    for page in _pages(connection, _LISTED, 0, 0):
        note(services, keys, page)
    if policy.asks_for_scores:
        for page in _pages(connection, _SCORED, 0, _least(policy)):
            note(services, keys, page)
    note(services, keys, flat([], newest))


def bring_missed(services: Services) -> int:
    """Bring what gates have missed, as Redis was away or the process died; returns to how many gates.

    Safe at any time, by any number. Raises ``StoreUnavailable``.
    """
    behind = 0
    with transaction(services.engine) as connection:
        newest = int(connection.scalar(_NEWEST) or 0)
        for keys in gates_with_risk(services):
            brought = _brought(services, keys)
            if brought >= newest:
                continue
            behind += 1
            for statement in (_LISTED, _SCORED):
                for page in _pages(connection, statement, max(0, brought - OVERLAP), 0):
                    note(services, keys, page)
            note(services, keys, flat([], newest))
    return behind


def _brought(services: Services, keys: BucketKeys) -> int:
    """The version that all before are at the gate with."""
    try:
        stored: Any = services.redis.hget(keys.risk_list, BROUGHT)
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return int(stored.split()[-1]) if stored else 0


def _least(policy: RiskPolicyBody) -> int:
    if policy.missing_score != "allow":
        return 0
    return min(rule.threshold for rule in policy.rules if rule.measure == "score") + 1


def _pages(connection: Connection, statement: Any, after: int, least: int) -> Iterator[Fields]:
    while True:
        arguments = {"after": after, "least": least, "page": AT_A_TIME}
        rows = connection.execute(statement, arguments).all()
        if not rows:
            return
        after = rows[-1].version
        yield [(field_of(row.dimension, row.value), value_of(row.word, row.expires_at, row.version)) for row in rows]
