"""Campaign batches: their counts, their coupons, their units, and whether they move (DESIGN 9, 10). With them the
units of claims held for review, which are set aside likewise."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.checking.reading import snapshot
from coupon_workers.coupons.source_sql import GRANTED
from coupon_workers.reconciliation.difference import MOST, Difference, Reading
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.review_differences import review_differences
from coupon_workers.reconciliation.unit_holders import HOLDERS
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.services import Services

STUCK = timedelta(minutes=15)
"""The sweep of the batches sends again what has not moved for seconds."""

_GIVEN = text(f"""
    SELECT source, batch_no, template_id, count(*) AS coupons FROM coupon WHERE {GRANTED}
     GROUP BY source, batch_no, template_id
""")
_HOLDERS = text(f"""
    SELECT template_id, sum(kept) AS kept, sum(has_left) AS has_left, sum(due) AS due, sum(given) AS given
      FROM ({HOLDERS}) AS holder GROUP BY template_id
""")

# Whoever got a coupon or was refused stands before his shard's cursor. Refusals are forgotten long after a batch's end.
_BATCHES = text("""
    SELECT b.batch_id, b.template_id, b.status, b.issued_count, b.refused_count, b.audience_count, b.reserved_quantity,
           b.left_quantity, b.archived_count, b.records, b.created_at, b.updated_at, t.status AS template_status,
           b.row_count = b.invalid_count + b.duplicate_count + b.audience_count AS rows_add_up,
           coalesce(f.refused, 0) AS refused, coalesce(s.members, 0) AS members, coalesce(s.moved, 0) AS moved
      FROM issue_batch b
      JOIN coupon_template t USING (template_id)
      LEFT JOIN (SELECT batch_id, count(*) AS refused FROM batch_failure
                  WHERE reason NOT IN ('INVALID', 'DUPLICATE') GROUP BY batch_id) AS f USING (batch_id)
      LEFT JOIN (SELECT batch_id, sum(member_count) AS members, sum(cursor) AS moved FROM issue_shard
                  GROUP BY batch_id) AS s USING (batch_id)
     ORDER BY b.batch_id
""")
_TEMPLATES = text("""
    SELECT template_id, total_quantity, issued_quantity, reserved_quantity, granted_quantity, archived_granted_quantity,
           restocked_quantity
      FROM coupon_template WHERE created_at <= :as_of ORDER BY template_id
