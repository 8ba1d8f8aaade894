"""A new batch: of a file or of an expression over tags, sent as the API takes it, with what is wrong at its field."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from flask import request, url_for
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.campaigns.new_batch import NewBatch, create_batch
from coupon_workers.campaigns.tag_expression import TagExpressionError
from coupon_workers.errors import AudienceFileError, Conflict, InvalidInput, NotFound
from coupon_workers.field_message import REQUIRED
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template_answer import TemplateAnswer
from coupon_workers.templates.template_status import TemplateStatus
from coupon_workers.templates.whole_body import errors_of
from web.batch_model import BatchFields
from web.console import field_reading as read
from web.console.batch_word import FILE_WORDS
from web.console.blueprint import console
from web.console.form import Form, allotted_id, taken_id
from web.console.guard import shown_to
from web.console.language import N_, gettext
from web.console.notice import done
from web.console.rendering import render
from web.console.show import viewer_zone
from web.console.word import reason_of
from web.context import principal, services
from web.problem import ProblemError
from web.upload import FORM_TYPE, takes_upload, uploaded
from web.upload_form import MOST_FILE, Upload

MOST_CHOICES = 200
"""Templates to choose from, of each status."""

LOOK = timedelta(minutes=10)
"""Until a batch starts, unless its form says otherwise: time to look at its counts, and to cancel it."""

BOTH = N_("Choose a file or write an expression, not both.")


@console.get("/batches/new")
@shown_to(Scope.ADMIN)
def new_batch() -> Any:
    """The form, to start in a while, so that the counts are seen first; ``?template_id=`` chooses."""
    start = read.wall_clock((services().clock() + LOOK).replace(second=0, microsecond=0), viewer_zone())
    chosen = {"template_id": request.args.get("template_id", ""), "policy": "all_or_nothing", "start_at": start}
    return _page(Form(chosen), allotted_id())


@console.post("/batches/new")
@shown_to(Scope.ADMIN)
@takes_upload
def make_batch() -> Any:
    """Make it, or show what is wrong with it."""
    upload = uploaded()
    if upload is None:
        raise ProblemError(415, "UNSUPPORTED_MEDIA_TYPE", f"the body must be {FORM_TYPE}")
    batch_id = taken_id(upload.fields)
    form = Form({name: value.strip() for name, value in upload.fields.items()})
    batch = _read(form, upload, batch_id)
    if batch is not None:
        _make(form, batch, upload)
    if form.errors:
        return _page(form, upload.fields["allotted"], 422)
    return done(url_for("console.batch", batch_no=batch_id), "batch_made")


def _read(form: Form, upload: Upload, batch_id: int) -> NewBatch | None:
    """What is asked for; None, with errors in the form, for what cannot be."""
    has_file, tags = bool(upload.file_name), form["tags"]
    form.add_errors(upload.errors)
    if has_file and tags:
        form.add_errors([("tags", BOTH)])
    elif not has_file and not tags:
        form.add_errors([("file", REQUIRED)])
    body: dict[str, Any] = {name: form[name] for name in ("template_id", "name", "policy")}
    try:
        body["start_at"] = read.moment(form["start_at"], viewer_zone())
    except read.FieldError as error:
        form.add_errors([("start_at", str(error))])
    try:
        fields = BatchFields.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None
    return NewBatch(
        batch_id=batch_id,
        template_id=fields.template_id,
        name=fields.name,
        policy=fields.batch_policy,
        tags=tags or None,
        file_name=upload.file_name or None,
        start_at=fields.start_at and fields.start_at.astimezone(UTC),
    )


def _make(form: Form, batch: NewBatch, upload: Upload) -> None:
    if form.errors:
        return
    try:
        create_batch(services(), batch, None if batch.tags else upload.file, principal().key_id)
    except AudienceFileError as error:
        form.add_errors([("file", FILE_WORDS.get(error.code, error.errors[0][1]))])
    except TagExpressionError as error:
        form.add_errors([("tags", gettext("At character %s it cannot be read:") % error.position), *error.errors])
    except InvalidInput as error:
        form.add_errors(error.errors)
    except (Conflict, NotFound) as error:
        form.add_errors([("template_id", reason_of(error))])


def _page(form: Form, allotted: str, http_status: int = 200) -> Any:
    return render(
        "new_batch.html",
        http_status,
        form=form,
        allotted=allotted,
        templates=open_templates(),
        most_bytes=MOST_FILE,
    )


def open_templates() -> list[TemplateAnswer]:
    """What may be given away now or soon: active ones, then those that are about to begin."""
    found = [
        template
        for status in (TemplateStatus.ACTIVE, TemplateStatus.SCHEDULED)
        for template in reading.read_page(services(), limit=MOST_CHOICES, status=status)
    ]
    return [template for template in found if template.type != "random_amount"]
