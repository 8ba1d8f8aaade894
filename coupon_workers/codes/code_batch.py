"""A batch of redeem codes (DESIGN 11): its states, and its row."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.codes.code_form import CodeForm
from coupon_workers.errors import NotFound

Row = Mapping[str, Any]

LARGEST = 10_000_000
"""Codes of one batch."""


class CodeBatchStatus(StrEnum):
    """Where a batch of codes is. ``revoked`` and ``expired`` are final: its unused codes are worth nothing."""

    GENERATING = "generating"
    DONE = "done"
    REVOKED = "revoked"
    EXPIRED = "expired"


class ExportState(StrEnum):
    """Where the plain texts are: to be fetched once, fetched, or gone with the batch."""

    KEPT = "kept"
    FETCHED = "fetched"
    DROPPED = "dropped"


ALIVE = frozenset({CodeBatchStatus.GENERATING, CodeBatchStatus.DONE})

_READ = text("SELECT * FROM code_batch WHERE code_batch_id = :code_batch_id")
_HOLD = text("SELECT * FROM code_batch WHERE code_batch_id = :code_batch_id FOR NO KEY UPDATE")
_TAKE = text("SELECT * FROM code_batch WHERE code_batch_id = :code_batch_id FOR NO KEY UPDATE SKIP LOCKED")


def read_code_batch(connection: Connection, code_batch_id: int) -> Row:
    """The row. Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``."""
    return _row(connection.execute(_READ, {"code_batch_id": code_batch_id}).mappings().first())


def hold_code_batch(connection: Connection, code_batch_id: int) -> Row:
    """The row, held until the transaction ends. Raises ``NotFound`` ``CODE_BATCH_NOT_FOUND``."""
    return _row(connection.execute(_HOLD, {"code_batch_id": code_batch_id}).mappings().first())


def take_code_batch(connection: Connection, code_batch_id: int) -> Row | None:
    """The row, held until the transaction ends; None when somebody else holds it, or there is none."""
    found = connection.execute(_TAKE, {"code_batch_id": code_batch_id}).mappings().first()
    return None if found is None else dict(found)


def form_of(batch: Row) -> CodeForm:
    """How the codes of the batch are made."""
    return CodeForm(batch["length"], batch["prefix"], batch["check_digit"])


def _row(found: Any) -> Row:
    if found is None:
        raise NotFound("CODE_BATCH_NOT_FOUND", "there is no such batch of codes")
    return dict(found)
