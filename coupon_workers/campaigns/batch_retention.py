"""Forgetting whom a batch was for and who got no coupon, long after its end. The batch and its counts stay.

``issue_batch.records`` goes from ``kept`` to ``going`` before the first row is deleted, so that nobody takes what is
left for the whole, and to ``gone`` after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.chunked_deletion import CHUNK, delete_in_chunks
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)
"""From its end: a campaign is looked into within a quarter, and a million users a batch are not kept without need."""

# What went longest ago comes first, and so does what was broken off.
_NEXT = text("""
    UPDATE issue_batch SET records = 'going' WHERE batch_id = (
        SELECT batch_id FROM issue_batch WHERE records <> 'gone' AND finished_at < :before ORDER BY finished_at LIMIT 1
    )
    RETURNING batch_id
""")
_MEMBERS = text("""
    DELETE FROM audience_member WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM audience_member WHERE batch_id = :batch_id LIMIT :chunk
    ))
""")
_FAILURES = text("""
    DELETE FROM batch_failure WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM batch_failure WHERE batch_id = :batch_id LIMIT :chunk
    ))
""")
_GONE = text("UPDATE issue_batch SET records = 'gone' WHERE batch_id = :batch_id")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Of how many batches the rows were deleted, and how many rows."""

    batches: int
    members: int
    failures: int


def forget_audiences(services: Services, now: datetime) -> Forgotten:
    """Delete members and failures of batches that ended ``KEEP`` before ``now``. Safe to run twice, at once or after
    being broken off.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    batches = members = failures = 0
    while (batch_id := _next(services, now - KEEP)) is not None:
        batch = {"batch_id": batch_id}
        members += delete_in_chunks(services.engine, _MEMBERS, batch, CHUNK)
        failures += delete_in_chunks(services.engine, _FAILURES, batch, CHUNK)
        with transaction(services.engine) as connection:
            connection.execute(_GONE, batch)
        batches += 1
    return Forgotten(batches, members, failures)


def _next(services: Services, before: datetime) -> int | None:
    with transaction(services.engine) as connection:
        batch_id: int | None = connection.scalar(_NEXT, {"before": before})
        return batch_id
