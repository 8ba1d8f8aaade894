"""DESIGN 3.1: total = stock + queued + issued + reserved, for each warm template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import redis
from sqlalchemy import text

from coupon_workers.checking.breach import BREACH_LIMIT, Breach
from coupon_workers.checking.claim_end import HAVE_UNITS
from coupon_workers.checking.gate_reading import GateMark, gate_marks, known_buckets, queued_claims
from coupon_workers.checking.patience import PATIENCE_S, looks
from coupon_workers.checking.reading import snapshot
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.runtime.services import Services

RULE = "conservation"

Buckets = Mapping[int, Sequence[BucketKeys]]

_BOOKS = text("""
    SELECT template_id, total_quantity, reserved_quantity, bucket_count,
           issued + archived_quantity - restocked_quantity AS issued
      FROM coupon_template
      JOIN LATERAL (SELECT count(*) AS issued FROM coupon c
                     WHERE c.template_id = coupon_template.template_id AND c.source <> 'transfer')
           AS counted ON true
     WHERE template_id = ANY(CAST(:template_ids AS bigint[]))
""")

TEMPLATES_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class UnitBooks:
    """Where the units of one template are, all read while nothing moved.

    ``queued``: units taken by claims of the pending stream that neither a coupon nor a review stands for yet.
    """

    total: int
    stock: int
    queued: int
    issued: int
    reserved: int

    @property
    def accounted(self) -> int:
        """The sum that must be the total."""
        return self.stock + self.queued + self.issued + self.reserved

    def __str__(self) -> str:
        return (
            f"{self.accounted} = stock {self.stock} + queued {self.queued} + issued {self.issued}"
            f" + reserved {self.reserved}"
        )


def conservation(services: Services, patience_s: float = PATIENCE_S) -> list[Breach]:
    """Warm templates whose units do not add up.

    A template under traffic is read again until it holds still for the length of one reading, or adds up; one that
    never holds still within ``patience_s`` seconds, or goes cold, is not judged. Raises ``StoreUnavailable``.
    """
    open_cases = _by_template(known_buckets(services.redis))
    broken: dict[int, UnitBooks] = {}
    for _ in looks(patience_s):
        found = unit_books(services, open_cases)
        open_cases = {template_id: keys for template_id, keys in open_cases.items() if template_id in found}
        for template_id, books in found.items():
            if books is None:
                broken.pop(template_id, None)
            elif books.accounted == books.total:
                broken.pop(template_id, None)
                del open_cases[template_id]
            else:
                broken[template_id] = books
        if not open_cases:
            break
    return [
        Breach(RULE, f"template {template_id}", f"{books.total} units", str(books))
        for template_id, books in sorted(broken.items())
        if template_id in open_cases
    ][:BREACH_LIMIT]


def unit_books(services: Services, buckets: Buckets) -> dict[int, UnitBooks | None]:
    """The books of each warm template; None where something moved during the reading. Cold templates are left out."""
    books: dict[int, UnitBooks | None] = {}
    template_ids = sorted(buckets)
    for start in range(0, len(template_ids), TEMPLATES_AT_A_TIME):
        part = {template_id: buckets[template_id] for template_id in template_ids[start : start + TEMPLATES_AT_A_TIME]}
        books.update(_read(services, part))
    return books


def _by_template(buckets: Sequence[BucketKeys]) -> dict[int, list[BucketKeys]]:
    grouped: dict[int, list[BucketKeys]] = defaultdict(list)
    for keys in buckets:
        grouped[keys.template_id].append(keys)
    return grouped


def _read(services: Services, buckets: Buckets) -> dict[int, UnitBooks | None]:
    before = _marks(services.redis, buckets)
    claim_ids = {
        template_id: [
            claim.claim_id
            for keys, mark in zip(buckets[template_id], marks, strict=True)
            if mark.pending
            for claim in queued_claims(services.redis, keys)
        ]
        for template_id, marks in before.items()
    }
    with snapshot(services) as connection:
        rows = list(connection.execute(_BOOKS, {"template_ids": list(buckets)}))
        everywhere = [claim_id for ids in claim_ids.values() for claim_id in ids]
        issued = set(connection.scalars(HAVE_UNITS, {"claim_ids": everywhere})) if everywhere else set()
    after = _marks(services.redis, buckets)
    books: dict[int, UnitBooks | None] = {}
    for row in rows:
        marks = before[row.template_id]
        if len(marks) != row.bucket_count or any(mark.generation is None for mark in marks):
            continue
        queued = sum(claim_id not in issued for claim_id in claim_ids[row.template_id])
        stock = sum(mark.stock for mark in marks)
        steady = marks == after[row.template_id]
        books[row.template_id] = (
            UnitBooks(row.total_quantity, stock, queued, row.issued, row.reserved_quantity) if steady else None
        )
    return books


def _marks(client: redis.Redis, buckets: Buckets) -> dict[int, list[GateMark]]:
    flat = gate_marks(client, [keys for group in buckets.values() for keys in group])
    left = iter(flat)
    return {template_id: [next(left) for _ in group] for template_id, group in buckets.items()}
