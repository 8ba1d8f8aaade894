"""Findings: what differs, with both sides, the money at stake and what is proposed; approved or left with a reason."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import InvalidInput
from coupon_workers.reconciliation import decision
from coupon_workers.reconciliation.finding_reading import read_finding, read_findings
from coupon_workers.reconciliation.findings_csv import findings_csv
from coupon_workers.reconciliation.kind import FindingState, ReconKind
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.finding_fact import facts_of, sides_of
from web.console.finding_word import FINDING_CLASSES
from web.console.form import reason
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.notice import done
from web.console.rendering import render
from web.context import principal, services
from web.path_id import path_id
from web.reconciliations_api import MOST_IN_FILE

UNKNOWN = "FINDING_NOT_FOUND"

ALL = "all"
"""The tab of every state; the inbox shows open ones."""


@console.get("/findings")
@shown_to(Scope.ADMIN)
def findings() -> Any:
    """Open ones, unless another state is asked for; of a kind, a class, a run."""
    before, filters = page_before(), _filters()
    found = read_findings(services(), limit=PAGE_SIZE + 1, before=before, **filters)
    listing = Listing(found, lambda finding: [int(finding.finding_id)])
    return render(
        "findings.html",
        listing=listing,
        filters=filters,
        asked={name: text for name, text in request.args.items() if name in ("state", "kind", "class", "run") and text},
        states=list(FindingState),
        kinds=list(ReconKind),
        classes=FINDING_CLASSES,
        known={name for names in FINDING_CLASSES.values() for name in names},
    )


@console.get("/findings.csv")
@shown_to(Scope.ADMIN)
def findings_file() -> Response:
    """The newest 10,000 of those asked for."""
    answer = Response(
        findings_csv(read_findings(services(), limit=MOST_IN_FILE, **_filters())),
        content_type="text/csv; charset=utf-8",
    )
    answer.headers["Content-Disposition"] = 'attachment; filename="findings.csv"'
    return answer


@console.get("/findings/<finding_id>")
@shown_to(Scope.ADMIN)
def finding(finding_id: str) -> Any:
    """Both sides of it."""
    found = read_finding(services(), path_id(finding_id, UNKNOWN))
    return render(
        "finding.html",
        finding=found,
        sides=sides_of(found.evidence, found.currency),
        evidence=facts_of(found.evidence, found.currency),
        outcome=facts_of(found.outcome or {}, found.currency),
    )


@console.post("/findings/<finding_id>/approve")
@shown_to(Scope.ADMIN)
def approve_finding(finding_id: str) -> Any:
    """Do what it proposes, about the amount that was read."""
    number, read = path_id(finding_id, UNKNOWN), request.form.get("amount", "")
    amount = int(read) if read.removeprefix("-").isdecimal() else None
    decision.approve_finding(services(), number, principal().key_id, reason(), amount)
    return done(url_for("console.finding", finding_id=number), "finding_approved")


@console.post("/findings/<finding_id>/ignore")
@shown_to(Scope.ADMIN)
def ignore_finding(finding_id: str) -> Any:
    """Leave it, with a reason."""
    number, why = path_id(finding_id, UNKNOWN), reason()
    if why is None:
        raise InvalidInput([("reason", gettext("say why"))])
    decision.ignore_finding(services(), number, principal().key_id, why)
    return done(url_for("console.finding", finding_id=number), "finding_ignored")


def _filters() -> dict[str, Any]:
    run = request.args.get("run", "")
    return {
        "state": asked_word(FindingState, "state", FindingState.OPEN),
        "kind": asked_word(ReconKind, "kind"),
        "finding_class": request.args.get("class", "").strip() or None,
        "run_id": path_id(run, "RECONCILIATION_NOT_FOUND") if run else None,
    }
