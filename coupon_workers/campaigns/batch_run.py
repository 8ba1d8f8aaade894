"""Running a batch: its start, the steps of its shards by messages, its end (DESIGN 9).

A message is one step of one shard, and sends the next: the steps of all batches take turns in the queue, so that a
small batch is through before a large one that came first. A message whose shard has moved on is dropped; what is lost
with a worker is sent again by the sweep.
"""

from __future__ import annotations

from sqlalchemy import text

from coupon_workers.campaigns.batch import BatchStatus, hold_batch
from coupon_workers.campaigns.batch_control import tell_gate, wake_batch
from coupon_workers.campaigns.gate_count import count_step, forget_steps
from coupon_workers.campaigns.reservation import end_batch, reserve
from coupon_workers.campaigns.shard_pace import CHUNK_BESIDE_CLAIMS, paced_step
from coupon_workers.campaigns.shard_step import CHUNK, issue_chunk
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.pace import claims_come
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import RESERVED
from coupon_workers.templates.template_status import effective_status

log = get_logger(__name__)

_TEMPLATE = text("SELECT * FROM coupon_template WHERE template_id = :template_id")
_THROUGH = text(
    "UPDATE issue_shard SET gate_cursor = cursor, updated_at = :now"
    " WHERE batch_id = :batch_id AND shard = :shard AND gate_cursor < cursor"
)
_LEFT_OVER = text("SELECT count(*) FROM issue_shard WHERE batch_id = :batch_id AND gate_cursor < member_count")
_UNCOUNTED = text(
    """
    SELECT s.shard, s.cursor, t.template_id, t.timezone, t.per_user_daily_limit
      FROM issue_shard s JOIN issue_batch b USING (batch_id) JOIN coupon_template t USING (template_id)
     WHERE s.batch_id = :batch_id AND s.gate_cursor < s.cursor
    """
)

STOPPED = ("paused", "offline", "archived")


def start_batch(services: Services, batch_id: int) -> BatchStatus:
    """Start a batch that is ready, due and approved; its status afterwards. Safe to call at any time.

    It fails when its template is not active, or when there is not enough stock for its policy.
    """
    now = services.clock()
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        waits = batch["needs_approval"] and batch["approved_by"] is None
        if batch["status"] != BatchStatus.READY or waits or (batch["start_at"] or now) > now:
            return BatchStatus(batch["status"])
        template = connection.execute(_TEMPLATE, {"template_id": batch["template_id"]}).mappings().one()
        status = effective_status(dict(template), now)
        problem = f"TEMPLATE_NOT_ACTIVE: the template is {status}" if status != "active" else None
        problem = problem or reserve(services, connection, batch, now)
        if problem is not None:
            end_batch(connection, batch_id, BatchStatus.FAILED, problem, now)
    if problem is not None:
        log.warning("batch failed", batch_id=batch_id, problem=problem)
        return BatchStatus.FAILED
    tell_gate(services, batch["template_id"])
    wake_batch(services, batch_id)
    return BatchStatus.RUNNING


def run_step(services: Services, batch_id: int, shard: int, cursor: int, pace: str = "", *, chunk: int = CHUNK) -> None:
    """One step of a shard, and the message for the next. Raises ``StoreUnavailable``: the sweep sends it again.

    While claims come it is a smaller one, and a step without a place in the line gets one first.
    """
    if claims_come(services):
        chunk = min(chunk, CHUNK_BESIDE_CLAIMS)
        if pace != RESERVED:
            services.post.send(paced_step(services, batch_id, shard, cursor, chunk))
            return
    step = issue_chunk(services, batch_id, shard, cursor, chunk=chunk)
    if step is None:
        return
    if not step.through:
        services.post.send(paced_step(services, batch_id, shard, step.cursor, step.left))
        return
    with transaction(services.engine) as connection:
        connection.execute(_THROUGH, {"batch_id": batch_id, "shard": shard, "now": services.clock()})
    finish_batch(services, batch_id)


def finish_batch(services: Services, batch_id: int) -> bool:
    """End a running batch whose shards are all through; whether it ended now."""
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        if batch["status"] != BatchStatus.RUNNING or connection.scalar(_LEFT_OVER, {"batch_id": batch_id}):
            return False
        changed = end_batch(connection, batch_id, BatchStatus.DONE, None, services.clock())
    if changed:
        tell_gate(services, batch["template_id"])
    try:
        forget_steps(services, batch["template_id"])
    except StoreUnavailable as error:
        log.warning("fields of earlier batches stay until the next preheat", batch_id=batch_id, error=str(error))
    return True


def count_left_over(services: Services, batch_id: int) -> int:
    """Have the gate count what steps that died have not; how many shards that were. For batches that take none now."""
    with transaction(services.engine) as connection:
        shards = connection.execute(_UNCOUNTED, {"batch_id": batch_id}).mappings().all()
    for shard in shards:
        span = (shard["cursor"], shard["cursor"])
        count_step(services, dict(shard), batch_id, shard["shard"], span, ([], services.clock()))
        with transaction(services.engine) as connection:
            named = {"batch_id": batch_id, "shard": shard["shard"], "now": services.clock()}
            connection.execute(_THROUGH, named)
    return len(shards)
