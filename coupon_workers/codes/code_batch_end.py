"""The end of a batch of codes: unused codes are worth nothing from then on, and their units go back, once.

That is one change of the batch's row, however many codes it has: an exchange asks the batch.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.batch_control import tell_gate
from coupon_workers.codes.code_batch import ALIVE, CodeBatchStatus, hold_code_batch
from coupon_workers.errors import Conflict
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_END = text(
    """
    WITH ended AS (
        UPDATE code_batch b
           SET status = :status, left_quantity = 0, ended_by = :operator, ended_at = :now, updated_at = :now,
               export = CASE export WHEN 'kept' THEN 'dropped' ELSE export END
          FROM (SELECT code_batch_id, left_quantity FROM code_batch WHERE code_batch_id = :code_batch_id
                   FOR NO KEY UPDATE) AS held
         WHERE b.code_batch_id = held.code_batch_id AND b.status IN ('generating', 'done')
        RETURNING b.code_batch_id, b.template_id, held.left_quantity AS units
    ), given_back AS (
        UPDATE coupon_template t SET reserved_quantity = reserved_quantity - ended.units, version = version + 1,
               updated_at = :now
          FROM ended WHERE t.template_id = ended.template_id AND ended.units > 0
    ), texts AS (
        DELETE FROM code_export_part WHERE code_batch_id IN (SELECT code_batch_id FROM ended)
    )
    SELECT count(*) FROM ended
    """
)


def revoke_code_batch(services: Services, code_batch_id: int, operator: str, reason: str | None = None) -> None:
    """End the batch: unused codes are refused from now on. Coupons that were had for used ones stay.

    ``reason`` goes to the audit log. Asked again it answers the same. Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``,
    ``Conflict`` ``INVALID_STATUS`` for one that has expired, ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        batch = hold_code_batch(connection, code_batch_id)
        if batch["status"] not in (*ALIVE, CodeBatchStatus.REVOKED):
            detail = f"a batch of codes that is {batch['status']} cannot be revoked"
            raise Conflict("INVALID_STATUS", detail, current_status=batch["status"])
        if end_code_batch(connection, code_batch_id, CodeBatchStatus.REVOKED, operator, services.clock()):
            facts = {"status": batch["status"]}, {"status": CodeBatchStatus.REVOKED, "reason": reason}
            subject = f"code_batch:{code_batch_id}"
            record(connection, AuditAction.CODES_REVOKE, subject, before=facts[0], after=facts[1])
    tell_gate(services, batch["template_id"])


def end_code_batch(
    connection: Connection, code_batch_id: int, status: CodeBatchStatus, operator: str, now: datetime
) -> bool:
    """End a living batch and give back what is left of its units; whether it ended now."""
    named = {"code_batch_id": code_batch_id, "status": str(status), "operator": operator, "now": now}
    return bool(connection.execute(_END, named).scalar_one())
