"""Campaign batches over HTTP (API.md, Campaign batches): made of a file or of tags, watched, stopped and released."""

from __future__ import annotations

from typing import Any, BinaryIO

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field, ValidationError

from coupon_workers.campaigns import batch_control as control
from coupon_workers.campaigns import batch_reading as reading
from coupon_workers.campaigns.batch import BatchStatus
from coupon_workers.campaigns.batch_failures import failures_csv
from coupon_workers.campaigns.batch_reading import BatchAnswer
from coupon_workers.campaigns.new_batch import NewBatch, create_batch
from coupon_workers.errors import AudienceFileError
from web.auth import require
from web.batch_model import Identity, TaggedBatch, described, read_form_fields
from web.context import principal, services
from web.error_answer import validation_problem
from web.idempotent import idempotent, subject_id
from web.page import PageQuery, page
from web.path_id import path_id
from web.problem import ProblemError
from web.problem_code import refuses
from web.upload import takes_upload, uploaded

api = APIBlueprint(
    "batches", __name__, abp_tags=[Tag(name="Campaign batches", description="A template given to an audience")]
)

Json = dict[str, Any]

_CSV = {"description": "row, value, reason", "content": {"text/csv": {"schema": {"type": "string"}}}}


class NewBatchAnswer(BaseModel):
    """A batch that has been taken on."""

    batch_no: str
    status: BatchStatus


class BatchPath(BaseModel):
    """The batch in the path."""

    batch_no: str

    @property
    def number(self) -> int:
        """The identity. Raises ``NotFound`` for a text that is none."""
        return path_id(self.batch_no, "BATCH_NOT_FOUND")


class BatchQuery(PageQuery):
    """Which batches, and which page of them."""

    status: BatchStatus | None = Field(None, description="only those that are in it now")
    template_id: Identity | None = Field(None, description="only those of this template")


class BatchPage(BaseModel):
    """Batches, newest first."""

    items: list[BatchAnswer]
    next_cursor: str | None


def _json(answer: BaseModel) -> Json:
    return answer.model_dump(mode="json")


@api.post(
    "/v1/batches",
    summary="Give a template to an audience",
    responses={202: NewBatchAnswer},
    openapi_extensions=described(),
)
@require("admin")
@refuses("TEMPLATE_NOT_FOUND", "TEMPLATE_NOT_ACTIVE", "TYPE_NOT_OFFERED")
@takes_upload
@idempotent
def post_batch() -> Any:
    """A form with a file of users, or JSON with an expression over their tags. Nothing is kept of a file that cannot
    be read: 422 with its `file_code`. 409 `TEMPLATE_NOT_ACTIVE`, with `current_status`, `TYPE_NOT_OFFERED`.
    """
    form = uploaded()
    if form is not None:
        fields = read_form_fields(form)
        return _create(_asked(fields, file_name=form.file_name), form.file)
    try:
        tagged = TaggedBatch.model_validate(request.get_json())
    except ValidationError as error:
        return validation_problem(error)
    return _create(_asked(tagged, tags=tagged.tags), None)


def _asked(fields: Any, **audience: str) -> NewBatch:
    return NewBatch(
        batch_id=subject_id(),
        template_id=fields.template_id,
        name=fields.name,
        policy=fields.batch_policy,
        start_at=fields.start_at,
        **audience,
    )


def _create(batch: NewBatch, content: BinaryIO | None) -> tuple[Json, int]:
    try:
        return create_batch(services(), batch, content, principal().key_id), 202
    except AudienceFileError as error:
        detail = f"the file {error.errors[0][1]}"
        raise ProblemError(422, "VALIDATION_FAILED", detail, errors=error.errors, file_code=error.code) from None


@api.get("/v1/batches", summary="List batches", responses={200: BatchPage})
@require("admin")
def list_batches(query: BatchQuery) -> Any:
    """Newest first."""
    batches = reading.read_page(
        services(), limit=query.limit + 1, before=query.before, status=query.status, template_id=query.template_id
    )
    return page(batches, query.limit, _json, lambda batch: [int(batch.batch_no)])


@api.get("/v1/batches/<batch_no>", summary="How a batch stands", responses={200: BatchAnswer})
@require("admin")
@refuses("BATCH_NOT_FOUND")
def get_batch(path: BatchPath) -> Json:
    """Its counts at this moment. In the end `rows` = `issued` + `duplicate` + `refused` + `invalid`."""
    return _json(reading.read_one(services(), path.number))


@api.post("/v1/batches/<batch_no>/approve", summary="Approve a batch", responses={200: BatchAnswer})
@require("admin")
@refuses("BATCH_NOT_FOUND", "OWN_BATCH", "INVALID_STATUS")
@idempotent
def approve_batch(path: BatchPath) -> Json:
    """Let a batch start that needs it. 409 `OWN_BATCH` for the key that made it, `INVALID_STATUS`."""
    return _moved(control.approve_batch, path)


@api.post("/v1/batches/<batch_no>/pause", summary="Pause a batch", responses={200: BatchAnswer})
@require("admin")
@refuses("BATCH_NOT_FOUND", "INVALID_STATUS")
@idempotent
def pause_batch(path: BatchPath) -> Json:
    """It keeps its stock and its place, and issues nothing until it is resumed. 409 `INVALID_STATUS`."""
    return _moved(control.pause_batch, path)


@api.post("/v1/batches/<batch_no>/resume", summary="Resume a batch", responses={200: BatchAnswer})
@require("admin")
@refuses("BATCH_NOT_FOUND", "INVALID_STATUS")
@idempotent
def resume_batch(path: BatchPath) -> Json:
    """It goes on where it stopped. 409 `INVALID_STATUS`."""
    return _moved(control.resume_batch, path)


@api.post("/v1/batches/<batch_no>/cancel", summary="Cancel a batch", responses={200: BatchAnswer})
@require("admin")
@refuses("BATCH_NOT_FOUND", "INVALID_STATUS")
@idempotent
def cancel_batch(path: BatchPath) -> Json:
    """For good: coupons that are issued stay, what is left of its stock is given back. 409 `INVALID_STATUS`."""
    return _moved(control.cancel_batch, path)


def _moved(move: Any, path: BatchPath) -> Json:
    move(services(), path.number, principal().key_id)
    return _json(reading.read_one(services(), path.number))


@api.get("/v1/batches/<batch_no>/failures.csv", summary="Rows without a coupon", responses={200: _CSV})
@require("admin")
@refuses("BATCH_NOT_FOUND", "FAILURES_NOT_KEPT")
def get_failures(path: BatchPath) -> Response:
    """Row number, value and reason, in the order of the audience. Safe to be opened in a spreadsheet. 404
    `FAILURES_NOT_KEPT` when the batch ended more than 90 days ago."""
    answer = Response(failures_csv(services(), path.number), content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="batch-{path.number}-failures.csv"'
    return answer
