"""The inbox of whoever approves: what is asked for, what it changes, and what it costs at worst."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import text

from coupon_workers.approval.budget import costs_of
from coupon_workers.approval.request import ApprovalKind, ApprovalState, Row
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.newest_page import newest
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.schema import TemplateApproval
from coupon_workers.templates.field_type import Instant
from coupon_workers.templates.template_row import Row as TemplateRow
from coupon_workers.templates.template_row import shown_fields

_COST = "minor units that its coupons take off when each is used to the full; null: without a bound"


class FieldChange(BaseModel):
    """A field that is to change."""

    model_config = ConfigDict(frozen=True)

    field: str
    before: Any
    after: Any


class ApprovalAnswer(BaseModel):
    """A request for approval, and what became of it."""

    model_config = ConfigDict(frozen=True)

    approval_id: str
    template_id: str
    template_name: str
    kind: ApprovalKind
    state: ApprovalState
    reasons: list[str] = Field(description="`approval_required`: the template says so; `budget`: its cost is above it")
    changes: list[FieldChange] = Field(description="of a change; while it waits, against the template as it is")
    currency: str
    cost_before: int | None = Field(description=f"0 for a draft; else {_COST}")
    cost_after: int | None = Field(description=_COST)
    budget: int | None = Field(description="of the currency, as it is set now; null: none")
    asked_by: str | None = Field(description="the key's id")
    asked_at: Instant
    decided_by: str | None
    decided_at: Instant | None
    comment: str | None


_TEMPLATES = text("SELECT * FROM coupon_template WHERE template_id = ANY(CAST(:template_ids AS bigint[]))")


def read_approvals(
    services: Services,
    *,
    limit: int,
    before: int | None = None,
    state: ApprovalState | None = None,
    template_id: int | None = None,
) -> list[ApprovalAnswer]:
    """Up to ``limit`` requests, newest first, with numbers below ``before``. Raises ``StoreUnavailable``."""
    wanted = newest(TemplateApproval.approval_id, limit=limit, before=before, state=state, template_id=template_id)
    with transaction(services.engine) as connection:
        rows = connection.execute(wanted).mappings().all()
        template_ids = list({row["template_id"] for row in rows})
        found = connection.execute(_TEMPLATES, {"template_ids": template_ids}).mappings().all()
    templates = {template["template_id"]: dict(template) for template in found}
    return [approval_answer(services.settings, dict(row), templates[row["template_id"]]) for row in rows]


def approval_answer(settings: Settings, approval: Row, template: TemplateRow) -> ApprovalAnswer:
    """The answer for a row of ``template_approval`` and its template's. What waits is compared with the template as it
    is now; what has ended, with what it was then."""
    pending = approval["state"] == ApprovalState.PENDING
    after = approval["after"] or {}
    before = shown_fields(template, after) if pending else approval["before"] or {}
    costs = (
        costs_of(approval["kind"], template, after) if pending else (approval["cost_before"], approval["cost_after"])
    )
    return ApprovalAnswer(
        approval_id=str(approval["approval_id"]),
        template_id=str(approval["template_id"]),
        template_name=template["name"],
        kind=approval["kind"],
        state=approval["state"],
        reasons=approval["reasons"],
        changes=[FieldChange(field=name, before=before[name], after=value) for name, value in after.items()],
        currency=template["currency"],
        cost_before=costs[0],
        cost_after=costs[1],
        budget=settings.budgets.get(template["currency"]),
        asked_by=approval["asked_by"],
        asked_at=approval["asked_at"],
        decided_by=approval["decided_by"],
        decided_at=approval["decided_at"],
        comment=approval["comment"],
    )
