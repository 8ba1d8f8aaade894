"""Waking a batch that has stopped moving (DESIGN 9, 10)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.campaigns.batch import BatchStatus
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import issue_shard, stage_batch, sweep_batches

_STATUS = text("SELECT status FROM issue_batch WHERE batch_id = :batch_id")
_UNFINISHED = text(
    "SELECT shard, cursor FROM issue_shard WHERE batch_id = :batch_id AND gate_cursor < member_count ORDER BY shard"
)


def wake_batch(
    connection: Connection, services: Services, finding: Mapping[str, Any], now: datetime, operator: str
) -> dict[str, Any]:
    """Send the batch's messages again: one that finds its work done does nothing.

    Raises ``NotFound`` ``BATCH_NOT_FOUND``, ``Conflict`` ``INVALID_STATUS`` when it is neither staged nor running.
    """
    batch_id = int(finding["subject"].split()[1])
    status = connection.scalar(_STATUS, {"batch_id": batch_id})
    if status is None:
        raise NotFound("BATCH_NOT_FOUND", "there is no such batch")
    if status == BatchStatus.STAGING:
        services.post.send(stage_batch(batch_id))
        return {"sent": "stage_batch"}
    if status != BatchStatus.RUNNING:
        raise Conflict("INVALID_STATUS", f"a batch that is {status} does not move", current_status=status)
    shards = connection.execute(_UNFINISHED, {"batch_id": batch_id}).all()
    for row in shards:
        services.post.send(issue_shard(batch_id, row.shard, row.cursor))
    services.post.send(sweep_batches())
    return {"sent": "issue_shard", "shards": len(shards)}
