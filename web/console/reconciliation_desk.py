"""Reconciliations: what was compared and when, one of them, and comparing now."""

from __future__ import annotations

from typing import Any

from flask import url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import InvalidInput
from coupon_workers.finance.business_day import read_day
from coupon_workers.reconciliation.kind import ReconKind, RunStatus
from coupon_workers.reconciliation.run import ask_run
from coupon_workers.reconciliation.run_reading import RunAnswer, read_run, read_runs
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.form import Form, allotted_id, sent_form, taken_id
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.notice import done
from web.console.progress import progress
from web.console.rendering import render
from web.console.show import number
from web.context import principal, services
from web.path_id import path_id

UNKNOWN = "RECONCILIATION_NOT_FOUND"


@console.get("/reconciliations")
@shown_to(Scope.ADMIN)
def reconciliations() -> Any:
    """Newest first, of a kind if one is asked for."""
    return _page(Form({}))


@console.post("/reconciliations")
@shown_to(Scope.ADMIN)
def ask_reconciliation() -> Any:
    """Have a worker compare now: orders of a day, other kinds as of this moment."""
    run_id, form = taken_id(), sent_form()
    try:
        kind = ReconKind(form["kind"])
        day = read_day(form["date"]) if form["date"] else None
        asked = ask_run(services(), run_id, kind, services().clock(), day, principal().key_id)
    except InvalidInput as error:
        form.add_errors(error.errors)
    except ValueError:
        form.add_errors([("kind", gettext("Choose one."))])
    else:
        return done(url_for("console.reconciliation", run_id=asked), "run_asked")
    return _page(form, 422)


@console.get("/reconciliations/<run_id>")
@shown_to(Scope.ADMIN)
def reconciliation(run_id: str) -> Any:
    """How it stands, and what it found, class by class."""
    run = read_run(services(), path_id(run_id, UNKNOWN))
    return render("reconciliation.html", run=run, moving=moving_of(run))


@console.get("/data/reconciliations/<run_id>")
@shown_to(Scope.ADMIN)
def reconciliation_data(run_id: str) -> dict[str, Any]:
    """What of it moves."""
    return moving_of(read_run(services(), path_id(run_id, UNKNOWN)))


def _page(form: Form, http_status: int = 200) -> Any:
    kind = asked_word(ReconKind, "kind")
    found = read_runs(services(), limit=PAGE_SIZE + 1, before=page_before(), kind=kind)
    listing = Listing(found, lambda run: [int(run.run_id)])
    shown = {"listing": listing, "kind": kind, "kinds": list(ReconKind), "form": form, "allotted": allotted_id()}
    return render("reconciliations.html", http_status, **shown)


def moving_of(run: RunAnswer) -> dict[str, Any]:
    """What of a run moves while it goes on."""
    names = ("examined", "found", "opened", "resolved")
    texts = {name: number(getattr(run, name)) for name in names}
    return progress(run.status.value, run.status in (RunStatus.DONE, RunStatus.FAILED), 0, {}, texts)
