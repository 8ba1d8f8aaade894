"""DESIGN 11: issued, queued and listed values are the pool, one for one, for each warm template of random amounts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import HAVE_UNITS
from coupon_workers.checking.gate_reading import gate_errors, gate_marks, known_buckets, queued_claims
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import HELD, BucketKeys
from coupon_workers.pools.pool_store import WITHOUT_HELD
from coupon_workers.runtime.services import Services

RULE = "pool_values"

PAGE = 10_000

_WITH_POOLS = text(
    "SELECT template_id FROM coupon_template WHERE type = 'random_amount' AND template_id = ANY(:template_ids)"
)
_LEFT = text(f"SELECT amount_minor, quantity FROM ({WITHOUT_HELD}) AS amount WHERE quantity <> 0")

Wrong = dict[int, tuple[int, int]]
"""Amount → how often the database has it left, and how often the gate has it, queued or listed."""


def pool_values(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Amounts that the gate would give more or less often than the database has them left.

    What the database has issued of a pool is ``pool_books``'s to ask. A template under traffic is read again until it
    holds still for the length of one reading; one that never does within ``patience_s`` seconds is not judged. Raises
    ``StoreUnavailable``.
    """
    open_cases = _with_pools(services, known_buckets(services.redis))
    broken: dict[BucketKeys, Wrong] = {}
    for _ in looks(patience_s):
        for keys in list(open_cases):
            wrong = _read(services, keys)
            broken.pop(keys, None)
            if wrong:
                broken[keys] = wrong
            elif wrong is not None:
                open_cases.remove(keys)
        if not open_cases:
            break
    return [
        Breach(RULE, f"template {keys.template_id} amount {amount}", f"{left} left", f"{given} queued and listed")
        for keys, wrong in broken.items()
        for amount, (left, given) in sorted(wrong.items())
    ][:BREACH_LIMIT]


def _with_pools(services: Services, buckets: Sequence[BucketKeys]) -> list[BucketKeys]:
    with snapshot(services) as connection:
        arguments = {"template_ids": [keys.template_id for keys in buckets]}
        found = set(connection.scalars(_WITH_POOLS, arguments))
    return [keys for keys in buckets if keys.template_id in found]


def _read(services: Services, keys: BucketKeys) -> Wrong | None:
    """None where something moved during the reading; nothing for a cold template."""
    before = gate_marks(services.redis, [keys])
    claims = queued_claims(services.redis, keys)
    listed = Counter(_listed(services, keys))
    listed.subtract(_held(services, keys))
    with snapshot(services) as connection:
        rows = connection.execute(_LEFT, {"template_id": keys.template_id})
        left = Counter({row.amount_minor: row.quantity for row in rows})
        issued = set(connection.scalars(HAVE_UNITS, {"claim_ids": [claim.claim_id for claim in claims]}))
    if before != gate_marks(services.redis, [keys]):
        return None
    if before[0].generation is None:
        return {}
    # A claim that found the list empty is queued without a value: what is not listed for it is wrong already.
    drawn = ((claim.claim_id, claim.face_value) for claim in claims if claim.face_value is not None)
    given = listed + Counter(value for claim_id, value in drawn if claim_id not in issued)
    return {amount: (left[amount], given[amount]) for amount in left | given if left[amount] != given[amount]}


def _listed(services: Services, keys: BucketKeys) -> Iterator[int]:
    start = 0
    while True:
        with gate_errors():
            values: Any = services.redis.lrange(keys.pool, start, start + PAGE - 1)
        yield from map(int, values)
        if len(values) < PAGE:
            return
        start += PAGE


def _held(services: Services, keys: BucketKeys) -> Counter[int]:
    with gate_errors():
        meta: Any = services.redis.hgetall(keys.meta)
    names = ((name.decode(), int(count)) for name, count in meta.items() if name.startswith(HELD.encode()))
    return Counter({int(name.removeprefix(HELD)): count for name, count in names})
