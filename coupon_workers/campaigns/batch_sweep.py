"""The sweep over open batches: what is due starts, what lost its message goes on, what was cancelled is counted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from coupon_workers.campaigns.batch import BatchStatus
from coupon_workers.campaigns.batch_run import count_left_over, finish_batch, start_batch
from coupon_workers.campaigns.shard_pace import paced_step
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.pace import Lane, line_ms
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import stage_batch

log = get_logger(__name__)

FORGOTTEN = timedelta(seconds=15)
"""A shard or a staging that has not moved for so long has lost its message, or waits in a long queue: a message more
does no harm, as only one of two finds the cursor where it was."""

AT_ONCE = 200

# Batches that wait for their day, for approval or for their template may be many, and must not keep others from being
# looked after; nor must those that run, and go on by themselves.
_OPEN = text(
    "SELECT batch_id, status, updated_at FROM issue_batch b WHERE status = 'staging'"
    "    OR (status = 'ready' AND (start_at IS NULL OR start_at <= :now)"
    "        AND (approved_by IS NOT NULL OR NOT needs_approval))"
    "    OR (status = 'running' AND NOT EXISTS"
    "        (SELECT FROM coupon_template t WHERE t.template_id = b.template_id AND t.status = 'paused'))"
    " ORDER BY status = 'running', batch_id LIMIT :most"
)
# Nothing brings such a template back: its batches wait for somebody to cancel them, and take no turns meanwhile.
_PAUSE_STOPPED = text(
    "UPDATE issue_batch b SET status = 'paused', reason = 'the template is ' || t.status, updated_at = :now"
    " FROM coupon_template t WHERE b.status = 'running' AND t.template_id = b.template_id"
    "   AND t.status IN ('offline', 'archived')"
)
_LATE = text(
    "SELECT shard, cursor, member_count FROM issue_shard"
    " WHERE batch_id = :batch_id AND gate_cursor < member_count AND updated_at < :before ORDER BY shard"
)
_STOPPED_UNCOUNTED = text(
    "SELECT DISTINCT b.batch_id FROM issue_batch b JOIN issue_shard s USING (batch_id)"
    " WHERE b.status IN ('paused', 'cancelled') AND b.updated_at BETWEEN :since AND :before"
    "   AND s.gate_cursor < s.cursor LIMIT :most"
)
LATELY = timedelta(days=1)


def sweep_batches(services: Services) -> dict[str, int]:
    """One pass over open batches. Returns how many were ``staged``, ``started``, ``woken`` shards, ``finished`` and
    ``counted``. Raises ``StoreUnavailable``."""
    done = dict.fromkeys(("staged", "started", "woken", "finished", "counted"), 0)
    now = services.clock()
    with transaction(services.engine) as connection:
        connection.execute(_PAUSE_STOPPED, {"now": now})
        batches = connection.execute(_OPEN, {"most": AT_ONCE, "now": now}).all()
    for batch in batches:
        try:
            _look_after(services, batch, now, done)
        except StoreUnavailable:
            raise
        except Exception:
            # A batch whose books contradict one another must not keep the others waiting.
            log.exception("batch_not_swept", batch_id=batch.batch_id)
    done["counted"] = _count_stopped(services)
    return done


def _look_after(services: Services, batch: Any, now: datetime, done: dict[str, int]) -> None:
    if batch.status == BatchStatus.STAGING and batch.updated_at < now - FORGOTTEN:
        services.post.send(stage_batch(batch.batch_id))
        done["staged"] += 1
    elif batch.status == BatchStatus.READY:
        done["started"] += start_batch(services, batch.batch_id) is BatchStatus.RUNNING
    elif batch.status == BatchStatus.RUNNING:
        done["finished"] += finish_batch(services, batch.batch_id)
        done["woken"] += _wake_late(services, batch.batch_id)


def _wake_late(services: Services, batch_id: int) -> int:
    # Steps that keep to a pace are not late while the line is as long.
    before = services.clock() - FORGOTTEN - timedelta(milliseconds=line_ms(services.redis, Lane.CAMPAIGN))
    with transaction(services.engine) as connection:
        late = connection.execute(_LATE, {"batch_id": batch_id, "before": before}).all()
    for row in late:
        services.post.send(paced_step(services, batch_id, row.shard, row.cursor, row.member_count - row.cursor))
    return len(late)


def _count_stopped(services: Services) -> int:
    """Paused and cancelled batches take no more steps: what their last ones left uncounted is counted here."""
    now = services.clock()
    named = {"since": now - LATELY, "before": now - FORGOTTEN, "most": AT_ONCE}
    with transaction(services.engine) as connection:
        batches = [row.batch_id for row in connection.execute(_STOPPED_UNCOUNTED, named)]
    counted = 0
    for batch_id in batches:
        try:
            counted += count_left_over(services, batch_id)
        except StoreUnavailable as error:
            log.warning("a stopped batch is left uncounted", batch_id=batch_id, error=str(error))
    return counted
