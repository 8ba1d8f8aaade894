"""Forgetting runs long done. Findings stay for good: what was repaired, and by whom, is asked for years later."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text

from coupon_workers.runtime.chunked_deletion import delete_in_chunks
from coupon_workers.runtime.services import Services

KEEP = timedelta(days=90)

CHUNK = 100
"""Runs deleted in one transaction, each with its list."""

_FORGET = text("""
    WITH old AS (
        SELECT run_id FROM recon_run WHERE status IN ('done', 'failed') AND run_id = ANY (ARRAY (
            SELECT run_id FROM recon_run WHERE finished_at < :before ORDER BY run_id LIMIT :chunk))
    ), lists AS (
        DELETE FROM recon_run_finding USING old WHERE recon_run_finding.run_id = old.run_id
    )
    DELETE FROM recon_run USING old WHERE recon_run.run_id = old.run_id
""")


def forget_runs(services: Services, now: datetime) -> int:
    """Delete runs that ended ``KEEP`` before ``now``; how many. Safe to run twice, at once or after being broken off.

    Raises ``StoreUnavailable``; the chunks before then are done.
    """
    return delete_in_chunks(services.engine, _FORGET, {"before": now - KEEP}, CHUNK)
