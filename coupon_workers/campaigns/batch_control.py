"""What an operator does with a batch that is under way: approve, pause, resume, cancel, at any moment.

Each is one change of the batch's row, which every step of it changes too: what an answer says has stopped has stopped.
All raise ``NotFound`` ``BATCH_NOT_FOUND``, ``Conflict`` ``INVALID_STATUS``, and ``StoreUnavailable``. Asked again they
answer the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.batch import OPEN, BatchStatus, Row, hold_batch, read_batch, wrong_status
from coupon_workers.campaigns.reservation import end_batch
from coupon_workers.campaigns.shard_pace import paced_step
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Task, sweep_batches

log = get_logger(__name__)

_MOVE = text("UPDATE issue_batch SET status = :status, reason = :reason, updated_at = :now WHERE batch_id = :batch_id")
_APPROVE = text("UPDATE issue_batch SET approved_by = :operator, updated_at = :now WHERE batch_id = :batch_id")
_UNFINISHED = text(
    "SELECT shard, cursor, member_count FROM issue_shard"
    " WHERE batch_id = :batch_id AND gate_cursor < member_count ORDER BY shard"
)


def approve_batch(services: Services, batch_id: int, operator: str) -> Row:
    """Let a batch start that needs a second person. Raises ``Conflict`` ``OWN_BATCH`` for whoever made it."""
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        if batch["approved_by"] is None:
            if batch["status"] != BatchStatus.READY or not batch["needs_approval"]:
                raise wrong_status(batch, "cannot be approved" if batch["needs_approval"] else "needs no approval")
            if batch["created_by"] == operator:
                raise Conflict("OWN_BATCH", "a batch is approved by another key than the one that made it")
            named = {"batch_id": batch_id, "operator": operator, "now": services.clock()}
            connection.execute(_APPROVE, named)
            record(connection, AuditAction.BATCH_APPROVE, f"batch:{batch_id}", after={"users": batch["audience_count"]})
    _send(services, [sweep_batches()])
    return _read(services, batch_id)


def pause_batch(services: Services, batch_id: int, operator: str) -> Row:
    """Stop issuing until it is resumed. No step commits after this has returned."""
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        if batch["status"] not in (BatchStatus.READY, BatchStatus.RUNNING, BatchStatus.PAUSED):
            raise wrong_status(batch, "cannot be paused")
        if batch["status"] != BatchStatus.PAUSED:
            named = {"batch_id": batch_id, "status": "paused", "reason": f"paused by {operator}"}
            connection.execute(_MOVE, named | {"now": services.clock()})
            _record_move(connection, AuditAction.BATCH_PAUSE, batch, BatchStatus.PAUSED)
    return _read(services, batch_id)


def resume_batch(services: Services, batch_id: int, operator: str) -> Row:
    """Go on where it was paused."""
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        if batch["status"] not in (BatchStatus.PAUSED, BatchStatus.RUNNING):
            raise wrong_status(batch, "cannot be resumed")
        if batch["status"] == BatchStatus.PAUSED:
            status = BatchStatus.READY if batch["started_at"] is None else BatchStatus.RUNNING
            named = {"batch_id": batch_id, "status": str(status), "reason": None, "now": services.clock()}
            connection.execute(_MOVE, named)
            _record_move(connection, AuditAction.BATCH_RESUME, batch, status)
    wake_batch(services, batch_id)
    log.info("batch resumed", batch_id=batch_id, operator=operator)
    return _read(services, batch_id)


def cancel_batch(services: Services, batch_id: int, operator: str) -> Row:
    """End it for good. What was issued stays; what is left of its units goes back."""
    with transaction(services.engine) as connection:
        batch = hold_batch(connection, batch_id)
        if batch["status"] not in (*OPEN, BatchStatus.CANCELLED):
            raise wrong_status(batch, "cannot be cancelled")
        end_batch(connection, batch_id, BatchStatus.CANCELLED, f"cancelled by {operator}", services.clock())
        if batch["status"] != BatchStatus.CANCELLED:
            _record_move(connection, AuditAction.BATCH_CANCEL, batch, BatchStatus.CANCELLED)
    tell_gate(services, batch["template_id"])
    return _read(services, batch_id)


def wake_batch(services: Services, batch_id: int) -> None:
    """Send a message for each shard that is not through; the sweep does it again when they are lost."""
    with transaction(services.engine) as connection:
        shards = connection.execute(_UNFINISHED, {"batch_id": batch_id}).all()
    steps = (paced_step(services, batch_id, row.shard, row.cursor, row.member_count - row.cursor) for row in shards)
    _send(services, chain([sweep_batches()], steps))


def tell_gate(services: Services, template_id: int) -> None:
    """Bring the template's new books to the gate; the sweep of the gates does it if Redis is away."""
    try:
        sync_template(services, template_id)
    except StoreUnavailable as error:
        log.warning("the gate learns of a reservation later", template_id=template_id, error=str(error))


def _record_move(connection: Connection, action: AuditAction, batch: Row, status: BatchStatus) -> None:
    facts = {"status": batch["status"]}, {"status": status}
    record(connection, action, f"batch:{batch['batch_id']}", before=facts[0], after=facts[1])


def _send(services: Services, tasks: Iterable[Task]) -> None:
    try:
        for task in tasks:
            services.post.send(task)
    except StoreUnavailable as error:
        log.warning("a batch is left to the sweep", error=str(error))


def _read(services: Services, batch_id: int) -> dict[str, Any]:
    with transaction(services.engine) as connection:
        return dict(read_batch(connection, batch_id))
