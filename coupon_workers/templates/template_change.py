"""Changing a template: at once, or by two where it costs more. PostgreSQL leads, and the gate is told after the commit.

Every function raises ``NotFound`` ``TEMPLATE_NOT_FOUND`` for a template that does not exist, and ``StoreUnavailable``
when PostgreSQL does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from coupon_workers.approval.need import reasons_to_ask_again
from coupon_workers.approval.reading import ApprovalAnswer, approval_answer
from coupon_workers.approval.request import ApprovalKind, ask, pending_of
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.gate_view import stock_of
from coupon_workers.errors import Conflict, StoreUnavailable
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.templates import template_store as store
from coupon_workers.templates.template import TemplateFields
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_patch import patched
from coupon_workers.templates.template_reading import answer_of
from coupon_workers.templates.template_row import Row, columns_of, shown_fields
from coupon_workers.templates.template_status import NEVER_PUBLISHED, TemplateStatus

log = get_logger(__name__)


def patch_template(
    services: Services, template_id: int, changes: Mapping[str, Any], operator: str | None = None
) -> TemplateAnswer | ApprovalAnswer:
    """Change what ``changes`` (JSON values by field) differ in; where they differ in nothing, nothing moves.

    A change that needs a second person is put down as a whole, and its request answered; asked for again, the same
    request. Raises ``InvalidInput``, and ``Conflict``: ``NOT_PATCHABLE``, ``INVALID_STATUS``, ``TEMPLATE_NO_TAKEN``,
    ``HAS_ARCHIVED``, ``APPROVAL_PENDING`` while the draft waits for approval, ``CHANGE_PENDING`` while another change
    does, and ``BELOW_TAKEN`` for a total below what is issued, reserved and queued.
    """
    with transaction(services.engine) as connection:
        row = store.lock_template(connection, template_id)
        template, changed = patched(row, changes, services.clock())
        check_total(services, row, template.total_quantity)
        if changed:
            _check_not_handed_in(connection, row)
            reasons = _reasons_to_ask_again(services, row, template, changed)
            if reasons:
                approval = _ask_for_change(services, connection, row, template, changed, reasons, operator)
                return approval_answer(services.settings, approval, row)
            row = _change_at_once(connection, row, template, changed, operator)
    tell_gate_if_it_answers(services, row)
    return answer_of(services, row)


def _check_not_handed_in(connection: Connection, row: Row) -> None:
    """What was handed in is what is approved: it is withdrawn first, then changed."""
    if row["status"] == TemplateStatus.PENDING_APPROVAL:
        pending = pending_of(connection, row["template_id"])
        raise Conflict(
            "APPROVAL_PENDING",
            "the template waits for approval: withdraw it, change it, publish it again",
            approval_id=str(pending["approval_id"]) if pending else None,
        )


def _reasons_to_ask_again(services: Services, row: Row, template: TemplateFields, changed: Sequence[str]) -> list[str]:
    if row["status"] == TemplateStatus.DRAFT:
        return []
    return reasons_to_ask_again(services.settings, row, {**row, **columns_of(template, changed)})


def _ask_for_change(
    services: Services,
    connection: Connection,
    row: Row,
    template: TemplateFields,
    changed: Sequence[str],
    reasons: Sequence[str],
    operator: str | None,
) -> Mapping[str, Any]:
    after = template.model_dump(mode="json", by_alias=True, include=set(changed))
    pending = pending_of(connection, row["template_id"])
    if pending is not None and pending["after"] == after:
        return pending
    if pending is not None:
        raise Conflict(
            "CHANGE_PENDING",
            "another change of the template waits for approval: it is decided or withdrawn first",
            approval_id=str(pending["approval_id"]),
        )
    approval = ask(connection, row, ApprovalKind.CHANGE, reasons, operator, services.clock(), after)
    subject = f"template:{row['template_id']}"
    record(connection, AuditAction.TEMPLATE_ASK_APPROVAL, subject, before=approval["before"], after=after)
    return approval


def _change_at_once(
    connection: Connection, row: Row, template: TemplateFields, changed: Sequence[str], operator: str | None
) -> Row:
    after = apply_change(connection, row, template, changed, operator)
    facts = shown_fields(row, changed), shown_fields(after, changed)
    record(connection, AuditAction.TEMPLATE_CHANGE, f"template:{row['template_id']}", before=facts[0], after=facts[1])
    return after


def check_total(services: Services, row: Row, total: int) -> None:
    """Raises ``Conflict`` ``BELOW_TAKEN`` for a total below what is issued, reserved and queued.

    The row is locked: what is settled meanwhile is counted as queued, and again as issued after the commit.
    """
    if total >= row["total_quantity"]:
        return
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


def apply_change(
    connection: Connection, row: Row, template: TemplateFields, changed: Sequence[str], changed_by: str | None
) -> Row:
    """The row after ``changed`` fields are as ``template`` has them. Raises what ``change_template`` raises."""
    return store.change_template(connection, row, columns_of(template, changed) | {"changed_by": changed_by})


def tell_gate_if_it_answers(services: Services, row: Row) -> None:
    """Bring the change to the gate; the sweep does it if Redis is away."""
    if row["status"] in NEVER_PUBLISHED:
        return
    try:
        sync_template(services, row["template_id"])
    except StoreUnavailable as error:
        log.warning("the gate learns of a change later", template_id=row["template_id"], error=str(error))
