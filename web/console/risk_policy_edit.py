"""Making a risk policy, and changing one: never over a version that its editor has not seen."""

from __future__ import annotations

from typing import Any

from flask import request, url_for
from pydantic import BaseModel, ValidationError

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict
from coupon_workers.risk import policy_desk
from coupon_workers.risk.policy import MOST_RULES, PolicyName, RiskPolicyBody
from coupon_workers.risk.policy_reading import read_policy
from coupon_workers.templates.whole_body import errors_of
from web.console.blueprint import console
from web.console.form import Form
from web.console.guard import shown_to
from web.console.language import N_, gettext
from web.console.notice import done
from web.console.rendering import render
from web.console.risk_policies import sent_version
from web.console.risk_policy_form import UNITS, body_of, form_of, new_form, rows_of, sent_policy_form
from web.context import principal, services

MORE = "more"
"""The button that only gives room for more rules."""

TAKEN = N_("There is a policy of this name already.")


class _Named(BaseModel):
    name: PolicyName


@console.get("/new-risk-policy")
@shown_to(Scope.ADMIN)
def new_risk_policy() -> Any:
    """The form, with a first rule."""
    return _page(new_form(), None)


@console.post("/new-risk-policy")
@shown_to(Scope.ADMIN)
def make_risk_policy() -> Any:
    """Have it in force, unless there is one of its name."""
    form = sent_policy_form()
    return _put(form, None, form["name"])


@console.get("/risk-policies/<name>/edit")
@shown_to(Scope.ADMIN)
def edit_risk_policy(name: str) -> Any:
    """The form of the version in force."""
    found = read_policy(services(), name)
    assert found.policy is not None  # what is in force was not taken away
    return _page(form_of(found.policy), name, version=found.version)


@console.post("/risk-policies/<name>/edit")
@shown_to(Scope.ADMIN)
def change_risk_policy(name: str) -> Any:
    """Have the next version in force."""
    return _put(sent_policy_form(), name, name)


def _put(form: Form, known: str | None, name: str) -> Any:
    version = sent_version() if known else 0
    if request.form.get("do") == MORE:
        return _page(form, known, version=version)
    body = _read(form, name)
    if body is None:
        return _page(form, known, 422, version=version)
    try:
        policy_desk.put_policy(services(), name, body, principal().key_id, if_version=version)
    except Conflict as error:
        if known is None:
            form.add_errors([("name", gettext(TAKEN))])
        return _page(form, known, 409, version=version, in_force=error.evidence.get("version"))
    return done(url_for("console.risk_policy", name=name), "policy_set")


def _read(form: Form, name: str) -> RiskPolicyBody | None:
    body = body_of(form)
    for model, values in ((_Named, {"name": name}), (RiskPolicyBody, body)):
        try:
            model.model_validate(values)
        except ValidationError as error:
            form.add_errors(errors_of(error))
    return None if form.errors else RiskPolicyBody.model_validate(body)


def _page(form: Form, known: str | None, http_status: int = 200, *, version: int = 0, in_force: object = None) -> Any:
    return render(
        "risk_policy_form.html",
        http_status,
        form=form,
        known=known,
        version=version,
        in_force=in_force,
        rows=rows_of(form),
        most=MOST_RULES,
        units=[(unit, gettext(word)) for unit, word in UNITS.items()],
    )
