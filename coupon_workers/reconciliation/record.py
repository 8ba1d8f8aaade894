"""Writing down what a run found: new findings, those known before, and those that are gone."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date, datetime

from sqlalchemy import text

from coupon_workers.reconciliation.difference import MOST, Difference, Reading
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

STATEMENT_TIMEOUT_MS = 60_000
"""Ten thousand findings take seconds."""

_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended('reconciliation:' || CAST(:kind AS text), 0))")

# Of an open finding the latest moment counts: a run as of an earlier one lists it, and leaves it as it is. One that a
# person has ignored is not opened again as long as it differs in the same way. What differs so as of a moment before
# its finding was repaired, or before a later run did not find it, is that finding, and news to nobody: the run may have
# been under way beside another one, or beside a person. A day's findings are its own: what two statements say of an
# order is two, and what one day no longer finds ends nothing of the other's.
_RECORD = text("""
    WITH found AS MATERIALIZED (
        -- In a store that is broken all over a reader may come upon a subject twice.
        SELECT DISTINCT ON (finding_class, subject) * FROM jsonb_to_recordset(CAST(:differences AS jsonb))
            AS d(finding_class text, subject text, evidence jsonb, repair text, amount_minor bigint, currency text,
                 template_id bigint, user_id text, order_no text, coupon_id bigint)
         ORDER BY finding_class, subject
    ), known AS MATERIALIZED (
        SELECT d.finding_class, d.subject, last.finding_id
          FROM found d
         CROSS JOIN LATERAL (
            SELECT finding_id FROM recon_finding f
             WHERE f.kind = :kind AND f.finding_class = d.finding_class AND f.subject = d.subject
               AND f.business_date IS NOT DISTINCT FROM CAST(:day AS date)
               AND (f.state = 'open' OR (f.evidence = d.evidence AND CASE f.state
                    WHEN 'ignored' THEN TRUE
                    WHEN 'resolved' THEN EXISTS (
                        SELECT FROM recon_run r
                         WHERE r.kind = :kind AND r.business_date IS NOT DISTINCT FROM f.business_date
                           AND r.as_of > :as_of AND r.finished_at = f.closed_at)
                    ELSE f.closed_at > :as_of END))
             ORDER BY finding_id DESC LIMIT 1
         ) AS last
    ), seen AS (
        UPDATE recon_finding f
           SET last_run_id = :run_id, seen_count = f.seen_count + 1, seen_as_of = :as_of, evidence = d.evidence,
               repair = d.repair, amount_minor = d.amount_minor, currency = d.currency
          FROM known JOIN found d USING (finding_class, subject)
         WHERE f.finding_id = known.finding_id AND f.state = 'open' AND f.seen_as_of <= :as_of
    ), opened AS (
        INSERT INTO recon_finding (kind, finding_class, subject, business_date, template_id, user_id, order_no,
                                   coupon_id, evidence, amount_minor, currency, repair, first_run_id, last_run_id,
                                   seen_as_of, opened_at)
        SELECT :kind, finding_class, subject, :day, template_id, user_id, order_no, coupon_id, evidence, amount_minor,
               currency, repair, :run_id, :run_id, :as_of, :now
          FROM found d WHERE NOT EXISTS (SELECT FROM known WHERE (known.finding_class, known.subject)
                                                                = (d.finding_class, d.subject))
         ORDER BY finding_class, subject
        RETURNING *
    ), listed AS (
        INSERT INTO recon_run_finding (run_id, finding_id)
        SELECT :run_id, finding_id FROM known UNION ALL SELECT :run_id, finding_id FROM opened
    ), told AS (
        INSERT INTO outbox (event, user_id, template_id, coupon_id, detail, created_at)
        SELECT 'finding.opened', '', coalesce(template_id, 0), finding_id,
               jsonb_strip_nulls(jsonb_build_object(
                   'finding_id', CAST(finding_id AS text), 'kind', kind, 'class', finding_class, 'subject', subject,
                   'date', business_date, 'amount', amount_minor, 'currency', currency, 'repair', repair)),
               :now
          FROM opened
    ), resolved AS (
        UPDATE recon_finding f SET state = 'resolved', closed_at = :now
         WHERE :whole AND f.state = 'open' AND f.kind = :kind AND f.seen_as_of <= :as_of
           AND f.business_date IS NOT DISTINCT FROM CAST(:day AS date)
           AND f.subject <> ALL (CAST(:unjudged AS text[]))
           AND NOT EXISTS (SELECT FROM known WHERE known.finding_id = f.finding_id)
        RETURNING 1
    )
    UPDATE recon_run
       SET status = 'done', finished_at = :now, examined_count = :examined, truncated = NOT :whole,
           found_count = (SELECT count(*) FROM found), opened_count = (SELECT count(*) FROM opened),
           resolved_count = (SELECT count(*) FROM resolved)
     WHERE run_id = :run_id
    RETURNING found_count AS found, opened_count AS opened, resolved_count AS resolved
""")

_STANDS = text("SELECT status FROM recon_run WHERE run_id = :run_id FOR UPDATE")


def record_reading(
    services: Services, run_id: int, kind: ReconKind, as_of: datetime, day: date | None, reading: Reading
) -> dict[str, int]:
    """Write a reading's findings and end its run, in one transaction; how many were found, opened and resolved.

    Nothing is written when the run has ended already. Where a reading is truncated nothing is taken for gone. Raises
    ``StoreUnavailable``.
    """
    named = {
        "run_id": run_id,
        "kind": kind,
        "day": day,
        "as_of": as_of,
        "now": services.clock(),
        "differences": json.dumps([_columns(each) for each in reading.differences[:MOST]]),
        "unjudged": sorted(reading.unjudged),
        "examined": reading.examined,
        "whole": not reading.truncated,
    }
    with transaction(services.engine) as connection:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}")
        connection.execute(_ALONE, {"kind": kind})
        if connection.scalar(_STANDS, {"run_id": run_id}) != "running":
            return {}
        return dict(connection.execute(_RECORD, named).mappings().one())


def _columns(difference: Difference) -> dict[str, object]:
    return asdict(difference)
