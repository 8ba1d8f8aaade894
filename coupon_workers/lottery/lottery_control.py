"""What an operator does with a lottery: approve, pause, resume, end, at any moment.

Each is one change of the lottery's row, brought to its gate with the row's new version. All raise ``NotFound``
``LOTTERY_NOT_FOUND``, ``Conflict`` ``INVALID_STATUS``, and ``StoreUnavailable``. Asked again they answer the same.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.lottery.lottery import LotteryStatus, Row, hold_lottery, status_now, wrong_status
from coupon_workers.lottery.lottery_end import close_lottery, mark_ending
from coupon_workers.lottery.lottery_rules import tell_gate
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

_MOVE = text(
    "UPDATE lottery SET status = :status, approved_by = coalesce(:approved_by, approved_by), version = version + 1,"
    " updated_at = :now WHERE lottery_id = :lottery_id"
)
_RUNNING = frozenset({LotteryStatus.SCHEDULED, LotteryStatus.ACTIVE})


def approve_lottery(services: Services, lottery_id: int, operator: str) -> None:
    """Open a lottery that needs a second person. Raises ``Conflict`` ``OWN_LOTTERY`` for whoever made it."""
    with transaction(services.engine) as connection:
        lottery, now = hold_lottery(connection, lottery_id), services.clock()
        if lottery["approved_by"] is None:
            if status_now(lottery, now) is not LotteryStatus.PENDING_APPROVAL:
                raise wrong_status(lottery, now, "is not approved: it does not wait for that")
            if lottery["created_by"] == operator:
                raise Conflict("OWN_LOTTERY", "a lottery is approved by another key than the one that made it")
            _move(connection, lottery, "open", AuditAction.LOTTERY_APPROVE, now, approved_by=operator)
    tell_gate(services, lottery_id)


def pause_lottery(services: Services, lottery_id: int) -> None:
    """Nobody draws until it is resumed. Draws that were accepted are settled."""
    with transaction(services.engine) as connection:
        lottery, now = hold_lottery(connection, lottery_id), services.clock()
        status = status_now(lottery, now)
        if status is not LotteryStatus.PAUSED:
            if status not in _RUNNING:
                raise wrong_status(lottery, now, "cannot be paused")
            _move(connection, lottery, "paused", AuditAction.LOTTERY_PAUSE, now)
    tell_gate(services, lottery_id)


def resume_lottery(services: Services, lottery_id: int) -> None:
    """Draws are accepted again."""
    with transaction(services.engine) as connection:
        lottery, now = hold_lottery(connection, lottery_id), services.clock()
        status = status_now(lottery, now)
        if status not in _RUNNING:
            if status is not LotteryStatus.PAUSED:
                raise wrong_status(lottery, now, "cannot be resumed")
            _move(connection, lottery, "open", AuditAction.LOTTERY_RESUME, now)
    tell_gate(services, lottery_id)


def end_lottery(services: Services, lottery_id: int, operator: str) -> None:
    """Nobody draws any more. What is left goes back when the last draw is settled: at once, or by the sweep."""
    with transaction(services.engine) as connection:
        lottery, now = hold_lottery(connection, lottery_id), services.clock()
        if mark_ending(connection, lottery_id, operator, now):
            facts = {"status": status_now(lottery, now).value}, {"status": LotteryStatus.ENDING.value}
            record(connection, AuditAction.LOTTERY_END, f"lottery:{lottery_id}", before=facts[0], after=facts[1])
    try:
        close_lottery(services, lottery_id)
    except StoreUnavailable as error:
        log.warning("a lottery is closed by the sweep", lottery_id=lottery_id, error=str(error))


def _move(
    connection: Connection,
    lottery: Row,
    status: str,
    action: AuditAction,
    now: datetime,
    *,
    approved_by: str | None = None,
) -> None:
    lottery_id = lottery["lottery_id"]
    named = {"lottery_id": lottery_id, "status": status, "approved_by": approved_by, "now": now}
    connection.execute(_MOVE, named)
    after = status_now({**lottery, "status": status}, now).value
    facts = {"status": status_now(lottery, now).value}, {"status": after}
    record(connection, action, f"lottery:{lottery_id}", before=facts[0], after=facts[1])
