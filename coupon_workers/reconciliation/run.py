"""A reconciliation, from being asked for until its findings are written and the safe ones repaired (DESIGN 10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.operator import SYSTEM, acting_operator
from coupon_workers.audit.record import record
from coupon_workers.errors import InvalidInput, StoreUnavailable
from coupon_workers.finance.business_day import FIRST_DAY, last_day_over
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.reconciliation.order_sql import OVERDUE_DAYS
from coupon_workers.reconciliation.readers import READERS
from coupon_workers.reconciliation.record import record_reading
from coupon_workers.reconciliation.repair import repair_safe_findings
from coupon_workers.reconciliation.run_sweep import BROKEN_OFF
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import run_reconciliation

MOST_ATTEMPTS = 5
"""A run that takes its worker down, or meets a store that is away, as often as this is given up."""

CARRIED = timedelta(days=31)
"""How long a day whose orders have open findings is looked at again, with each scheduled run."""

LOOKED_AGAIN = timedelta(days=OVERDUE_DAYS + 2)
"""A day is looked at again when so long ago: then no order of its last hours waits for its neighbour's statement."""

SCHEDULE = "schedule"
"""Who asks for a run when no person does."""

# Asked at the same moment twice, one waits for the other's row and finds it. Sent again after its process died, a
# request bears its identity again, and a later now.
_ASK = text("""
    INSERT INTO recon_run (run_id, kind, business_date, as_of, asked_by, created_at)
    VALUES (:run_id, :kind, :day, :as_of, :asked_by, :now) ON CONFLICT DO NOTHING
""")
_FIND = text("""
    SELECT run_id FROM recon_run
     WHERE run_id = :run_id
        OR (kind = :kind AND as_of = :as_of AND business_date IS NOT DISTINCT FROM CAST(:day AS date))
     ORDER BY run_id <> :run_id LIMIT 1
""")

# The last attempt may be under way, beside others that were sent: it is given up when it must have ended.
_BEGIN = text("""
    UPDATE recon_run
       SET status = CASE WHEN attempt_count < :most THEN 'running' ELSE 'failed' END,
           attempt_count = attempt_count + 1, started_at = :now,
           finished_at = CASE WHEN attempt_count < :most THEN NULL ELSE CAST(:now AS timestamptz) END,
           reason = CASE WHEN attempt_count < :most THEN NULL ELSE 'given up after ' || attempt_count || ' attempts' END
     WHERE run_id = :run_id AND status IN ('queued', 'running')
       AND (attempt_count < :most OR coalesce(started_at <= :broken_off, TRUE))
    RETURNING kind, as_of, business_date, status
""")

_CARRIED = text("""
    SELECT DISTINCT business_date FROM recon_finding
     WHERE state = 'open' AND kind = 'orders' AND business_date BETWEEN :since AND :until
     ORDER BY business_date
""")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Begun:
    kind: ReconKind
    as_of: datetime
    day: date | None


def ask_run(services: Services, run_id: int, kind: ReconKind, as_of: datetime, day: date | None, asked_by: str) -> int:
    """Write a run down, and have a worker do it; its id. One that is of the same moment is answered, not done again.

    ``day`` is the business day of orders, None for other kinds. Raises ``InvalidInput`` naming ``as_of`` or ``date``,
    ``StoreUnavailable`` of PostgreSQL.
    """
    run_id = write_run(services, run_id, kind, as_of, day, asked_by)
    try:
        services.post.send(run_reconciliation(run_id))
    except StoreUnavailable as error:
        # It is written down, and the sweep sends what nobody has begun.
        log.warning("reconciliation not announced", run_id=run_id, error=str(error))
    return run_id


def write_run(
    services: Services, run_id: int, kind: ReconKind, as_of: datetime, day: date | None, asked_by: str
) -> int:
    """As ``ask_run``, for whoever does the run himself."""
    now = services.clock()
    _check(kind, as_of, day, now)
    named = {"run_id": run_id, "kind": kind, "as_of": as_of, "day": day, "asked_by": asked_by, "now": now}
    with transaction(services.engine) as connection:
        if connection.execute(_ASK, named).rowcount:
            if acting_operator() is not SYSTEM:
                facts = {"kind": kind, "as_of": as_of, "date": day}
                record(connection, AuditAction.RECONCILIATION_ASK, f"reconciliation:{run_id}", after=facts)
            return run_id
        return int(connection.execute(_FIND, named).scalar_one())


def perform_run(services: Services, run_id: int) -> None:
    """Compare, write what differs, repair what is safe. Safe to run again after any crash, and beside itself: what was
    found is written once, and each finding is repaired once.

    Raises ``StoreUnavailable``: the run is left for the next attempt.
    """
    begun = _begin(services, run_id)
    if begun is not None:
        reading = READERS[begun.kind](services, begun.as_of, begun.day)
        crash_point("reconcile.after_reading")
        recorded = record_reading(services, run_id, begun.kind, begun.as_of, begun.day, reading)
        crash_point("reconcile.after_record")
        log.info("reconciled", run_id=run_id, kind=begun.kind, day=str(begun.day or ""), **recorded)
    repair_safe_findings(services, run_id)


def reconcile_due(services: Services, kind: ReconKind, logical_at: datetime) -> None:
    """The scheduled runs of a kind. Of orders: the latest business day that is over, the one on which no order waits
    any more for a statement that does not come, and earlier ones whose findings are still open.

    Raises ``StoreUnavailable``; done again, what was done is not done twice.
    """
    for day in _due_days(services, logical_at) if kind is ReconKind.ORDERS else [None]:
        perform_run(services, write_run(services, services.next_id(0), kind, logical_at, day, SCHEDULE))


def _due_days(services: Services, logical_at: datetime) -> list[date]:
    with transaction(services.engine) as connection:
        latest = last_day_over(connection, logical_at)
        named = {"since": latest - CARRIED, "until": latest - timedelta(days=1)}
        return sorted({*connection.scalars(_CARRIED, named), latest - LOOKED_AGAIN, latest})


def _begin(services: Services, run_id: int) -> _Begun | None:
    """None when it is through, given up, or in the hands of as many as may try."""
    now = services.clock()
    named = {"run_id": run_id, "now": now, "most": MOST_ATTEMPTS, "broken_off": now - BROKEN_OFF}
    with transaction(services.engine) as connection:
        row = connection.execute(_BEGIN, named).one_or_none()
    if row is None:
        return None
    if row.status != "running":
        log.error("reconciliation_given_up", run_id=run_id, kind=row.kind)
        return None
    return _Begun(ReconKind(row.kind), row.as_of, row.business_date)


def _check(kind: ReconKind, as_of: datetime, day: date | None, now: datetime) -> None:
    if (kind is ReconKind.ORDERS) != (day is not None):
        message = "is required: the day of the orders" if day is None else "is for orders only; others have an as_of"
        raise InvalidInput([("date", message)])
    if as_of > now:
        raise InvalidInput([("as_of", "must not lie in the future")])
    if as_of.date() < FIRST_DAY:
        raise InvalidInput([("as_of", f"must not lie before {FIRST_DAY}")])
    if day is not None and day > now.date() + timedelta(days=1):
        raise InvalidInput([("date", "must not lie in the future")])
