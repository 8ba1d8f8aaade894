"""DESIGN 3.4: the gate counts for each user of a template what he has had: coupon rows, but not those that other users
gave him, and queued claims; where a limit of the day holds also those of today, by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain
from typing import NamedTuple

from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.gate_reading import (
    chunks,
    gate_errors,
    hash_fields,
    queued_claims,
    still_warm,
    warm_buckets,
)
from coupon_workers.checking.open_day import OpenDays
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import snapshot
from coupon_workers.checking.settled_claim import coupon_pages, held_pages
from coupon_workers.claiming.key import BucketKeys, bucket_of
from coupon_workers.runtime.services import Services

RULE = "taker_count"

MOST_SUSPECTS = 10 * BREACH_LIMIT
"""Users who are kept in mind: with more the wrong ones among them are told at once from those who have just claimed."""

# OFFSET 0 keeps the look-up of each taker a look-up by index: as a join it may become a reading of all coupons.
_HELD = text("""
    SELECT taker.template_id, taker.user_id, held.coupon_id, held.claimed_at
      FROM unnest(CAST(:template_ids AS bigint[]), CAST(:user_ids AS text[])) AS taker(template_id, user_id)
     CROSS JOIN LATERAL (SELECT coupon_id, claimed_at FROM coupon c
                          WHERE c.user_id = taker.user_id AND c.template_id = taker.template_id
                            AND c.source NOT IN ('transfer', 'lottery', 'manual')
                          UNION ALL
                         SELECT coupon_id, claimed_at FROM coupon_archive c
                          WHERE c.user_id = taker.user_id AND c.template_id = taker.template_id
                            AND c.source NOT IN ('transfer', 'lottery', 'manual')
                          UNION ALL
                         SELECT claim_id, claimed_at FROM risk_review r
                          WHERE r.user_id = taker.user_id AND r.template_id = taker.template_id
                            AND r.state = 'held' OFFSET 0) AS held
""")


class Taker(NamedTuple):
    """A user of a bucket, and which of his coupons are counted: those of a local day, or with ``day`` "" all."""

    keys: BucketKeys
    user_id: str
    day: str = ""

    def __str__(self) -> str:
        user = f"template {self.keys.template_id} user {self.user_id}"
        return f"{user} day {date(1970, 1, 1) + timedelta(days=int(self.day))}" if self.day else user


Counts = tuple[int, int]
"""What the gate counts of a user, and what he has."""

Queued = Mapping[Taker, Sequence[int]]
"""The claims of the pending streams, by whose they are."""


def taker_count(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Users of warm templates whom the gate counts wrongly.

    The two stores are read one after the other, so a user found wrong is read again until he is right, or stays wrong
    for ``patience_s`` seconds. Raises ``StoreUnavailable``.
    """
    buckets = warm_buckets(services.redis)
    days = OpenDays(services, {keys.template_id for keys in buckets})
    suspects = _first_look(services, buckets, days)
    for last in looks(patience_s):
        if not suspects or last:
            break
        suspects = _look_again(services, list(suspects), days)
    return [
        Breach(RULE, str(taker), f"{held} coupons and queued claims", f"{counted}")
        for taker, (counted, held) in suspects.items()
    ][:BREACH_LIMIT]


def _first_look(services: Services, buckets: Sequence[BucketKeys], days: OpenDays) -> dict[Taker, Counts]:
    suspects: dict[Taker, Counts] = {}
    for found in _suspects(services, buckets, days):
        suspects |= found
        if len(suspects) > MOST_SUSPECTS:
            suspects = _look_again(services, list(suspects), days)
            if len(suspects) >= BREACH_LIMIT:
                break
    return suspects


def _suspects(services: Services, buckets: Sequence[BucketKeys], days: OpenDays) -> Iterator[dict[Taker, Counts]]:
    """All takers, against streams read once: whoever moves meanwhile is suspected, and looked at again."""
    queued = _queued(services, buckets, days)
    hashes = {_hash(keys, day): (keys, day) for keys in buckets for day in ("", *days.of(keys.template_id))}
    for chunk in chunks(hash_fields(services.redis, hashes)):
        places = ((*hashes[key], user_id, value) for key, user_id, value in chunk)
        counted = {Taker(keys, user_id, day): _count(value) for keys, day, user_id, value in places}
        yield _wrong(services, counted, queued, days)
    for takers in _holders(services, buckets, queued, days):
        forgotten = [taker for taker, stored in zip(takers, _stored(services, takers), strict=True) if stored is None]
        yield _look_again(services, forgotten, days)


