"""The ledger: bookings of a day, of a template, of both or of all; or of a user, and of one of the user's orders."""

from __future__ import annotations

from typing import Any

from flask import request

from coupon_workers.access.principal import Scope
from coupon_workers.errors import InvalidInput
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.ledger_reading import LedgerAnswer, Position, read_ledger
from coupon_workers.finance.user_ledger import read_user_ledger
from coupon_workers.templates.template_name import read_names
from web.books_api import ledger_position, shown_position
from web.console.blueprint import console
from web.console.form import Form
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing
from web.console.rendering import render
from web.context import services
from web.path_id import path_id

FIELDS = ("date", "template_id", "user_id", "order_no")


@console.get("/ledger")
@shown_to(Scope.ADMIN)
def ledger() -> Any:
    """The latest day first, in it by template; a user's by time. A user or an order is looked for over all days."""
    form = Form({name: request.args.get(name, "").strip() for name in FIELDS})
    before = ledger_position(request.args.get("cursor") or None)
    found = _of_user(form, before) if form["user_id"] or form["order_no"] else _of_day(form, before)
    listing = Listing(found, shown_position)
    names = read_names(services(), [entry.template_id for entry in listing.items])
    is_narrow = any(form[name] for name in FIELDS)
    status = 422 if form.errors else 200
    return render("ledger.html", status, listing=listing, names=names, form=form, is_narrow=is_narrow)


def _of_user(form: Form, before: Position | None) -> list[LedgerAnswer]:
    user_id, order_no = form["user_id"], form["order_no"]
    if not user_id:
        form.add_errors([("user_id", gettext("say whose order it is: two users may have one of the same number"))])
    if form["date"] or form["template_id"]:
        form.add_errors([("date", gettext("leave day and template empty beside a user"))])
    if form.errors or not (user_id + order_no).isprintable():
        return []
    last = before[2] if before else None
    return read_user_ledger(services(), user_id, order_no=order_no or None, limit=PAGE_SIZE + 1, before=last)


def _of_day(form: Form, before: Position | None) -> list[LedgerAnswer]:
    day, template_id = None, None
    try:
        day = read_day(form["date"]) if form["date"] else None
        template_id = path_id(form["template_id"], "TEMPLATE_NOT_FOUND") if form["template_id"] else None
    except InvalidInput as error:
        form.add_errors(error.errors)
    return read_ledger(services(), limit=PAGE_SIZE + 1, day=day, template_id=template_id, before=before)
