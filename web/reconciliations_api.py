"""Reconciliations and their findings over HTTP (API.md, Back office)."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from coupon_workers.finance.business_day import read_day
from coupon_workers.reconciliation import decision
from coupon_workers.reconciliation.finding_reading import FindingAnswer, read_finding, read_findings
from coupon_workers.reconciliation.findings_csv import findings_csv
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from coupon_workers.reconciliation.run import ask_run
from coupon_workers.reconciliation.run_reading import RunAnswer, RunSummary, read_run, read_runs
from coupon_workers.templates.field_type import Instant
from web.auth import require
from web.batch_model import Identity
from web.context import principal, services
from web.idempotent import idempotent, subject_id
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem_code import refuses

api = APIBlueprint(
    "reconciliations",
    __name__,
    abp_tags=[Tag(name="Reconciliation", description="What is compared, what differs, what is done about it")],
)

Json = dict[str, Any]

MOST_IN_FILE = 10_000
"""Findings in a file: as many as a run lists."""

LONGEST_COMMENT = 500

Comment = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=LONGEST_COMMENT)
]

_CSV = {"description": "a line a finding", "content": {"text/csv": {"schema": {"type": "string"}}}}


class NewRun(BaseModel):
    """What to compare."""

    model_config = ConfigDict(extra="forbid")

    kind: ReconKind
    as_of: Instant | None = Field(None, description="the moment to compare as of; absent: now")
    date: Annotated[str, Field(strict=True)] | None = Field(
        None, description="the business day, for orders", examples=["2026-11-11"]
    )


class RunPath(BaseModel):
    """The reconciliation in the path."""

    run_id: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.run_id, "RECONCILIATION_NOT_FOUND")


class RunQuery(PageQuery):
    """Which reconciliations, and which page of them."""

    kind: ReconKind | None = Field(None, description="only those of this kind")


class RunPage(BaseModel):
    """Reconciliations, newest first."""

    items: list[RunSummary]
    next_cursor: str | None


class FindingPath(BaseModel):
    """The finding in the path."""

    finding_id: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.finding_id, "FINDING_NOT_FOUND")


class FindingQuery(PageQuery):
    """Which findings, and which page of them."""

    state: FindingState | None = Field(None, description="only those that are in it now")
    kind: ReconKind | None = Field(None, description="only those of this kind")
    finding_class: str | None = Field(None, alias="class", description="only those of this class")
    date: str | None = Field(None, description="only those of this business day")
    run_id: Identity | None = Field(None, description="only those that this reconciliation found")


class FindingPage(BaseModel):
    """Findings, newest first."""

    items: list[FindingAnswer]
    next_cursor: str | None


class ApproveBody(BaseModel):
    """A word on the decision, and what has been decided about."""

    model_config = ConfigDict(extra="forbid")

    comment: Comment | None = None
    amount: Annotated[int, Field(strict=True)] | None = Field(
        None, description="the amount at stake as it was read; 409 `FINDING_OUTDATED` if it is another by now"
    )


class IgnoreBody(BaseModel):
    """Why the difference is left as it is."""

    model_config = ConfigDict(extra="forbid")

    comment: Comment = Field(examples=["a test order of ours"])


@api.post("/v1/reconciliations", summary="Compare now", responses={202: RunAnswer})
@require("admin")
@idempotent
def post_run(body: NewRun) -> Any:
    """A worker compares, writes down what differs, and repairs what is safe. A reconciliation of the same kind and
    moment is answered as it stands, and not done again. Orders take a `date`, other kinds an `as_of`."""
    day = read_day(body.date) if body.date is not None else None
    as_of = body.as_of or services().clock()
    run_id = ask_run(services(), subject_id(), body.kind, as_of, day, principal().key_id)
    return _json(read_run(services(), run_id)), 202


@api.get("/v1/reconciliations", summary="List reconciliations", responses={200: RunPage})
@require("admin")
def list_runs(query: RunQuery) -> Any:
    """Newest first."""
    runs = read_runs(services(), limit=query.limit + 1, before=query.before, kind=query.kind)
    return page(runs, query.limit, _json, lambda run: [int(run.run_id)])


@api.get("/v1/reconciliations/<run_id>", summary="How a reconciliation stands", responses={200: RunAnswer})
@require("admin")
@refuses("RECONCILIATION_NOT_FOUND")
def get_run(path: RunPath) -> Json:
    """Its counts, and its findings by class as they stand now; `/v1/findings?run_id=` has each of them."""
    return _json(read_run(services(), path.number))


@api.get("/v1/findings", summary="List findings", responses={200: FindingPage})
@require("admin")
def list_findings(query: FindingQuery) -> Any:
    """Newest first."""
    findings = read_findings(services(), limit=query.limit + 1, before=query.before, **_of(query))
    return page(findings, query.limit, _json, lambda finding: [int(finding.finding_id)])


@api.get("/v1/findings.csv", summary="Findings as a file", responses={200: _CSV})
@require("admin")
def get_findings_file(query: FindingQuery) -> Response:
    """The newest 10,000 of those asked for. Safe to be opened in a spreadsheet."""
    found = read_findings(services(), limit=MOST_IN_FILE, **_of(query))
    answer = Response(findings_csv(found), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = 'attachment; filename="findings.csv"'
    return answer


@api.get("/v1/findings/<finding_id>", summary="A finding", responses={200: FindingAnswer})
@require("admin")
@refuses("FINDING_NOT_FOUND")
def get_finding(path: FindingPath) -> Json:
    """With both sides of what was compared, and what has become of it."""
    return _json(read_finding(services(), path.number))


@api.post("/v1/findings/<finding_id>/approve", summary="Repair a finding", responses={200: FindingAnswer})
@require("admin")
@refuses(
    "FINDING_NOT_FOUND",
    "FINDING_CLOSED",
    "NO_REPAIR",
    "FINDING_OUTDATED",
    "BUSY",
    "CHANGED",
    "HAS_ARCHIVED",
    "INVALID_STATUS",
    "LOST_CLAIMS",
    "NOTHING_WAITS",
    "NUMBER_TAKEN",
    "OVER_ISSUED",
    as_conflict=(
        "BATCH_NOT_FOUND",
        "CODE_BATCH_NOT_FOUND",
        "COUPON_NOT_FOUND",
        "ORDER_NOT_FOUND",
        "TEMPLATE_NOT_FOUND",
    ),
)
@idempotent
def post_approval(path: FindingPath, body: ApproveBody) -> Json:
    """Do what it proposes, once. Say the `amount` that you have read: a later run may have found another. 409
    `FINDING_CLOSED` with its `state`, `NO_REPAIR`, `FINDING_OUTDATED`, and the refusal of the repair itself where
    things no longer stand as they were found."""
    decided = decision.approve_finding(services(), path.number, principal().key_id, body.comment, body.amount)
    return _json(decided)


@api.post("/v1/findings/<finding_id>/ignore", summary="Leave a finding", responses={200: FindingAnswer})
@require("admin")
@refuses("FINDING_NOT_FOUND", "FINDING_CLOSED")
@idempotent
def post_ignore(path: FindingPath, body: IgnoreBody) -> Json:
    """It is not opened again while it differs in the same way. 409 `FINDING_CLOSED` with its `state`."""
    return _json(decision.ignore_finding(services(), path.number, principal().key_id, body.comment))


def _of(query: FindingQuery) -> Json:
    return {
        "state": query.state,
        "kind": query.kind,
        "finding_class": query.finding_class,
        "day": read_day(query.date) if query.date is not None else None,
        "run_id": query.run_id,
    }


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json")
