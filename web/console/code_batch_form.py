"""A new batch of codes, with a hint of how many there can be of its form."""

from __future__ import annotations

from typing import Any

from flask import request, url_for
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.codes.code_batch import LARGEST
from coupon_workers.codes.code_form import LONGEST, SHORTEST, CodeForm
from coupon_workers.codes.new_code_batch import NewCodeBatch, create_code_batch
from coupon_workers.errors import CapacityError, Conflict, InvalidInput, NotFound
from coupon_workers.templates.whole_body import errors_of
from web.codes_model import CodeBatchBody
from web.console import field_reading as read
from web.console.batch_form import open_templates
from web.console.blueprint import console
from web.console.form import Form, allotted_id, sent_form, taken_id
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.notice import done
from web.console.rendering import render
from web.console.show import number, viewer_zone
from web.console.word import reason_of
from web.context import principal, services


@console.get("/code-batches/new")
@shown_to(Scope.ADMIN)
def new_code_batch() -> Any:
    """The empty form; ``?template_id=`` chooses."""
    chosen = {"template_id": request.args.get("template_id", ""), "length": "12", "check_digit": "on"}
    return _page(Form(chosen), allotted_id())


@console.post("/code-batches/new")
@shown_to(Scope.ADMIN)
def make_code_batch() -> Any:
    """Make it, or show what is wrong with it."""
    batch_id, form = taken_id(), sent_form()
    batch = _read(form, batch_id)
    if batch is not None:
        _make(form, batch)
    if form.errors:
        return _page(form, request.form["allotted"], 422)
    return done(url_for("console.code_batch", code_batch_id=batch_id), "codes_made")


def _read(form: Form, batch_id: int) -> NewCodeBatch | None:
    body: dict[str, Any] = {
        "template_id": form["template_id"],
        "prefix": form["prefix"],
        "channel": form["channel"] or None,
        "check_digit": bool(form["check_digit"]),
    }
    readers = {"quantity": read.number, "length": read.number, "expires_at": _expiry}
    for name, reader in readers.items():
        try:
            body[name] = reader(form[name])
        except read.FieldError as error:
            form.add_errors([(name, str(error))])
    try:
        asked = CodeBatchBody.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None
    if form.errors:
        return None
    return NewCodeBatch(batch_id, asked.template_id, asked.quantity, asked.form, asked.channel, asked.expires_at)


def _expiry(text: str) -> str | None:
    return read.moment(text, viewer_zone())


def _make(form: Form, batch: NewCodeBatch) -> None:
    try:
        create_code_batch(services(), batch, principal().key_id)
    except CapacityError as error:
        told = gettext("Of this form at most %s more can be made, or they would be easy to guess. Make them longer.")
        form.add_errors([("quantity", told % number(error.allowed))])
    except InvalidInput as error:
        form.add_errors(error.errors)
    except (Conflict, NotFound) as error:
        field = "quantity" if error.code == "NOT_ENOUGH_STOCK" else "template_id"
        form.add_errors([(field, reason_of(error))])


def _page(form: Form, allotted: str, http_status: int = 200) -> Any:
    return render(
        "new_code_batch.html",
        http_status,
        form=form,
        allotted=allotted,
        templates=open_templates(),
        allowed={drawn: _allowed(drawn) for drawn in range(SHORTEST - 1, LONGEST + 1)},
        largest=LARGEST,
        lengths=(SHORTEST, LONGEST),
    )


def _allowed(drawn: int) -> int:
    """Codes with so many characters at random, as many as one batch may have."""
    return min(CodeForm(drawn, check_digit=False).allowed, LARGEST)