def _holders(
    services: Services, buckets: Sequence[BucketKeys], queued: Queued, days: OpenDays
) -> Iterator[list[Taker]]:
    """Whoever must be among the takers: holders of coupons, and users with queued claims."""
    of_template: dict[int, list[BucketKeys]] = {}
    for keys in buckets:
        of_template.setdefault(keys.template_id, []).append(keys)
    for page in chain(coupon_pages(services), held_pages(services)):
        holders = {
            (row.template_id, row.user_id, day)
            for row in page
            if row.template_id in of_template
            for day in ("", *days.met(row.template_id, row.claimed_at))
        }
        groups = ((of_template[template_id], user_id, day) for template_id, user_id, day in holders)
        yield [Taker(group[bucket_of(user_id, len(group))], user_id, day) for group, user_id, day in groups]
    yield list(queued)


def _hash(keys: BucketKeys, day: str) -> str:
    return f"{keys.day_prefix}{day}" if day else keys.takers


def _stored(services: Services, takers: Sequence[Taker]) -> list[bytes | None]:
    pipeline = services.redis.pipeline(transaction=False)
    for keys, user_id, day in takers:
        pipeline.hget(_hash(keys, day), user_id)
    with gate_errors():
        return list(pipeline.execute())


def _look_again(services: Services, takers: Sequence[Taker], days: OpenDays) -> dict[Taker, Counts]:
    """Those of ``takers`` that are wrong in a reading in the order count, stream, rows. Of a bucket that has gone cold
    nobody is: it was retired, or Redis has lost its memory."""
    counted: dict[Taker, int] = {}
    for chunk in chunks(takers):
        for taker, stored in zip(chunk, _stored(services, chunk), strict=True):
            counted[taker] = _count(stored.decode() if stored else "0")
    queued = _queued(services, {taker.keys for taker in takers}, days)
    wrong: dict[Taker, Counts] = {}
    for chunk in chunks(takers):
        wrong |= _wrong(services, {taker: counted[taker] for taker in chunk}, queued, days)
    warm = still_warm(services.redis, {taker.keys for taker in wrong})
    return {taker: counts for taker, counts in wrong.items() if taker.keys in warm}


def _wrong(services: Services, counted: Mapping[Taker, int], queued: Queued, days: OpenDays) -> dict[Taker, Counts]:
    held = _held(services, list(counted), queued, days)
    return {taker: (count, held[taker]) for taker, count in counted.items() if count != held[taker]}


def _held(services: Services, takers: Sequence[Taker], queued: Queued, days: OpenDays) -> Counter[Taker]:
    """Coupon rows, and claims of the pending streams that are no coupon rows yet, for each of the takers."""
    keys_of = {(taker.keys.template_id, taker.user_id): taker.keys for taker in takers}
    template_ids, user_ids = ([pair[place] for pair in keys_of] for place in (0, 1))
    with snapshot(services) as connection:
        rows = list(connection.execute(_HELD, {"template_ids": template_ids, "user_ids": user_ids}))
    held = Counter(
        Taker(keys_of[row.template_id, row.user_id], row.user_id, day)
        for row in rows
        for day in ("", *days.met(row.template_id, row.claimed_at))
    )
    issued = {row.coupon_id for row in rows}
    for taker in takers:
        held[taker] += sum(claim_id not in issued for claim_id in queued.get(taker, ()))
    return held


def _queued(services: Services, buckets: Iterable[BucketKeys], days: OpenDays) -> Queued:
    queued: dict[Taker, list[int]] = {}
    for keys in buckets:
        looked_at = {"", *days.of(keys.template_id)}
        for claim in queued_claims(services.redis, keys):
            for day in looked_at & {"", claim.day}:
                queued.setdefault(Taker(keys, claim.user_id, day), []).append(claim.claim_id)
    return queued


def _count(stored: str) -> int:
    return int(stored.partition(" ")[0])
