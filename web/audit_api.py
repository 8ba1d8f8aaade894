"""The audit log over HTTP (API.md, Back office): read, never written."""

from __future__ import annotations

from typing import Any

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.reading import AuditEntry, AuditFilter, read_audit_log
from coupon_workers.templates.field_type import Instant
from web.auth import require
from web.context import services
from web.page import PageQuery, page

api = APIBlueprint("audit", __name__, abp_tags=[Tag(name="Audit", description="What operators have done")])


class AuditQuery(PageQuery):
    """Which rows, and which page of them."""

    subject: str | None = Field(None, max_length=400, description="only of this thing, as `template:7001`")
    action: AuditAction | None = Field(None, description="only these actions")
    key_id: str | None = Field(None, max_length=100, description="only by this key, or `command line`")
    since: Instant | None = Field(None, description="from this instant on")
    until: Instant | None = Field(None, description="before this instant")


class AuditPage(BaseModel):
    """Rows of the log, newest first."""

    items: list[AuditEntry]
    next_cursor: str | None


@api.get("/v1/audit-log", summary="Read the audit log", responses={200: AuditPage})
@require("admin")
def get_audit_log(query: AuditQuery) -> Any:
    """Who did what to what, when, and what it was before and after. A row is written with the change it tells of, and
    kept for good. What was refused has none."""
    wanted = AuditFilter(query.subject, query.action, query.key_id, query.since, query.until)
    entries = read_audit_log(services(), wanted, limit=query.limit + 1, before=query.before)
    return page(entries, query.limit, lambda entry: entry.model_dump(mode="json"), lambda entry: [int(entry.audit_id)])
