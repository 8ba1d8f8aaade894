"""What the database says of a template's units: its counters, and the rows that they count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.coupons.source_sql import COUNTED
from coupon_workers.reconciliation.unit_holders import HOLDERS

ALL_ROWS = f"""
    SELECT template_id, count(*) AS issued,
           sum(crc32(convert_to(user_id, 'UTF8'))) FILTER (WHERE {COUNTED}
               AND template_id = ANY(CAST(:warm AS bigint[]))) AS takers
      FROM coupon WHERE source <> 'transfer' GROUP BY template_id
"""
_SOME_ROWS = f"""
    SELECT template_id, issued, takers
      FROM unnest(CAST(:template_ids AS bigint[])) AS t(template_id)
     CROSS JOIN LATERAL (SELECT count(*) AS issued,
                                sum(crc32(convert_to(user_id, 'UTF8')))
                                FILTER (WHERE {COUNTED}) AS takers
                           FROM coupon c WHERE c.template_id = t.template_id AND c.source <> 'transfer') AS held
"""
_ALL_REJECTED = "SELECT template_id, count(*) AS rejected FROM claim_rejection GROUP BY template_id"
_SOME_REJECTED = """
    SELECT template_id, (SELECT count(*) FROM claim_rejection r WHERE r.template_id = t.template_id) AS rejected
      FROM unnest(CAST(:template_ids AS bigint[])) AS t(template_id)
"""
_IN_REVIEW = text("""
    SELECT template_id, sum(crc32(convert_to(user_id, 'UTF8'))) AS takers FROM risk_review WHERE state = 'held'
     GROUP BY template_id
""")
_OF_SOME = "WHERE t.template_id = ANY(CAST(:template_ids AS bigint[]))"

# ``uncounted``: steps of campaigns that the gate has not been told of, as far as anyone knows.
_COUNTERS = f"""
    SELECT t.template_id, t.created_at, t.version, t.total_quantity, t.issued_quantity, t.rejected_quantity,
           t.reserved_quantity, t.granted_quantity, t.archived_quantity, t.restocked_quantity,
           coalesce(h.kept, 0) AS kept, u.template_id IS NOT NULL AS uncounted
      FROM coupon_template t
      LEFT JOIN (SELECT template_id, sum(kept) AS kept FROM ({HOLDERS}) AS holder GROUP BY template_id) AS h
           USING (template_id)
      LEFT JOIN (SELECT DISTINCT b.template_id FROM issue_shard s JOIN issue_batch b USING (batch_id)
                  WHERE s.gate_cursor < s.cursor) AS u USING (template_id)
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """A template's row. ``archived``: of the issued, whose rows nobody counts. ``restocked``: coupons whose units
    went back, and are not among the issued. ``kept``: units that its open batches
    have set aside. ``uncounted``: the gate may not know of all that they gave."""

    template_id: int
    created_at: datetime | None
    version: int
    total: int
    issued: int
    rejected: int
    reserved: int
    granted: int
    archived: int
    restocked: int
    kept: int
    uncounted: bool


@dataclass(frozen=True, slots=True)
class Books:
    """Counters, and what the rows come to; ``issued`` with archived ones by their counter, without restocked ones.
    ``takers`` sums the CRC-32 of each coupon's user, prizes left out, and of each held claim's: with it two lists of
    users are compared without being listed; None where it was not asked for."""

    counters: Counters
    issued: int
    rejected: int
    takers: int | None


def read_books(connection: Connection, template_ids: Collection[int] | None, warm: Collection[int]) -> list[Books]:
    """The books of the templates named, or of all in one pass over all coupons; with takers of those that are
    ``warm``."""
    named: dict[str, Any] = {"warm": sorted(warm), "template_ids": sorted(template_ids or ())}
    every = template_ids is None
    rows = {row.template_id: row for row in connection.execute(text(ALL_ROWS if every else _SOME_ROWS), named)}
    rejected = {
        row.template_id: row.rejected
        for row in connection.execute(text(_ALL_REJECTED if every else _SOME_REJECTED), named)
    }
    held = {row.template_id: int(row.takers) for row in connection.execute(_IN_REVIEW)}
    counters = {each.template_id: each for each in read_counters(connection, template_ids)}
    books = []
    for template_id in sorted(counters.keys() | rows.keys()):
        of, living = counters.get(template_id) or _no_template(template_id), rows.get(template_id)
        issued = (living.issued if living else 0) + of.archived - of.restocked
        takers = (int(living.takers or 0) if living else 0) + held.get(template_id, 0)
        books.append(Books(of, issued, rejected.get(template_id, 0), takers))
    return books


def read_counters(connection: Connection, template_ids: Collection[int] | None) -> list[Counters]:
    """The counters of the templates named, or of all."""
    statement = _COUNTERS if template_ids is None else _COUNTERS + _OF_SOME
    named = {} if template_ids is None else {"template_ids": sorted(template_ids)}
    return [
        Counters(
            row.template_id,
            row.created_at,
            row.version,
            row.total_quantity,
            row.issued_quantity,
            row.rejected_quantity,
            row.reserved_quantity,
            row.granted_quantity,
            row.archived_quantity,
            row.restocked_quantity,
            int(row.kept),
            row.uncounted,
        )
        for row in connection.execute(text(statement), named)
    ]


def _no_template(template_id: int) -> Counters:
    """Coupons of a template that there is not: none may be issued of it."""
    return Counters(template_id, None, 0, 0, 0, 0, 0, 0, 0, 0, 0, False)
