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

from coupon_workers.approval.need import reasons_to_ask
from coupon_workers.approval.request import ApprovalKind, ApprovalState, ask, end, pending_of
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.errors import Conflict, InvalidInput, StoreUnavailable
from coupon_workers.pools.pool_store import fill_pool
from coupon_workers.risk.policy_row import hold_policy
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates import template_store as store
from coupon_workers.templates.field_type import PLACE_OF
from coupon_workers.templates.template import TemplateBody, TemplateFields
from coupon_workers.templates.template_answer import PreheatAnswer, TemplateAnswer
from coupon_workers.templates.template_change import tell_gate_if_it_answers
from coupon_workers.templates.template_reading import answer_of
from coupon_workers.templates.template_row import Row, columns_of, fields_of, shown_fields
from coupon_workers.templates.template_stats import coupons_by_status, outstanding
from coupon_workers.templates.template_status import (
    NEVER_PUBLISHED,
    TemplateAction,
    TemplateStatus,
    status_after,
)
from coupon_workers.templates.whole_body import errors_of

AUDITED = {
    TemplateAction.PAUSE: AuditAction.TEMPLATE_PAUSE,
    TemplateAction.RESUME: AuditAction.TEMPLATE_RESUME,
    TemplateAction.OFFLINE: AuditAction.TEMPLATE_OFFLINE,
    TemplateAction.ARCHIVE: AuditAction.TEMPLATE_ARCHIVE,
}

log = get_logger(__name__)


def create_template(
    services: Services, body: TemplateBody, created_by: str | None = None, *, template_id: int | None = None
) -> TemplateAnswer:
    """A new draft, of an identity of its own or of ``template_id``, and then only once.

    Raises ``Conflict`` ``TEMPLATE_NO_TAKEN``.
    """
    return _insert(services, columns_of(body), created_by, template_id)


def clone_template(
    services: Services, template_id: int, created_by: str | None = None, *, clone_id: int | None = None
) -> TemplateAnswer:
    """A new draft with the same fields but a number of its own; of ``clone_id``, and then only once.

    A time zone that is not taken any more gives way to the place it stands for.
    """
    with transaction(services.engine) as connection:
        fields = fields_of(store.read_template(connection, template_id)) | {"template_no": None}
    fields["timezone"] = PLACE_OF.get(fields["timezone"], fields["timezone"])
    return _insert(services, columns_of(TemplateFields.model_validate(fields)), created_by, clone_id)


def _insert(
    services: Services, columns: Mapping[str, Any], created_by: str | None, wanted: int | None
) -> TemplateAnswer:
    template_id = wanted or services.next_id(0)
    with transaction(services.engine) as connection:
        row, is_new = store.insert_template(connection, template_id, columns, created_by)
        if is_new:
            record(connection, AuditAction.TEMPLATE_CREATE, f"template:{template_id}", after=shown_fields(row))
    return answer_of(services, row)


def publish_template(services: Services, template_id: int, operator: str | None = None) -> TemplateAnswer:
    """Open a draft for claiming, by the clock, and preheat it; or hand it in for approval where that is required.

    Without Redis it is published all the same, and the sweep preheats it. The budget of random amounts is shared out
    now, and stays as it is. Raises ``Conflict`` ``INVALID_STATUS``, and ``InvalidInput`` for a risk policy that is not
    there, a time zone that is not taken any more, and random amounts drafted before their rules were as they are.
    """
    now = services.clock()
    with transaction(services.engine) as connection:
        before = store.lock_template(connection, template_id)
        reasons = reasons_to_ask(services.settings, before)
        status = status_after(TemplateAction.PUBLISH, before, now, by_two=bool(reasons))
        assert status is not None  # nothing is published twice
        _check_taken(connection, before)
        if before["type"] == "random_amount":
            fill_pool(connection, template_id, _validated(before))
        row = store.move_template(connection, before, status)
        if reasons:
            ask(connection, row, ApprovalKind.PUBLICATION, reasons, operator, now)
        _record_move(connection, AuditAction.TEMPLATE_PUBLISH, before, row)
    if row["status"] != TemplateStatus.PENDING_APPROVAL:
        preheat_if_redis_answers(services, template_id)
    return answer_of(services, row)


def _check_taken(connection: Connection, row: Row) -> None:
    if row["risk_policy"] and not hold_policy(connection, row["risk_policy"]):
        raise InvalidInput([("risk_policy", "names no risk policy that is in force")])
    if place := PLACE_OF.get(row["timezone"]):
        raise InvalidInput([("timezone", f"is not taken any more: name a place, such as {place}")])


def preheat_if_redis_answers(services: Services, template_id: int) -> None:
    """Preheat what was just published; the sweep does it if Redis is away."""
    try:
        preheat_template(services, template_id)
    except StoreUnavailable as error:
        log.warning("published cold", template_id=template_id, error=str(error))


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
    tell_gate_if_it_answers(services, row)
    return answer_of(services, row)


def preheat(services: Services, template_id: int) -> PreheatAnswer:
    """Rebuild the gate of a template from the database, at any time.

    Raises ``Conflict``: ``INVALID_STATUS`` when it was never published, ``HAS_ARCHIVED`` when coupons are archived.
    """
    loaded = preheat_template(services, template_id)
    with transaction(services.engine) as connection:
        row = store.read_template(connection, template_id)
        _record(connection, AuditAction.TEMPLATE_PREHEAT, row, after={"coupons_loaded": loaded})
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
            _drop_request(services, connection, before)
        after = store.move_template(connection, before, status)
        _record_move(connection, AUDITED[action], before, after)
        return before, after


def _drop_request(services: Services, connection: Connection, row: Row) -> None:
    """What was asked for an archived template is nothing to decide any more."""
    pending = pending_of(connection, row["template_id"])
    if pending is not None:
        end(connection, pending, row, ApprovalState.WITHDRAWN, None, services.clock(), "the template was archived")


def _record(connection: Connection, action: AuditAction, row: Row, **facts: Mapping[str, Any] | None) -> None:
    record(connection, action, f"template:{row['template_id']}", **facts)


def _record_move(connection: Connection, action: AuditAction, before: Row, after: Row) -> None:
    _record(connection, action, before, before={"status": before["status"]}, after={"status": after["status"]})


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
