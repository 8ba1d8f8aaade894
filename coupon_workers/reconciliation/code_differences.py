"""Batches of codes: their counts, their plain texts, their uses and the coupons of these (DESIGN 10, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.checking.reading import snapshot
from coupon_workers.reconciliation.difference import MOST, Difference, Reading
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services

LATE = timedelta(minutes=15)
"""The sweep of codes comes in seconds."""

# Uses are numbered without a gap. Plain texts are kept for exactly the codes that are stored and were not fetched.
_BATCHES = text("""
    SELECT b.code_batch_id, b.template_id, b.status, b.quantity, b.generated_count, b.used_count, b.gate_cursor,
           b.export, b.updated_at, least(b.expires_at, t.claim_end) AS ends_at,
           coalesce(c.stored, 0) AS stored, coalesce(c.used, 0) AS used, coalesce(c.last_use, 0) AS last_use,
           coalesce(p.parts, 0) AS parts, coalesce(p.last, 0) AS last_part
      FROM code_batch b
      JOIN coupon_template t USING (template_id)
      LEFT JOIN (SELECT code_batch_id, count(*) AS stored, count(use_no) AS used, max(use_no) AS last_use
                   FROM code GROUP BY code_batch_id) AS c USING (code_batch_id)
      LEFT JOIN (SELECT code_batch_id, count(*) AS parts, max(part_no) AS last FROM code_export_part
                  GROUP BY code_batch_id) AS p USING (code_batch_id)
     WHERE b.created_at <= :as_of
     ORDER BY b.code_batch_id
""")
_OF_NO_BATCH = text("""
    SELECT code_batch_id, count(*) AS stored FROM code
     WHERE NOT EXISTS (SELECT FROM code_batch b WHERE b.code_batch_id = code.code_batch_id)
     GROUP BY code_batch_id ORDER BY code_batch_id
""")

# A use and its coupon are written together, at one instant. A coupon that was given on is another one.
_UNPAIRED = text("""
    SELECT coupon_id, d.user_id AS user_of_code, p.user_id AS user_of_coupon, d.batch_no AS batch_of_code,
           p.batch_no AS batch_of_coupon, coalesce(p.template_id, d.template_id) AS template_id
      FROM (SELECT c.coupon_id, c.user_id, CAST(c.code_batch_id AS text) AS batch_no, b.template_id
              FROM code c JOIN code_batch b USING (code_batch_id)
             WHERE c.coupon_id IS NOT NULL AND c.used_at <= :as_of) AS d
      FULL JOIN (SELECT coupon_id, user_id, batch_no, template_id FROM coupon
                  WHERE source = 'code' AND claimed_at <= :as_of
                  UNION ALL
                 SELECT coupon_id, user_id, batch_no, template_id FROM coupon_archive WHERE source = 'code') AS p
           USING (coupon_id)
     WHERE (d.user_id, d.batch_no, d.template_id) IS DISTINCT FROM (p.user_id, p.batch_no, p.template_id)
     ORDER BY coupon_id LIMIT :most
""")


def code_differences(services: Services, as_of: datetime, day: date | None) -> Reading:
    """Batches of codes, uses and coupons that contradict one another (see ``Reader``); ``examined`` are batches.

    Counters have no history: they are compared in one snapshot, of the batches that were there at the moment in
    question. Uses bear instants.
    """
    with snapshot(services) as connection:
        batches = connection.execute(_BATCHES, {"as_of": as_of}).all()
        found = [
            *_strays(connection),
            *(each for batch in batches for each in _of_batch(batch, as_of)),
            *_unpaired(connection, as_of),
        ]
    return Reading(found[: MOST + 1], len(batches))


def _strays(connection: Connection) -> Iterator[Difference]:
    for row in connection.execute(_OF_NO_BATCH):
        yield Difference(
            finding_class="stray_codes", subject=f"code batch {row.code_batch_id}", evidence={"codes": row.stored}
        )


def _of_batch(batch: Any, as_of: datetime) -> Iterator[Difference]:
    """What its counts contradict comes before what follows from them."""
    counts = (batch.generated_count, batch.used_count, batch.used_count)
    active = batch.status in ("generating", "done")
    still = batch.updated_at <= as_of - LATE
    if counts != (batch.stored, batch.used, batch.last_use):
        yield _difference("code_counts_differ", batch, None, **_counts(batch))
        return
    if batch.parts != batch.last_part or (batch.export == "kept" and batch.generated_count > 0) != (batch.parts > 0):
        texts = {"parts": batch.parts, "last_part": batch.last_part, "export": batch.export, "codes": batch.stored}
        yield _difference("texts_differ", batch, None, **texts)
    if active and batch.ends_at <= as_of - LATE:
        yield _difference("codes_not_ended", batch, RepairName.WAKE_CODES, ended_at=rfc3339(batch.ends_at))
    elif batch.status == "generating" and still:
        since = rfc3339(batch.updated_at)
        yield _difference("generation_stuck", batch, RepairName.WAKE_CODES, since=since, codes=batch.stored)
    if batch.gate_cursor < batch.used_count and still:
        uses = {"used": batch.used_count, "counted": batch.gate_cursor}
        yield _difference("codes_uncounted", batch, RepairName.WAKE_CODES, **uses)


def _counts(batch: Any) -> dict[str, Any]:
    return {
        "status": batch.status,
        "quantity": batch.quantity,
        "generated_count": batch.generated_count,
        "codes": batch.stored,
        "used_count": batch.used_count,
        "used_codes": batch.used,
        "last_use": batch.last_use,
    }


def _difference(finding_class: str, batch: Any, repair: RepairName | None, **evidence: Any) -> Difference:
    return Difference(
        finding_class=finding_class,
        subject=f"code batch {batch.code_batch_id}",
        evidence=evidence,
        repair=repair,
        template_id=batch.template_id,
    )


def _unpaired(connection: Connection, as_of: datetime) -> Iterator[Difference]:
    for row in connection.execute(_UNPAIRED, {"as_of": as_of, "most": MOST + 1}):
        of_code = {"user_id": row.user_of_code, "batch": row.batch_of_code}
        of_coupon = {"user_id": row.user_of_coupon, "batch": row.batch_of_coupon}
        if row.batch_of_coupon is None:
            finding_class = "code_without_coupon"
        else:
            finding_class = "coupon_without_code" if row.batch_of_code is None else "code_and_coupon_differ"
        yield Difference(
            finding_class=finding_class,
            subject=f"coupon {row.coupon_id}",
            evidence={"code": of_code, "coupon": of_coupon},
            template_id=row.template_id,
            user_id=row.user_of_coupon or row.user_of_code,
            coupon_id=row.coupon_id,
        )
