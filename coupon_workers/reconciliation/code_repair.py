"""Waking a batch of codes that has stopped moving, or should have ended (DESIGN 10, 11)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.codes.code_batch import CodeBatchStatus
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import generate_codes, sweep_codes

_STATUS = text("SELECT status FROM code_batch WHERE code_batch_id = :code_batch_id")


def wake_codes(
    connection: Connection, services: Services, finding: Mapping[str, Any], now: datetime, operator: str
) -> dict[str, Any]:
    """Send the batch's message, or the sweep's, again: one that finds its work done does nothing.

    Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``, ``Conflict`` ``INVALID_STATUS`` when it has ended.
    """
    code_batch_id = int(finding["subject"].split()[2])
    status = connection.scalar(_STATUS, {"code_batch_id": code_batch_id})
    if status is None:
        raise NotFound("CODE_BATCH_NOT_FOUND", "there is no such batch of codes")
    if finding["finding_class"] == "codes_uncounted" or status == CodeBatchStatus.DONE:
        services.post.send(sweep_codes())
        return {"sent": "sweep_codes"}
    if status != CodeBatchStatus.GENERATING:
        raise Conflict("INVALID_STATUS", f"a batch of codes that is {status} does not move", current_status=status)
    services.post.send(generate_codes(code_batch_id))
    services.post.send(sweep_codes())
    return {"sent": "generate_codes"}
