"""What a person decides about a finding: to have it repaired, or to leave it (API.md, Back office)."""

from __future__ import annotations

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_finding
from coupon_workers.reconciliation.kind import FindingState
from coupon_workers.reconciliation.repair import check_open, end_finding, hold_finding, repair_finding
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services


def approve_finding(
    services: Services, finding_id: int, operator: str, comment: str | None, amount_minor: int | None = None
) -> FindingAnswer:
    """Do what the finding proposes. Approved again it is answered as it is.

    ``amount_minor``: what the approver has read. Raises what ``repair_finding`` raises.
    """
    repair_finding(services, finding_id, FindingState.APPROVED, operator, comment, amount_minor)
    return read_finding(services, finding_id)


def ignore_finding(services: Services, finding_id: int, operator: str, comment: str) -> FindingAnswer:
    """Leave the difference as it is: later runs do not open it again while it differs in the same way.

    Raises ``NotFound`` ``FINDING_NOT_FOUND``, ``Conflict`` ``FINDING_CLOSED``, ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        finding = hold_finding(connection, finding_id)
        if finding["state"] != FindingState.IGNORED:
            check_open(finding)
            end_finding(connection, finding_id, FindingState.IGNORED, services.clock(), operator, comment, None)
            record(connection, AuditAction.FINDING_IGNORE, f"finding:{finding_id}", after={"comment": comment})
    return read_finding(services, finding_id)
