"""Claims held for review: units that are counted otherwise, and deadlines that nobody kept (docs/risk.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.clock import rfc3339

LATE = timedelta(minutes=15)
"""The sweep of risk control rejects within seconds what is overdue."""

_MISCOUNTED = text("""
    SELECT t.template_id, t.held_quantity, t.reserved_quantity, coalesce(r.held, 0) AS held
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, count(*) AS held FROM risk_review WHERE state = 'held'
                  GROUP BY template_id) AS r USING (template_id)
     WHERE t.created_at <= :as_of AND t.held_quantity <> coalesce(r.held, 0)
     ORDER BY t.template_id
""")
_OVERDUE = text("""
    SELECT template_id, count(*) AS reviews, min(deadline_at) AS since FROM risk_review
     WHERE state = 'held' AND deadline_at <= :before GROUP BY template_id ORDER BY template_id
""")


def review_differences(connection: Connection, as_of: datetime, explained: Collection[int | None]) -> list[Difference]:
    """Of each template the counter of its held claims, unless that of all units set aside is wrong, which mends both
    (``explained``); and held claims past their deadline."""
    return [*_miscounted(connection, as_of, explained), *_overdue(connection, as_of)]


def _miscounted(connection: Connection, as_of: datetime, explained: Collection[int | None]) -> Iterator[Difference]:
    for row in connection.execute(_MISCOUNTED, {"as_of": as_of}):
        if row.template_id not in explained:
            repair = RepairName.RECOUNT_TEMPLATE if row.held <= row.reserved_quantity else None
            evidence = {"counter": row.held_quantity, "held": row.held}
            yield _difference("held_counter_differs", row, "held", repair, evidence)


def _overdue(connection: Connection, as_of: datetime) -> Iterator[Difference]:
    for row in connection.execute(_OVERDUE, {"before": as_of - LATE}):
        evidence = {"reviews": row.reviews, "since": rfc3339(row.since)}
        yield _difference("review_overdue", row, "reviews", RepairName.SWEEP_RISK, evidence)


def _difference(
    finding_class: str, row: Any, part: str, repair: RepairName | None, evidence: dict[str, Any]
) -> Difference:
    return Difference(
        finding_class=finding_class,
        subject=f"template {row.template_id} {part}",
        evidence=evidence,
        repair=repair,
        template_id=row.template_id,
    )
