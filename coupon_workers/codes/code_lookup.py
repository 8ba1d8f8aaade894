"""What became of a code that somebody types in: an operator's tool. Codes are never listed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import text

from coupon_workers.codes.canonical_form import canonical
from coupon_workers.codes.code_batch import CodeBatchStatus
from coupon_workers.codes.pepper_ring import pepper_ring
from coupon_workers.errors import NotFound
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_LOOK = text(
    "SELECT c.*, b.template_id, b.status, b.channel, least(b.expires_at, t.claim_end) AS expires_at"
    "  FROM code c JOIN code_batch b USING (code_batch_id) JOIN coupon_template t USING (template_id)"
    " WHERE c.code_hash = ANY (:hashes)"
)


class CodeState(StrEnum):
    """What a code is worth. ``pending``: its batch is still being generated."""

    PENDING = "pending"
    UNUSED = "unused"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"


class CodeAnswer(BaseModel):
    """A code, without its text."""

    state: CodeState
    code_batch_id: str
    template_id: str
    channel: str | None
    expires_at: str
    user_id: str | None = Field(description="who has used it")
    coupon_no: str | None
    used_at: str | None


def look_up_code(services: Services, typed: str) -> CodeAnswer:
    """The code that was typed, in any form. Raises ``NotFound`` ``CODE_NOT_FOUND``, ``Conflict`` ``CODES_NOT_SET_UP``,
    ``StoreUnavailable``."""
    code = canonical(typed)
    hashes = pepper_ring(services.settings).hashes_of(code) if code else []
    with transaction(services.engine) as connection:
        found = connection.execute(_LOOK, {"hashes": hashes}).mappings().first() if hashes else None
    if found is None:
        raise NotFound("CODE_NOT_FOUND", "no code reads so, under any pepper that is in use")
    return CodeAnswer(
        state=state_of(found, services.clock()),
        code_batch_id=str(found["code_batch_id"]),
        template_id=str(found["template_id"]),
        channel=found["channel"],
        expires_at=rfc3339(found["expires_at"]),
        user_id=found["user_id"],
        coupon_no=None if found["coupon_id"] is None else str(found["coupon_id"]),
        used_at=None if found["used_at"] is None else rfc3339(found["used_at"]),
    )


def state_of(found: Any, now: datetime) -> CodeState:
    """The state, of the code's own columns and its batch's ``status`` and ``expires_at``."""
    if found["coupon_id"] is not None:
        return CodeState.USED
    if found["status"] in (CodeBatchStatus.REVOKED, CodeBatchStatus.EXPIRED):
        return CodeState(found["status"])
    if now >= found["expires_at"]:
        return CodeState.EXPIRED
    return CodeState.PENDING if found["status"] == CodeBatchStatus.GENERATING else CodeState.UNUSED
