"""Deciding about what waits for a second person: one who has made it, changed it or asked for it decides nothing.

A template has one request that waits, at most, and its row is held while the request is decided: of two who decide at
once, one comes first. Every function raises ``NotFound`` ``TEMPLATE_NOT_FOUND``; ``Conflict``: ``NOTHING_PENDING``,
with the ``state`` of the latest request, if there was one, and ``APPROVAL_CHANGED`` when ``approval_id`` is given and
another request waits; and ``StoreUnavailable``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from coupon_workers.approval.request import ApprovalKind, ApprovalState, Row, end, latest_of
from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import Conflict
from coupon_workers.runtime.crash_point import crash_point
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_store as store
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_change import apply_change, check_total, tell_gate_if_it_answers
from coupon_workers.templates.template_desk import preheat_if_redis_answers
from coupon_workers.templates.template_patch import patched
from coupon_workers.templates.template_reading import answer_of
from coupon_workers.templates.template_row import Row as Template
from coupon_workers.templates.template_status import TemplateAction, status_after

HANDS = (
    ("created_by", "created the template"),
    ("changed_by", "changed the template last"),
    ("asked_by", "asked for it"),
)


def approve(
    services: Services, template_id: int, operator: str, *, approval_id: int | None = None, comment: str | None = None
) -> TemplateAnswer:
    """Do what was asked for, exactly: publish and preheat the draft, or apply the change. Approved again by the same
    key, the template is answered as it is.

    Raises ``Conflict`` ``OWN_TEMPLATE``; for a change that no longer fits ``BELOW_TAKEN``, ``INVALID_STATUS`` or
    ``InvalidInput``: it goes on waiting, to be rejected or withdrawn.
    """
    with transaction(services.engine) as connection:
        template, approval = _hold(connection, template_id, approval_id)
        if approval is None or approval["state"] != ApprovalState.PENDING:
            if approval is None or (approval["state"], approval["decided_by"]) != (ApprovalState.APPROVED, operator):
                raise _nothing_pending(approval)
            granted = template
        else:
            _check_other_hands(template, approval, operator)
            granted = _grant(services, connection, template, approval)
            _end(services, connection, template, approval, ApprovalState.APPROVED, operator, comment)
            crash_point("approve.before_commit")
    crash_point("approve.after_commit")
    if approval["kind"] == ApprovalKind.PUBLICATION:
        preheat_if_redis_answers(services, template_id)
    else:
        tell_gate_if_it_answers(services, granted)
    return answer_of(services, granted)


def reject(
    services: Services, template_id: int, operator: str, comment: str, *, approval_id: int | None = None
) -> TemplateAnswer:
    """Refuse what was asked for: the template is a draft again, or stays as it is. Raises ``Conflict``
    ``OWN_TEMPLATE``: whoever asked withdraws instead."""
    return _hand_back(services, template_id, operator, ApprovalState.REJECTED, comment, approval_id)


def withdraw(
    services: Services, template_id: int, operator: str, comment: str | None = None, *, approval_id: int | None = None
) -> TemplateAnswer:
    """Ask no longer: the template is a draft again, or stays as it is."""
    return _hand_back(services, template_id, operator, ApprovalState.WITHDRAWN, comment, approval_id)


def _hand_back(
    services: Services,
    template_id: int,
    operator: str,
    state: ApprovalState,
    comment: str | None,
    approval_id: int | None,
) -> TemplateAnswer:
    with transaction(services.engine) as connection:
        template, approval = _hold(connection, template_id, approval_id)
        if approval is None or approval["state"] != ApprovalState.PENDING:
            if approval is None or (approval["state"], approval["decided_by"]) != (state, operator):
                raise _nothing_pending(approval)
        else:
            if state is ApprovalState.REJECTED:
                _check_other_hands(template, approval, operator)
            _end(services, connection, template, approval, state, operator, comment)
            if approval["kind"] == ApprovalKind.PUBLICATION:
                template = _moved(services, connection, template, TemplateAction.HAND_BACK)
    return answer_of(services, template)


def _hold(connection: Connection, template_id: int, approval_id: int | None) -> tuple[Template, Row | None]:
    """The template, held, and its latest request."""
    template = store.lock_template(connection, template_id)
    approval = latest_of(connection, template_id)
    if approval_id is not None and approval is not None and approval["approval_id"] != approval_id:
        latest = str(approval["approval_id"])
        raise Conflict("APPROVAL_CHANGED", "another request came after that one", approval_id=latest)
    return template, approval


def _nothing_pending(approval: Row | None) -> Conflict:
    state = approval["state"] if approval else None
    detail = f"nothing waits: the latest request is {state}" if state else "nothing was asked for"
    return Conflict("NOTHING_PENDING", detail, state=state)


def _check_other_hands(template: Template, approval: Row, operator: str) -> None:
    own = [did for column, did in HANDS if (approval if column == "asked_by" else template)[column] == operator]
    if own:
        raise Conflict("OWN_TEMPLATE", f"another key decides: this one {' and '.join(own)}")


def _grant(services: Services, connection: Connection, template: Template, approval: Row) -> Template:
    if approval["kind"] == ApprovalKind.PUBLICATION:
        return _moved(services, connection, template, TemplateAction.APPROVE)
    new, changed = patched(template, approval["after"], services.clock())
    check_total(services, template, new.total_quantity)
    return apply_change(connection, template, new, changed, approval["asked_by"])


def _moved(services: Services, connection: Connection, template: Template, action: TemplateAction) -> Template:
    status = status_after(action, template, services.clock())
    assert status is not None
    return store.move_template(connection, template, status)


def _end(
    services: Services,
    connection: Connection,
    template: Template,
    approval: Row,
    state: ApprovalState,
    operator: str,
    comment: str | None,
) -> None:
    ended = end(connection, approval, template, state, operator, services.clock(), comment)
    record(
        connection,
        _AUDITED[state],
        f"template:{template['template_id']}",
        before=ended["before"],
        after=_facts(ended),
    )


_AUDITED = {
    ApprovalState.APPROVED: AuditAction.TEMPLATE_APPROVE,
    ApprovalState.REJECTED: AuditAction.TEMPLATE_REJECT,
    ApprovalState.WITHDRAWN: AuditAction.TEMPLATE_WITHDRAW,
}


def _facts(approval: Row) -> Mapping[str, Any]:
    """What was decided: the change itself, if it was granted or not."""
    decided = {"approval_id": str(approval["approval_id"]), "kind": approval["kind"], "comment": approval["comment"]}
    return decided | {"fields": approval["after"]} if approval["after"] else decided
