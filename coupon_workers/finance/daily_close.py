"""Closing a business day, and opening it again with a trace (DESIGN 10)."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.operator import SYSTEM, acting_operator
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict
from coupon_workers.finance.business_day import day_span, last_day_over
from coupon_workers.finance.close_reading import DayClose, read_latest, read_whole
from coupon_workers.finance.close_sql import SETUP, freeze_of
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

SCHEDULE = "schedule"
"""Who closes a day when no person does."""

_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended('daily_close:' || CAST(:day AS text), 0))")
_BESIDE = text("SELECT pg_advisory_xact_lock_shared(hashtextextended('daily_close:' || CAST(:day AS text), 0))")

_CLOSE = text(
    "INSERT INTO daily_close (business_date, revision, closed_by, closed_at) VALUES (:day, :revision, :operator, :now)"
)

_REOPEN = text("""
    UPDATE daily_close SET status = 'reopened', reopened_by = :operator, reopened_at = :now, reopen_reason = :reason
     WHERE business_date = :day AND status = 'closed'
""")

log = get_logger(__name__)


def close_day(services: Services, day: date, operator: str) -> DayClose:
    """Freeze the day, unless it is closed: then it is answered as it was closed.

    A day that was reopened is closed anew, with the next revision. Safe to ask twice, also at once. Raises
    ``Conflict`` ``DAY_NOT_OVER`` with ``closable_at``, ``StoreUnavailable``.
    """
    now = services.clock()
    with transaction(services.engine) as connection:
        connection.exec_driver_sql(SETUP)
        connection.execute(_ALONE, {"day": day})
        latest = read_latest(connection, day)
        if latest is None or latest.status != "closed":
            revision = latest.revision + 1 if latest else 1
            _freeze(connection, day, revision, operator, now)
            if acting_operator() is not SYSTEM:
                record(connection, AuditAction.DAY_CLOSE, f"day:{day}", after={"revision": revision})
        return read_whole(connection, day)


def reopen_day(services: Services, day: date, operator: str, reason: str) -> DayClose:
    """Open a closed day again; the closing stays, with who, when and why.

    Raises ``NotFound`` ``DAILY_CLOSE_NOT_FOUND``, ``Conflict`` ``DAY_NOT_CLOSED`` when it is open again already,
    ``StoreUnavailable``.
    """
    named = {"day": day, "operator": operator, "now": services.clock(), "reason": reason}
    with transaction(services.engine) as connection:
        connection.execute(_ALONE, {"day": day})
        moved = connection.execute(_REOPEN, named).rowcount
        whole = read_whole(connection, day)
        if not moved:
            raise Conflict("DAY_NOT_CLOSED", f"{day} was opened again, and has not been closed since")
        facts = {"revision": whole.revision, "reason": reason}
        record(connection, AuditAction.DAY_REOPEN, f"day:{day}", after=facts)
    log.info("day_reopened", day=str(day), revision=whole.revision, by=operator)
    return whole


def close_due_day(services: Services, logical_at: datetime) -> date | None:
    """Close the latest day that is over at ``logical_at``, unless it was ever closed; the day, if it was closed now.

    Of two days that were over since the last run the older one: the next run closes the other. A day that was reopened
    is left to whoever reopened it. Raises ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        day = _due_day(connection, logical_at)
    if day is None:
        return None
    try:
        close_day(services, day, SCHEDULE)
    except Conflict:  # a template further west was published meanwhile: a later run closes the day
        return None
    return day


def _due_day(connection: Connection, now: datetime) -> date | None:
    # Zones may lie 26 hours apart: when the last template of the far west goes, a day is over and the next one with it.
    last = last_day_over(connection, now)
    before, closed = (read_latest(connection, last - timedelta(days=days)) for days in (1, 2))
    if before is None and closed is not None:
        return last - timedelta(days=1)
    return last if read_latest(connection, last) is None else None


def hold_open_day(connection: Connection, day: date) -> date:
    """``day``, or the first one after it that is not closed; nor will it be before this transaction ends."""
    while True:
        connection.execute(_BESIDE, {"day": day})
        latest = read_latest(connection, day)
        if latest is None or latest.status != "closed":
            return day
        day += timedelta(days=1)


def _freeze(connection: Connection, day: date, revision: int, operator: str, now: datetime) -> None:
    span = day_span(connection, day)
    if now < span.closable_at:
        at = rfc3339(span.closable_at)
        raise Conflict("DAY_NOT_OVER", f"{day} can be closed from {at} on", closable_at=at)
    connection.execute(_CLOSE, {"day": day, "revision": revision, "operator": operator, "now": now})
    named = {"day": day, "revision": revision, "begins": span.begins, "ends": span.ends}
    frozen = connection.execute(freeze_of(span.ends, now), named).rowcount
    log.info("day_closed", day=str(day), revision=revision, rows=frozen, by=operator)
