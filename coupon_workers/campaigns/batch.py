"""A campaign batch: a template given to an audience (DESIGN 9). Its states, and its row."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.errors import Conflict, NotFound

Row = Mapping[str, Any]


class BatchStatus(StrEnum):
    """Where a batch is. ``done``, ``cancelled`` and ``failed`` are final."""

    STAGING = "staging"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class BatchPolicy(StrEnum):
    """What becomes of a batch for which there is not enough stock: nothing at all, or as many as there are."""

    ALL_OR_NOTHING = "all_or_nothing"
    BEST_EFFORT = "best_effort"


OPEN = frozenset({BatchStatus.STAGING, BatchStatus.READY, BatchStatus.RUNNING, BatchStatus.PAUSED})

_READ = text("SELECT * FROM issue_batch WHERE batch_id = :batch_id")
_HOLD = text("SELECT * FROM issue_batch WHERE batch_id = :batch_id FOR NO KEY UPDATE")


def batch_no(batch_id: int) -> str:
    """The batch's number, as ``coupon.batch_no`` has it."""
    return str(batch_id)


def read_batch(connection: Connection, batch_id: int) -> Row:
    """The row. Raises ``NotFound`` ``BATCH_NOT_FOUND``."""
    return _row(connection.execute(_READ, {"batch_id": batch_id}).mappings().first())


def hold_batch(connection: Connection, batch_id: int) -> Row:
    """The row, held until the transaction ends. Raises ``NotFound`` ``BATCH_NOT_FOUND``."""
    return _row(connection.execute(_HOLD, {"batch_id": batch_id}).mappings().first())


def _row(found: Any) -> Row:
    if found is None:
        raise NotFound("BATCH_NOT_FOUND", "there is no such batch")
    return dict(found)


def wrong_status(batch: Row, wanted: str) -> Conflict:
    """The refusal of what the batch's status does not allow."""
    return Conflict("INVALID_STATUS", f"a batch that is {batch['status']} {wanted}", current_status=batch["status"])
