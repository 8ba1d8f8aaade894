"""The ledger: bookings of a day, of a template, of both or of all."""

from __future__ import annotations

from typing import Any

from flask import request

from coupon_workers.access.principal import Scope
from coupon_workers.errors import InvalidInput
from coupon_workers.finance.business_day import read_day
from coupon_workers.finance.ledger_reading import read_ledger
from coupon_workers.templates.template_name import read_names
from web.books_api import ledger_position, shown_position
from web.console.blueprint import console
from web.console.form import Form
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing
from web.console.rendering import render
from web.context import services
from web.path_id import path_id


@console.get("/ledger")
@shown_to(Scope.ADMIN)
def ledger() -> Any:
    """The latest day first, in it by template."""
    form = Form({name: request.args.get(name, "").strip() for name in ("date", "template_id")})
    day, template_id = None, None
    try:
        day = read_day(form["date"]) if form["date"] else None
        template_id = path_id(form["template_id"], "TEMPLATE_NOT_FOUND") if form["template_id"] else None
    except InvalidInput as error:
        form.add_errors(error.errors)
    before = ledger_position(request.args.get("cursor") or None)
    found = read_ledger(services(), limit=PAGE_SIZE + 1, day=day, template_id=template_id, before=before)
    listing = Listing(found, shown_position)
    names = read_names(services(), [entry.template_id for entry in listing.items])
    return render("ledger.html", 422 if form.errors else 200, listing=listing, names=names, form=form)