""")

_HAS_UNITS = ("running", "paused")
_STOPPED = ("paused", "offline", "archived")


def batch_differences(services: Services, as_of: datetime, day: date | None) -> Reading:
    """Batches and templates whose books of campaigns contradict their rows (see ``Reader``); ``examined`` are batches.

    Counters have no history: they are compared in one snapshot, of what was there at the moment in question.
    """
    with snapshot(services) as connection:
        case = _Case(connection, as_of)
        of_templates = case.of_templates()
        miscounted = [each.template_id for each in of_templates if each.finding_class == "reserved_counter_differs"]
        reviews = review_differences(connection, as_of, miscounted)
    found = [*case.strays(), *case.of_batches(), *of_templates, *reviews]
    return Reading(found[: MOST + 1], len(case.batches))


class _Case:
    """All that is read: a row a batch, a template with batches, and a pair of batch and template with coupons."""

    def __init__(self, connection: Connection, as_of: datetime) -> None:
        self.as_of = as_of
        self.batches = connection.execute(_BATCHES).all()
        self.templates = connection.execute(_TEMPLATES, {"as_of": as_of}).all()
        self.issued: Counter[tuple[str, int]] = Counter()
        self.granted: Counter[int] = Counter()
        for row in connection.execute(_GIVEN):
            self.granted[row.template_id] += row.coupons
            if row.source == "batch":
                self.issued[row.batch_no, row.template_id] = row.coupons
        self.holders = {row.template_id: row for row in connection.execute(_HOLDERS)}

    def strays(self) -> list[Difference]:
        """Coupons that say they are of a batch which is not there, or is of another template."""
        of = {(str(batch.batch_id), batch.template_id) for batch in self.batches}
        return [
            Difference(
                finding_class="stray_coupons",
                subject=f"batch {batch_no} template {template_id}",
                evidence={"coupons": count},
                template_id=template_id,
            )
            for (batch_no, template_id), count in sorted(self.issued.items())
            if (batch_no, template_id) not in of
        ]

    def of_batches(self) -> list[Difference]:
        """What a batch's own row contradicts."""
        missing = self._missing()
        strays = self._stray_count()
        found = []
        for batch in self.batches:
            if batch.created_at > self.as_of:
                continue
            # Coupons that a batch lacks and that bear the number of none are the same ones.
            explained = 0 < missing[batch.template_id] == strays[batch.template_id]
            if self._counts_differ(batch, explained):
                found.append(_of_batch("batch_counts_differ", batch, None, **self._counts(batch)))
            elif batch.left_quantity and batch.status not in _HAS_UNITS:
                repair = RepairName.RECOUNT_TEMPLATE
                found.append(_of_batch("reservation_kept", batch, repair, left=batch.left_quantity))
            elif self._is_stuck(batch):
                since = rfc3339(batch.updated_at)
                found.append(_of_batch("batch_stuck", batch, RepairName.WAKE_BATCH, since=since))
        return found

    def of_templates(self) -> list[Difference]:
        """What a template's counters contradict, unless its batches contradict their coupons as much."""
        found = []
        for row in self.templates:
            held = self.holders.get(row.template_id)
            granted = self.granted[row.template_id] + row.archived_granted_quantity
            kept, given = (held.kept, held.given) if held else (0, 0)
            if row.reserved_quantity not in ((held.kept, held.has_left, held.due) if held else (0,)):
                found.append(self._counter("reserved", row, row.reserved_quantity, int(kept)))
            if row.granted_quantity not in (granted, given):
                found.append(self._counter("granted", row, row.granted_quantity, granted))
        return found

    def _counter(self, name: str, row: Any, counter: int, rows: int) -> Difference:
        room = row.total_quantity - row.issued_quantity
        fits = rows <= (room if name == "reserved" else row.issued_quantity + row.restocked_quantity)
        return Difference(
            finding_class=f"{name}_counter_differs",
            subject=f"template {row.template_id} {name}",
            evidence={"counter": counter, "set_aside" if name == "reserved" else "coupons": rows},
            repair=RepairName.RECOUNT_TEMPLATE if fits else None,
            template_id=row.template_id,
        )

    def _counts_differ(self, batch: Any, explained: bool) -> bool:
        issued = self._issued_of(batch)
        left = batch.reserved_quantity - batch.issued_count if batch.status in _HAS_UNITS else batch.left_quantity
        return bool(
            (batch.issued_count != issued and not explained)
            or (batch.records == "kept" and batch.refused_count != batch.refused)
            or batch.issued_count + batch.refused_count != batch.moved
            or batch.audience_count != batch.members
            or not batch.rows_add_up
            or batch.left_quantity != left
        )

    def _counts(self, batch: Any) -> dict[str, Any]:
        return {
            "status": batch.status,
            "issued_count": batch.issued_count,
            "coupons": self._issued_of(batch),
            "refused_count": batch.refused_count,
            "refusals": batch.refused if batch.records == "kept" else None,
            "moved": int(batch.moved),
            "audience_count": batch.audience_count,
            "members": int(batch.members),
            "reserved": batch.reserved_quantity,
            "left": batch.left_quantity,
        }

    def _is_stuck(self, batch: Any) -> bool:
        """A batch of a template that was paused waits; it is not stuck."""
        waits = batch.template_status in _STOPPED
        return batch.status in ("staging", "running") and batch.updated_at <= self.as_of - STUCK and not waits

    def _issued_of(self, batch: Any) -> int:
        """Its coupons: those that are living, and as many archived ones as their counter has."""
        return self.issued[str(batch.batch_id), batch.template_id] + int(batch.archived_count)

    def _missing(self) -> Counter[int]:
        missing: Counter[int] = Counter()
        for batch in self.batches:
            missing[batch.template_id] += batch.issued_count - self._issued_of(batch)
        return missing

    def _stray_count(self) -> Counter[int]:
        strays: Counter[int] = Counter()
        for each in self.strays():
            strays[each.template_id or 0] += each.evidence["coupons"]
        return strays


def _of_batch(finding_class: str, batch: Any, repair: RepairName | None, **evidence: Any) -> Difference:
    return Difference(
        finding_class=finding_class,
        subject=f"batch {batch.batch_id}",
        evidence=evidence,
        repair=repair,
        template_id=batch.template_id,
    )
