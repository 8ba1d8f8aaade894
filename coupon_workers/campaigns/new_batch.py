"""A new batch: looked at closely before anything is written, then stored whole and handed to a worker (DESIGN 9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import BinaryIO

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.campaigns.audience import Audience
from coupon_workers.campaigns.batch import BatchPolicy, batch_no
from coupon_workers.campaigns.tag_expression import read_tag_expression
from coupon_workers.errors import AudienceFileError, Conflict, InvalidInput, StoreUnavailable
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import stage_batch
from coupon_workers.schema import AudienceFile, IssueBatch
from coupon_workers.templates.template_row import Row
from coupon_workers.templates.template_status import TemplateStatus, effective_status
from coupon_workers.templates.template_store import read_template

PART_BYTES = 1024 * 1024
"""What is sent to PostgreSQL at once of a file that may have gigabytes."""

LONGEST_FILE_NAME = 200
"""Characters that are kept of a file's name: of its end, which says what it holds."""

log = get_logger(__name__)

_STATUS = select(IssueBatch.status)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """What is asked for. ``tags`` is an expression, or None where a file comes with it; ``start_at`` None: at once."""

    batch_id: int
    template_id: int
    name: str
    policy: BatchPolicy = BatchPolicy.ALL_OR_NOTHING
    tags: str | None = None
    file_name: str | None = None
    start_at: datetime | None = None


def create_batch(services: Services, batch: NewBatch, content: BinaryIO | None, operator: str) -> dict[str, str]:
    """Store the batch and its file, and have it staged; ``{"batch_no", "status"}``.

    Safe to run again: a batch of this identity is answered as it stands. ``content`` is seekable, and None for an
    audience by ``tags``. ``operator`` is who makes it: the one key that cannot approve it.

    Raises ``NotFound`` ``TEMPLATE_NOT_FOUND``; ``Conflict`` ``TEMPLATE_NOT_ACTIVE`` with the template's
    ``current_status``, ``TYPE_NOT_OFFERED`` for random amounts; ``InvalidInput`` for an audience that cannot be read
    (``AudienceFileError`` for a file) or a start outside the template's time; ``StoreUnavailable``. Nothing is
    written then.
    """
    if (batch.tags is None) == (content is None):
        raise ValueError("a batch is for a file or for an expression over tags")
    look_at_audience(batch, content)
    status = _store(services, batch, content, operator)
    if status == "staging":
        _have_it_staged(services, batch.batch_id)
    return {"batch_no": batch_no(batch.batch_id), "status": status}


def look_at_audience(batch: NewBatch, content: BinaryIO | None) -> None:
    """Read the expression, or the file until its first rows, and go back to its beginning.

    Raises ``InvalidInput``; for a file ``AudienceFileError``, ``NO_ROWS`` among its codes.
    """
    if content is None:
        read_tag_expression(batch.tags or "")
        return
    content.seek(0)
    for rows in Audience(content, batch.file_name or ""):
        if rows.valid or rows.invalid:
            break
    else:
        raise AudienceFileError("NO_ROWS", "has no rows: nobody would get a coupon")
    content.seek(0)


def _store(services: Services, batch: NewBatch, content: BinaryIO | None, operator: str) -> str:
    """The status of the batch that is there afterwards."""
    with transaction(services.engine) as connection:
        known = connection.scalar(_STATUS.where(IssueBatch.batch_id == batch.batch_id))
        if known is not None:
            return str(known)
        now = services.clock()
        _check_template(read_template(connection, batch.template_id), batch, now)
        row = insert(IssueBatch).values(_columns(batch, operator, now)).on_conflict_do_nothing()
        if connection.execute(row).rowcount == 1:
            if content is not None:
                _store_file(connection, batch.batch_id, content)
            record(connection, AuditAction.BATCH_CREATE, f"batch:{batch.batch_id}", after=_facts(batch))
    return "staging"


def _columns(batch: NewBatch, operator: str, now: datetime) -> dict[str, object]:
    return {
        "batch_id": batch.batch_id,
        "template_id": batch.template_id,
        "name": batch.name,
        "policy": batch.policy,
        "tags": batch.tags,
        "file_name": stored_name(batch.file_name),
        "start_at": batch.start_at,
        "created_by": operator,
        "created_at": now,
        "updated_at": now,
    }


def _facts(batch: NewBatch) -> dict[str, object]:
    return {
        "template_id": str(batch.template_id),
        "name": batch.name,
        "policy": batch.policy,
        "tags": batch.tags,
        "file_name": stored_name(batch.file_name),
        "start_at": batch.start_at,
    }


def _store_file(connection: Connection, batch_id: int, content: BinaryIO) -> None:
    for part_no, part in enumerate(_parts(content)):
        row = {"batch_id": batch_id, "part_no": part_no, "content": part}
        connection.execute(insert(AudienceFile).values(row))


def _parts(content: BinaryIO) -> Iterator[bytes]:
    while part := content.read(PART_BYTES):
        yield part


def stored_name(file_name: str | None) -> str | None:
    """A file's name without its folders, such that any store keeps it and any terminal shows it; None for none."""
    name = PurePath((file_name or "").replace("\\", "/")).name
    return "".join(each if each.isprintable() else "_" for each in name)[-LONGEST_FILE_NAME:] or None


def _check_template(template: Row, batch: NewBatch, now: datetime) -> None:
    if template["type"] == "random_amount":
        raise Conflict("TYPE_NOT_OFFERED", "random amounts cannot be given to an audience yet", type=template["type"])
    status = effective_status(template, now)
    waits = status is TemplateStatus.SCHEDULED and batch.start_at is not None
    if status is not TemplateStatus.ACTIVE and not waits:
        raise _not_active(template, status)
    if batch.start_at is not None:
        _check_start(template, batch.start_at, now)


def _not_active(template: Row, status: TemplateStatus) -> Conflict:
    detail = f"the template is {status}: a batch is of one that is active"
    if status is TemplateStatus.SCHEDULED:
        detail += f", or starts with it: name a start_at from {rfc3339(template['claim_start'])} on"
    return Conflict("TEMPLATE_NOT_ACTIVE", detail, current_status=status.value)


def _check_start(template: Row, start_at: datetime, now: datetime) -> None:
    """A start that has passed means at once, as long as the template is open now."""
    if start_at >= template["claim_end"]:
        raise InvalidInput([("start_at", f"must lie before the template's end, {rfc3339(template['claim_end'])}")])
    if start_at < template["claim_start"] and now < template["claim_start"]:
        message = f"must not lie before the template's beginning, {rfc3339(template['claim_start'])}"
        raise InvalidInput([("start_at", message)])


def _have_it_staged(services: Services, batch_id: int) -> None:
    try:
        services.post.send(stage_batch(batch_id))
    except StoreUnavailable as error:
        # It is stored, and the sweep sends what nobody has begun.
        log.warning("batch not announced", batch_id=batch_id, error=str(error))
