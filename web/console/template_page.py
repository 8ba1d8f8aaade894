"""One template: what it is, how its coupons fare, and what may be done with it in its present status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.approval.reading import ApprovalAnswer, read_approvals
from coupon_workers.approval.request import ApprovalState
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.runtime.services import Services
from coupon_workers.templates import template_desk as desk
from coupon_workers.templates import template_reading as reading
from coupon_workers.templates.template_change import patch_template as change_template
from coupon_workers.templates.template_status import LEAVES, TemplateAction, TemplateStatus
from web.console import field_reading as read
from web.console.blueprint import console
from web.console.form import Form, allotted_id, sent_form, taken_id
from web.console.guard import shown_to
from web.console.notice import done
from web.console.rendering import render
from web.console.template_preview import preview_of
from web.console.word import reason_of
from web.context import principal, services
from web.path_id import path_id

ACTS: dict[str, tuple[Callable[[Services, int], Any], str]] = {
    "pause": (desk.pause_template, "paused"),
    "resume": (desk.resume_template, "resumed"),
    "offline": (desk.take_offline, "offline"),
    "archive": (desk.archive_template, "archived"),
    "preheat": (desk.preheat, "preheated"),
}
"""What one press does, and the notice of it."""


@console.get("/templates/<template_id>")
@shown_to(Scope.ADMIN)
def template(template_id: str) -> Any:
    """Everything about it on one page."""
    return _page(path_id(template_id, "TEMPLATE_NOT_FOUND"))


@console.post("/templates/<template_id>/act")
@shown_to(Scope.ADMIN)
def act_on_template(template_id: str) -> Any:
    """Pause, resume, take offline, put away, load into Redis."""
    number, name = path_id(template_id, "TEMPLATE_NOT_FOUND"), request.form.get("act", "")
    if name not in ACTS:
        raise NotFound("NOT_FOUND", f"there is no act {name}")
    act, notice = ACTS[name]
    act(services(), number)
    return done(_address(number), notice)


@console.post("/templates/<template_id>/publish")
@shown_to(Scope.ADMIN)
def publish_template(template_id: str) -> Any:
    """Open a draft for claiming, or hand it in to a second person where one is needed."""
    number = path_id(template_id, "TEMPLATE_NOT_FOUND")
    published = desk.publish_template(services(), number, principal().key_id)
    waits = published.status is TemplateStatus.PENDING_APPROVAL
    return done(_address(number), "handed_in" if waits else "published")


@console.post("/templates/<template_id>/clone")
@shown_to(Scope.ADMIN)
def clone_template(template_id: str) -> Any:
    """A new draft of the same rules."""
    number, clone_id = path_id(template_id, "TEMPLATE_NOT_FOUND"), taken_id()
    desk.clone_template(services(), number, principal().key_id, clone_id=clone_id)
    return done(_address(clone_id), "created")


@console.post("/templates/<template_id>/adjust")
@shown_to(Scope.ADMIN)
def adjust_template(template_id: str) -> Any:
    """Another total, a later or an earlier end: done at once, or asked for where a second person is needed."""
    number, form = path_id(template_id, "TEMPLATE_NOT_FOUND"), sent_form()
    zone = reading.read_one(services(), number).timezone
    try:
        changes = {
            "total_quantity": read.number(form["total_quantity"]),
            "claim_end": read.moment(form["claim_end"], zone),
        }
        given = {name: value for name, value in changes.items() if value is not None}
        answer = change_template(services(), number, given, principal().key_id)
    except read.FieldError as error:
        form.add_errors([("total_quantity", str(error))])
    except InvalidInput as invalid:
        form.add_errors(invalid.errors)
    except Conflict as conflict:
        form.add_errors([("total_quantity", reason_of(conflict))])
    else:
        return done(_address(number), "handed_in" if isinstance(answer, ApprovalAnswer) else "changed")
    return _page(number, form)


def _page(number: int, form: Form | None = None) -> Any:
    found = reading.read_one(services(), number)
    end = read.wall_clock(found.claim_end, found.timezone)
    return render(
        "template.html",
        422 if form else 200,
        template=found,
        stats=reading.read_stats(services(), number),
        waiting=read_approvals(services(), limit=1, state=ApprovalState.PENDING, template_id=number),
        may={action.value for action in TemplateAction if found.status in LEAVES[action]},
        form=form or Form({"total_quantity": str(found.total_quantity), "claim_end": end}),
        preview=preview_of(found, Form({})),
        allotted=allotted_id(),
    )


def _address(number: int) -> str:
    return url_for("console.template", template_id=number)
