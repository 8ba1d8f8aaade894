"""Requests for approval in PostgreSQL. Whoever writes one holds its template, so that they come one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.approval.budget import costs_of
from coupon_workers.templates.template_row import Row as Template
from coupon_workers.templates.template_row import shown_fields

Row = Mapping[str, Any]
"""A row of ``template_approval``."""


class ApprovalKind(StrEnum):
    """What waits: a draft that is to be published, or a change of a template that was."""

    PUBLICATION = "publication"
    CHANGE = "change"


class ApprovalState(StrEnum):
    """What has become of it."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


_ASK = text("""
    INSERT INTO template_approval (template_id, kind, reasons, before, after, cost_before, cost_after, asked_by,
                                   asked_at)
    VALUES (:template_id, :kind, :reasons, CAST(:before AS jsonb), CAST(:after AS jsonb), :cost_before, :cost_after,
            :asked_by, :now)
    RETURNING *
""")

_LATEST = text("SELECT * FROM template_approval WHERE template_id = :template_id ORDER BY approval_id DESC LIMIT 1")

_END = text("""
    UPDATE template_approval
       SET state = :state, decided_by = :operator, decided_at = :now, comment = :comment,
           before = CAST(:before AS jsonb), cost_before = :cost_before, cost_after = :cost_after
     WHERE approval_id = :approval_id AND state = 'pending'
    RETURNING *
""")


def ask(
    connection: Connection,
    template: Template,
    kind: ApprovalKind,
    reasons: Sequence[str],
    asked_by: str | None,
    now: datetime,
    after: Mapping[str, Any] | None = None,
) -> Row:
    """A new request of a template that has none that is pending. ``after``: the fields of a change, as JSON."""
    named = {"kind": kind, "reasons": list(reasons), "after": _json(after), "asked_by": asked_by, "now": now}
    stood = _as_it_stands(template, kind, after)
    return dict(connection.execute(_ASK, named | stood | {"template_id": template["template_id"]}).mappings().one())


def latest_of(connection: Connection, template_id: int) -> Row | None:
    """The newest request of the template; the only one that may be pending."""
    row = connection.execute(_LATEST, {"template_id": template_id}).mappings().one_or_none()
    return dict(row) if row else None


def pending_of(connection: Connection, template_id: int) -> Row | None:
    """The request that waits, if one does."""
    latest = latest_of(connection, template_id)
    return latest if latest is not None and latest["state"] == ApprovalState.PENDING else None


def end(
    connection: Connection,
    approval: Row,
    template: Template,
    state: ApprovalState,
    operator: str | None,
    now: datetime,
    comment: str | None,
) -> Row:
    """End a pending request; ``template`` is as it stands before the request is granted, if it is."""
    named = {"approval_id": approval["approval_id"], "state": state, "operator": operator, "now": now}
    stood = _as_it_stands(template, approval["kind"], approval["after"])
    return dict(connection.execute(_END, named | stood | {"comment": comment}).mappings().one())


def _as_it_stands(template: Template, kind: str, after: Mapping[str, Any] | None) -> dict[str, Any]:
    cost_before, cost_after = costs_of(kind, template, after or {})
    before = None if after is None else shown_fields(template, after)
    return {"before": _json(before), "cost_before": cost_before, "cost_after": cost_after}


def _json(fields: Mapping[str, Any] | None) -> str | None:
    return None if fields is None else json.dumps(fields)
