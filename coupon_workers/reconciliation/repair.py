"""Repairing a finding: once, with a trace, in the transaction that ends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.orders.order_desk import in_order_transaction
from coupon_workers.reconciliation.kind import FindingState
from coupon_workers.reconciliation.money_repair import book_amount, redeem_order, refund_order
from coupon_workers.reconciliation.repair_name import AUTOMATIC, RepairName
from coupon_workers.reconciliation.safe_repair import SAFE_REPAIRS, SafeRepair
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

Row = Mapping[str, Any]
"""A row of ``recon_finding``."""

REPAIRS: dict[RepairName, SafeRepair] = {
    **SAFE_REPAIRS,
    RepairName.REDEEM_ORDER: redeem_order,
    RepairName.REFUND_ORDER: refund_order,
    RepairName.BOOK_ADJUSTMENT: book_amount,
}

OPERATOR = "reconciliation"
"""Who repairs what is safe."""

_HOLD = text("SELECT * FROM recon_finding WHERE finding_id = :finding_id FOR UPDATE")

_END = text("""
    UPDATE recon_finding
       SET state = :state, closed_at = :now, decided_by = :operator, comment = :comment,
           outcome = CAST(:outcome AS jsonb)
     WHERE finding_id = :finding_id AND state = 'open'
""")

_REFUSED = text("""
    UPDATE recon_finding SET outcome = CAST(:outcome AS jsonb) WHERE finding_id = :finding_id AND state = 'open'
""")

WAITS_FOR_REPAIR = """
    f.state = 'open' AND f.repair = ANY (CAST(:automatic AS text[]))
       AND NOT EXISTS (
            SELECT FROM recon_finding before
             WHERE before.kind = f.kind AND before.finding_class = f.finding_class AND before.subject = f.subject
               AND before.finding_id < f.finding_id AND before.state = 'repaired' AND before.evidence = f.evidence)"""
"""Whether a finding ``f`` is to be repaired by itself. What has been repaired before and differs again in the same way
was not mended: it waits for a person."""

_SAFE = text(f"""
    SELECT finding_id FROM recon_run_finding r JOIN recon_finding f USING (finding_id)
     WHERE r.run_id = :run_id AND {WAITS_FOR_REPAIR}
     ORDER BY finding_id
""")

log = get_logger(__name__)


def repair_safe_findings(services: Services, run_id: int) -> int:
    """Repair what a run found and what is safe; how many. One that is refused stays open, and says why.

    Raises ``StoreUnavailable``: the others are left for the next attempt.
    """
    with transaction(services.engine) as connection:
        named = {"run_id": run_id, "automatic": sorted(AUTOMATIC)}
        safe = [row.finding_id for row in connection.execute(_SAFE, named)]
    return sum(_repair_safely(services, finding_id) for finding_id in safe)


def repair_finding(
    services: Services,
    finding_id: int,
    state: FindingState,
    operator: str,
    comment: str | None = None,
    amount_minor: int | None = None,
) -> None:
    """Do what a finding proposes, and end it in ``state``. One that has ended so already is left as it is.

    ``amount_minor`` is what the caller takes to be at stake, if he says so. Raises ``NotFound``
    ``FINDING_NOT_FOUND``; ``Conflict`` ``FINDING_CLOSED`` with its ``state``, ``NO_REPAIR`` when it proposes nothing,
    ``FINDING_OUTDATED`` when another amount is at stake by now, and what the repair raises; ``StoreUnavailable``.
    Nothing has changed then.
    """

    def work(connection: Connection, now: datetime) -> None:
        finding = hold_finding(connection, finding_id)
        if finding["state"] == state:
            return
        check_open(finding)
        if finding["repair"] is None:
            raise Conflict("NO_REPAIR", "nothing is proposed for it: mend it by hand, then ignore it")
        if amount_minor is not None and amount_minor != finding["amount_minor"]:
            raise Conflict("FINDING_OUTDATED", "another amount is at stake by now", amount=finding["amount_minor"])
        try:
            outcome = REPAIRS[RepairName(finding["repair"])](connection, services, finding, now, operator)
        except NotFound as error:  # the finding is there; what it speaks of is not
            raise Conflict(error.code, str(error)) from error
        end_finding(connection, finding_id, state, now, operator, comment, outcome)
        if state is FindingState.APPROVED:
            facts = {"repair": finding["repair"], "outcome": outcome, "comment": comment}
            record(connection, AuditAction.FINDING_APPROVE, f"finding:{finding_id}", after=facts)
        crash_point("repair.before_commit")

    user_id = _user_of(services, finding_id)
    if user_id is None:
        with transaction(services.engine) as connection:
            work(connection, services.clock())
    else:
        in_order_transaction(services, user_id, work)
    log.info("finding_repaired", finding_id=finding_id, state=state, by=operator)


def hold_finding(connection: Connection, finding_id: int) -> Row:
    """The finding, held until the transaction ends. Raises ``NotFound`` ``FINDING_NOT_FOUND``."""
    row = connection.execute(_HOLD, {"finding_id": finding_id}).mappings().one_or_none()
    if row is None:
        raise NotFound("FINDING_NOT_FOUND", "there is no such finding")
    return dict(row)


def check_open(finding: Row) -> None:
    """Raises ``Conflict`` ``FINDING_CLOSED``."""
    if finding["state"] != FindingState.OPEN:
        raise Conflict("FINDING_CLOSED", f"the finding is {finding['state']}", state=finding["state"])


def end_finding(
    connection: Connection,
    finding_id: int,
    state: FindingState,
    now: datetime,
    operator: str,
    comment: str | None,
    outcome: dict[str, Any] | None,
) -> None:
    """End an open finding that this transaction holds."""
    named = {
        "finding_id": finding_id,
        "state": state,
        "now": now,
        "operator": operator,
        "comment": comment,
        "outcome": None if outcome is None else json.dumps(outcome),
    }
    connection.execute(_END, named)


def _repair_safely(services: Services, finding_id: int) -> bool:
    """Whether it was repaired. One finding's trouble must not keep the others from being repaired."""
    try:
        repair_finding(services, finding_id, FindingState.REPAIRED, OPERATOR)
    except Conflict as error:
        _say_why_not(services, finding_id, {"refused": error.code, "detail": str(error)})
        return False
    except StoreUnavailable:
        raise
    except Exception:
        # Said, so that the sweep does not send for it every minute: the next run finds it, and tries again.
        log.exception("finding_not_repaired", finding_id=finding_id)
        _say_why_not(services, finding_id, {"failed": "see the log: finding_not_repaired"})
        return False
    return True


def _say_why_not(services: Services, finding_id: int, outcome: dict[str, str]) -> None:
    with transaction(services.engine) as connection:
        connection.execute(_REFUSED, {"finding_id": finding_id, "outcome": json.dumps(outcome)})


def _user_of(services: Services, finding_id: int) -> str | None:
    with transaction(services.engine) as connection:
        found: str | None = connection.scalar(
            text("SELECT user_id FROM recon_finding WHERE finding_id = :finding_id"), {"finding_id": finding_id}
        )
        return found
