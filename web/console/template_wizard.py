"""Making a template, and changing a draft, with a preview of what it would do."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.risk.policy_reading import read_policies
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.currency import EXPONENTS
from coupon_workers.templates.field_type import known_timezones
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_change import patch_template as change_template
from coupon_workers.templates.template_status import TemplateStatus
from coupon_workers.templates.whole_body import errors_of
from web.console.blueprint import console
from web.console.form import Form, allotted_id, sent_form, taken_id
from web.console.guard import shown_to
from web.console.notice import done
from web.console.rendering import render
from web.console.template_form import ALIASES, body_of, form_of, new_form
from web.console.template_preview import CART_LINES, Preview, preview_of
from web.console.word import REASONS
from web.context import principal, services
from web.path_id import path_id

LOOK = "look"
"""The button that only shows what the form would make."""

MOST_POLICIES = 200
"""A shop has a handful."""


@console.get("/templates/new")
@shown_to(Scope.ADMIN)
def new_template() -> Any:
    """The empty form."""
    return _page(new_form(services().clock()), allotted=allotted_id())


@console.post("/templates/new")
@shown_to(Scope.ADMIN)
def create_template() -> Any:
    """Make the draft, or show what is wrong with it; or only what it would do."""
    template_id, form = taken_id(), sent_form(ALIASES)
    template, _ = _read(form)
    if template is None or request.form.get("do") == LOOK:
        return _page(form, 200 if template else 422, allotted=request.form["allotted"])
    try:
        desk.create_template(services(), template, principal().key_id, template_id=template_id)
    except Conflict as error:
        form.add_errors([("template_no", REASONS.get(error.code, str(error)))])
        return _page(form, 409, allotted=request.form["allotted"])
    return done(url_for("console.template", template_id=template_id), "created")


@console.get("/templates/<template_id>/edit")
@shown_to(Scope.ADMIN)
def edit_template(template_id: str) -> Any:
    """The form of a draft."""
    template = reading.read_one(services(), path_id(template_id, "TEMPLATE_NOT_FOUND"))
    if template.status is not TemplateStatus.DRAFT:
        raise Conflict("NOT_PATCHABLE", "the template was published")
    return _page(form_of(template), draft=template_id)


@console.post("/templates/<template_id>/edit")
@shown_to(Scope.ADMIN)
def change_draft(template_id: str) -> Any:
    """Change the draft to what the form says."""
    number, form = path_id(template_id, "TEMPLATE_NOT_FOUND"), sent_form(ALIASES)
    template, body = _read(form)
    if template is None or request.form.get("do") == LOOK:
        return _page(form, 200 if template else 422, draft=template_id)
    change_template(services(), number, body, principal().key_id)
    return done(url_for("console.template", template_id=number), "changed")


@console.post("/templates/preview")
@shown_to(Scope.ADMIN)
def preview_template() -> Response:
    """The preview alone, or what stands in its way, for the form's script: it writes nothing."""
    form = sent_form(ALIASES)
    return render("template_preview.html", preview=_preview(form), faults=form.faults)


def _read(form: Form) -> tuple[TemplateBody | None, dict[str, Any]]:
    """The template and its body; None, with errors in the form, for one that cannot be."""
    body = body_of(form)
    try:
        template = TemplateBody.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None, body
    return (None if form.errors else template), body


def _preview(form: Form) -> Preview | None:
    """None, with errors in the form, for a template that cannot be, or a cart that cannot be read."""
    template, _ = _read(form)
    if template is None:
        return None
    try:
        return preview_of(template, form)
    except InvalidInput as error:
        form.add_errors(error.errors)
        return None


def _page(form: Form, http_status: int = 200, *, allotted: str = "", draft: str | None = None) -> Response:
    looked = Form(form.values, ALIASES)
    preview = _preview(looked) if request.method == "POST" or draft is not None else None
    if request.form.get("do") == LOOK:
        form = looked  # the sample cart is told of too: it is part of what was asked for
    return render(
        "template_wizard.html",
        http_status,
        form=form,
        allotted=allotted,
        draft=draft,
        preview=preview,
        faults=looked.faults,
        currencies=sorted(EXPONENTS),
        timezones=sorted(known_timezones()),
        cart_lines=CART_LINES,
        policies=_policies(form["risk_policy"]),
    )


def _policies(named: str) -> list[str]:
    """Names of risk policies to choose from; the one that is named stays among them."""
    known = {policy.name for policy in read_policies(services(), limit=MOST_POLICIES)}
    return sorted(known | ({named} - {""}))
