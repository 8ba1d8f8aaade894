"""Allow and block lists: who is on them, putting somebody on, taking off."""

from __future__ import annotations

from typing import Any, get_args

from flask import request, url_for
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.errors import NotFound
from coupon_workers.risk import listing as lists
from coupon_workers.risk.listing import ListName
from coupon_workers.risk.policy import Dimension
from coupon_workers.templates.whole_body import errors_of
from web.console import field_reading as read
from web.console.blueprint import console
from web.console.form import Form, sent_form
from web.console.guard import shown_to
from web.console.language import N_
from web.console.listing import PAGE_SIZE, Listing, cursor_of
from web.console.notice import done
from web.console.rendering import render
from web.console.show import viewer_zone
from web.context import principal, services
from web.risk_api import EntryBody

OVER = N_("It must not be over already.")


@console.get("/risk-lists")
@shown_to(Scope.ADMIN)
def risk_lists() -> Any:
    """Entries in force of the list ``?name=``; ``?put=`` and ``?kind=`` fill in the form."""
    put = {"value": request.args.get("put", ""), "dimension": request.args.get("kind", "")}
    return _page(_list(), Form(put))


@console.post("/risk-lists")
@shown_to(Scope.ADMIN)
def list_risk() -> Any:
    """Put somebody on, off the other list."""
    which, form = _list(), sent_form()
    body = _read(form)
    if body is None:
        return _page(which, form, 422)
    lists.put_entry(
        services(),
        which,
        body.dimension,
        body.value,
        principal().key_id,
        expires_at=body.expires_at,
        comment=body.comment,
    )
    return done(url_for("console.risk_lists", name=which), "listed")


@console.post("/risk-lists/take-off")
@shown_to(Scope.ADMIN)
def unlist_risk() -> Any:
    """Take somebody off."""
    which, dimension = _list(), _dimension(request.form.get("dimension", ""))
    if dimension is None:
        raise NotFound("ENTRY_NOT_FOUND", "there is no such dimension")
    lists.take_off(services(), which, dimension, request.form.get("value", ""), principal().key_id)
    return done(url_for("console.risk_lists", name=which), "unlisted")


def _list() -> ListName:
    name = request.args.get("name", "block")
    for known in get_args(ListName):
        if name == known:
            return known  # type: ignore[no-any-return]  # one of the literal's own values
    raise NotFound("NOT_FOUND", f"there is no list {name}")


def _dimension(name: str) -> Dimension | None:
    return next((known for known in get_args(Dimension) if known == name), None)


def _read(form: Form) -> EntryBody | None:
    body: dict[str, Any] = {
        "dimension": form["dimension"],
        "value": form["value"],
        "comment": form["comment"] or None,
        "expires_at": None,
    }
    try:
        body["expires_at"] = read.moment(form["expires_at"], viewer_zone())
    except read.FieldError as error:
        form.add_errors([("expires_at", str(error))])
    try:
        entry = EntryBody.model_validate(body)
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return None
    if entry.expires_at is not None and entry.expires_at <= services().clock():
        form.add_errors([("expires_at", OVER)])
    return None if form.errors else entry


def _page(name: ListName, form: Form, http_status: int = 200) -> Any:
    asked = {part: request.args.get(part, "").strip() for part in ("dimension", "q")}
    position = cursor_of(str, str)
    found = lists.read_entries(
        services(),
        name,
        limit=PAGE_SIZE + 1,
        after=(position[0], position[1]) if position else ("", ""),
        dimension=_dimension(asked["dimension"]),
        search=asked["q"].replace("\x00", "") or None,
    )
    shown = Listing(found, lambda entry: [entry.dimension, entry.value])
    return render("risk_lists.html", http_status, name=name, form=form, asked=asked, listing=shown)
