"""The log of verdicts: by user, by rule, by template."""

from __future__ import annotations

from typing import Any

from flask import request
from pydantic import ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.risk.verdict_reading import VerdictAnswer, read_verdicts
from coupon_workers.templates.template_name import read_names
from coupon_workers.templates.whole_body import errors_of
from web.console.blueprint import console
from web.console.form import Form
from web.console.guard import shown_to
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.context import services
from web.risk_api import VerdictQuery

FIELDS = {"user": "user_id", "rule": "rule", "template_id": "template_id"}


@console.get("/risk-verdicts")
@shown_to(Scope.ADMIN)
def risk_verdicts() -> Any:
    """Newest first."""
    aliases = {field: name for name, field in FIELDS.items()}
    form = Form({name: request.args.get(name, "").strip() for name in FIELDS}, aliases)
    found = _found(form)
    listing = Listing(found, lambda verdict: [int(verdict.verdict_id)])
    names = read_names(services(), [verdict.template_id for verdict in listing.items])
    return render("risk_verdicts.html", 422 if form.errors else 200, form=form, listing=listing, names=names)


def _found(form: Form) -> list[VerdictAnswer]:
    before = page_before()
    try:
        query = VerdictQuery.model_validate({field: form[name] for name, field in FIELDS.items() if form[name]})
    except ValidationError as error:
        form.add_errors(errors_of(error))
        return []
    return read_verdicts(
        services(),
        limit=PAGE_SIZE + 1,
        before=before,
        user_id=query.user_id,
        rule=query.rule,
        template_id=query.template_id,
    )
