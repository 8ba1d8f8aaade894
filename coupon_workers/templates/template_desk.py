"""What an operator does with templates. PostgreSQL leads, Redis follows: a change is committed, then the gate is told.

Claims that must stop (pause, offline, archive) have stopped when these return: when Redis cannot be told they raise
``StoreUnavailable``, though the database has the change already and whatever is claimed meanwhile will be rejected
when it is settled; asked again, they tell Redis again. Every other change may reach Redis later, by the sweep.

Every function raises ``NotFound`` ``TEMPLATE_NOT_FOUND`` for a template that does not exist, and ``StoreUnavailable``
when PostgreSQL does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.errors import Conflict, InvalidInput, StoreUnavailable
from coupon_workers.pools.pool_store import fill_pool
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates import template_store as store
from coupon_workers.templates.template import TemplateBody, TemplateFields
from coupon_workers.templates.template_answer import PreheatAnswer, TemplateAnswer
from coupon_workers.templates.template_patch import patched
from coupon_workers.templates.template_reading import answer_of
from coupon_workers.templates.template_row import Row, columns_of, fields_of
from coupon_workers.templates.template_stats import coupons_by_status, outstanding
from coupon_workers.templates.template_status import (
    NEVER_PUBLISHED,
    TemplateAction,
    TemplateStatus,
    status_after,
)
from coupon_workers.templates.whole_body import errors_of

log = get_logger(__name__)


def create_template(
    services: Services, body: TemplateBody, created_by: str | None = None, *, template_id: int | None = None
) -> TemplateAnswer:
    """A new draft, of an identity of its own or of ``template_id``, and then only once.

    Raises ``Conflict`` ``TEMPLATE_NO_TAKEN``.
    """
    identity = template_id or services.next_id(0)
    with transaction(services.engine) as connection:
        row = store.insert_template(connection, identity, columns_of(body), created_by)
    return answer_of(services, row)


def clone_template(
    services: Services, template_id: int, created_by: str | None = None, *, clone_id: int | None = None
) -> TemplateAnswer:
    """A new draft with the same fields but a number of its own; of ``clone_id``, and then only once."""
    with transaction(services.engine) as connection:
        fields = fields_of(store.read_template(connection, template_id)) | {"template_no": None}
        columns = columns_of(TemplateFields.model_validate(fields))
        row = store.insert_template(connection, clone_id or services.next_id(0), columns, created_by)
    return answer_of(services, row)


def patch_template(services: Services, template_id: int, changes: Mapping[str, Any]) -> TemplateAnswer:
    """Change what ``changes`` (JSON values by field) differ in; where they differ in nothing, nothing moves.

    Raises ``InvalidInput``, and ``Conflict``: ``NOT_PATCHABLE``, ``INVALID_STATUS``, ``TEMPLATE_NO_TAKEN``,
    ``HAS_ARCHIVED``, and ``BELOW_TAKEN`` for a total below what is issued, reserved and queued.
    """
    with transaction(services.engine) as connection:
        row = store.lock_template(connection, template_id)
        template, changed = patched(row, changes, services.clock())
        if template.total_quantity < row["total_quantity"]:
            _check_total(services, row, template.total_quantity)
        if changed:
            row = store.change_template(connection, row, columns_of(template, changed))
    _tell_gate_if_it_answers(services, row)
    return answer_of(services, row)


def _check_total(services: Services, row: Row, total: int) -> None:
    """The row is locked: what is settled meanwhile is counted as queued, and again as issued after the commit."""
    queued = 0
    if row["status"] not in NEVER_PUBLISHED:
        queued = stock_of(services, [row["template_id"]])[row["template_id"]].queued
    taken = row["issued_quantity"] + row["reserved_quantity"] + queued
    if total < taken:
        raise Conflict(
            "BELOW_TAKEN",
            f"{taken} units are taken",
            issued=row["issued_quantity"],
            reserved=row["reserved_quantity"],
            queued=queued,
        )


def publish_template(services: Services, template_id: int) -> TemplateAnswer:
    """Open a draft for claiming, by the clock, and preheat it; or hand it in for approval where that is required.

    Without Redis it is published all the same, and the sweep preheats it. The budget of random amounts is shared out
    now, and stays as it is. Raises ``Conflict`` ``INVALID_STATUS``, and ``InvalidInput`` for random amounts that were
    drafted before their rules were as they are.
    """
    _, row = _act(services, template_id, TemplateAction.PUBLISH)
    if row["status"] != TemplateStatus.PENDING_APPROVAL:
        try:
            preheat_template(services, template_id)
        except StoreUnavailable as error:
            log.warning("published cold", template_id=template_id, error=str(error))
    return answer_of(services, row)


def pause_template(services: Services, template_id: int) -> TemplateAnswer:
    """Stop claims at once; queued ones will be rejected. Raises ``Conflict`` ``INVALID_STATUS``."""
    return _stop(services, template_id, TemplateAction.PAUSE)


def take_offline(services: Services, template_id: int) -> TemplateAnswer:
    """Stop claims and new locks for good. Raises ``Conflict`` ``INVALID_STATUS``."""
    return _stop(services, template_id, TemplateAction.OFFLINE)


def archive_template(services: Services, template_id: int) -> TemplateAnswer:
    """Put a template away that nobody can use any more.

    Raises ``Conflict`` ``HAS_OUTSTANDING``, with counts by status, while coupons may still be used, are queued, or are
    reserved for a campaign.
    """
    return _stop(services, template_id, TemplateAction.ARCHIVE)


def resume_template(services: Services, template_id: int) -> TemplateAnswer:
    """Let a paused template go on, by the clock. Raises ``Conflict`` ``INVALID_STATUS``."""
    _, row = _act(services, template_id, TemplateAction.RESUME)
    _tell_gate_if_it_answers(services, row)
    return answer_of(services, row)


def preheat(services: Services, template_id: int) -> PreheatAnswer:
    """Rebuild the gate of a template from the database, at any time.

    Raises ``Conflict``: ``INVALID_STATUS`` when it was never published, ``HAS_ARCHIVED`` when coupons are archived.
    """
    loaded = preheat_template(services, template_id)
    with transaction(services.engine) as connection:
        row = store.read_template(connection, template_id)
    answer = answer_of(services, row)
    return PreheatAnswer(**dict(answer), coupons_loaded=loaded)


def _act(services: Services, template_id: int, action: TemplateAction) -> tuple[Row, Row]:
    """The template before and after ``action``."""
    now = services.clock()
    with transaction(services.engine) as connection:
        before = store.lock_template(connection, template_id)
        status = status_after(action, before, now)
        if status is None:
            return before, before
        if action is TemplateAction.ARCHIVE:
            _check_nothing_outstanding(services, connection, before)
        if action is TemplateAction.PUBLISH and before["type"] == "random_amount":
            fill_pool(connection, template_id, _validated(before))
        return before, store.move_template(connection, before, status)


def _validated(row: Row) -> TemplateBody:
    try:
        return TemplateBody.model_validate(fields_of(row))
    except ValidationError as error:
        raise InvalidInput(errors_of(error)) from None


def _check_nothing_outstanding(services: Services, connection: Connection, row: Row) -> None:
    if row["status"] in NEVER_PUBLISHED:
        return
    template_id = row["template_id"]
    counts = outstanding(coupons_by_status(connection, template_id, services.clock()))
    queued = stock_of(services, [template_id])[template_id].queued
    if counts or queued or row["reserved_quantity"]:
        raise Conflict(
            "HAS_OUTSTANDING",
            "coupons of this template may still be used, or are about to be issued",
            by_status=counts,
            queued=queued,
            reserved=row["reserved_quantity"],
        )


def _stop(services: Services, template_id: int, action: TemplateAction) -> TemplateAnswer:
    before, after = _act(services, template_id, action)
    if before["status"] not in NEVER_PUBLISHED:
        sync_template(services, template_id)
    return answer_of(services, after)


def _tell_gate_if_it_answers(services: Services, row: Row) -> None:
    if row["status"] in NEVER_PUBLISHED:
        return
    try:
        sync_template(services, row["template_id"])
    except StoreUnavailable as error:
        log.warning("the gate learns of a change later", template_id=row["template_id"], error=str(error))
