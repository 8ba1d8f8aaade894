"""The log of a webhook's deliveries, and sending one again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.notify.delivery_lease import message_id
from coupon_workers.notify.target import end_pause, webhook_target
from coupon_workers.notify.webhook import read_webhook
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import deliver_messages

log = get_logger(__name__)

_COLUMNS = (
    "delivery_id, event, state, payload, attempts, next_attempt_at, last_status, last_error, occurred_at, created_at,"
    " finished_at"
)

_PAGE = text(f"""
    SELECT {_COLUMNS} FROM delivery
     WHERE webhook_id = :webhook_id AND delivery_id < :before AND (CAST(:state AS text) IS NULL OR state = :state)
     ORDER BY delivery_id DESC LIMIT :limit
""")

_ATTEMPTS = text("""
    SELECT delivery_id, attempt_no, at, elapsed_ms, status, error FROM delivery_attempt
     WHERE delivery_id = ANY (CAST(:ids AS bigint[])) ORDER BY delivery_id, attempt_no
""")

# One that is on its way and in nobody's hand is merely due at once.
_REPLAY = text(f"""
    UPDATE delivery SET state = 'pending', step = 0, next_attempt_at = :now, finished_at = NULL
     WHERE delivery_id = :delivery_id AND webhook_id = :webhook_id
    RETURNING {_COLUMNS}
""")


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt: ``error`` None when the message was taken."""

    attempt_no: int
    at: datetime
    elapsed_ms: int
    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A delivery with its attempts, oldest first. ``next_attempt_at`` None: none is to come."""

    delivery_id: int
    message_id: str
    event: str
    state: str
    data: dict[str, object]
    attempts: int
    next_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    occurred_at: datetime
    created_at: datetime
    finished_at: datetime | None
    log: tuple[AttemptRecord, ...]


def list_deliveries(
    services: Services, webhook_id: int, *, limit: int, before: int | None = None, state: str | None = None
) -> list[DeliveryRecord]:
    """Up to ``limit`` deliveries, newest first, with a number below ``before``.

    Raises ``NotFound`` ``WEBHOOK_NOT_FOUND``, ``StoreUnavailable``.
    """
    key = {"webhook_id": webhook_id, "before": 2**63 - 1 if before is None else before, "state": state, "limit": limit}
    with transaction(services.engine) as connection:
        read_webhook(connection, webhook_id)
        rows = connection.execute(_PAGE, key).all()
        return _records(connection, rows)


def replay_delivery(services: Services, webhook_id: int, delivery_id: int) -> DeliveryRecord:
    """Send it again, under the same message id, with the whole schedule before it.

    Raises ``NotFound`` ``WEBHOOK_NOT_FOUND`` or ``DELIVERY_NOT_FOUND``, ``Conflict`` ``WEBHOOK_DISABLED``,
    ``StoreUnavailable``.
    """
    target = webhook_target(webhook_id)
    with transaction(services.engine) as connection:
        if read_webhook(connection, webhook_id).disabled_at is not None:
            raise Conflict("WEBHOOK_DISABLED", "this webhook has ended")
        key = {"webhook_id": webhook_id, "delivery_id": delivery_id, "now": services.clock()}
        rows = connection.execute(_REPLAY, key).all()
        if not rows:
            raise NotFound("DELIVERY_NOT_FOUND", "this webhook has no such delivery")
        end_pause(connection, target)
        [replayed] = _records(connection, rows)
        facts = {"webhook_id": str(webhook_id), "event": replayed.event}
        record(connection, AuditAction.DELIVERY_REPLAY, f"delivery:{delivery_id}", after=facts)
    try:
        services.post.send(deliver_messages(target))
    except StoreUnavailable as error:
        log.warning("delivery not woken, the next run of the job does", target=target, error=str(error))
    return replayed


def _records(connection: Connection, rows: Any) -> list[DeliveryRecord]:
    attempts: dict[int, list[AttemptRecord]] = {row.delivery_id: [] for row in rows}
    for row in connection.execute(_ATTEMPTS, {"ids": list(attempts)}):
        attempts[row.delivery_id].append(AttemptRecord(row.attempt_no, row.at, row.elapsed_ms, row.status, row.error))
    return [_record(row, attempts[row.delivery_id]) for row in rows]


def _record(row: Row[Any], attempts: list[AttemptRecord]) -> DeliveryRecord:
    return DeliveryRecord(
        delivery_id=row.delivery_id,
        message_id=message_id(row.delivery_id, row.created_at),
        event=row.event,
        state=row.state,
        data=row.payload,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at if row.state == "pending" else None,
        last_status=row.last_status,
        last_error=row.last_error,
        occurred_at=row.occurred_at,
        created_at=row.created_at,
        finished_at=row.finished_at,
        log=tuple(attempts),
    )
