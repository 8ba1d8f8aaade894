"""What waits for a second person, with every difference, and deciding about it."""

from __future__ import annotations

from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.approval import desk
from coupon_workers.approval.reading import read_approvals
from coupon_workers.approval.request import ApprovalState
from coupon_workers.approval.waiting import read_waiting
from coupon_workers.errors import InvalidInput
from web.console.blueprint import console
from web.console.form import reason
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.notice import done
from web.console.rendering import render
from web.context import principal, services
from web.path_id import path_id


@console.get("/approvals")
@shown_to(Scope.ADMIN)
def approvals() -> Any:
    """The inbox; ``?state=all`` shows what was decided too. Its first page names what is decided elsewhere."""
    state = None if request.args.get("state") == "all" else ApprovalState.PENDING
    before = page_before()
    found = read_approvals(services(), limit=PAGE_SIZE + 1, before=before, state=state)
    listing = Listing(found, lambda approval: [int(approval.approval_id)])
    elsewhere = read_waiting(services()) if state and before is None else []
    return render("approvals.html", listing=listing, elsewhere=elsewhere, state=state, me=principal().key_id)


@console.post("/templates/<template_id>/decide")
@shown_to(Scope.ADMIN)
def decide(template_id: str) -> Any:
    """Approve, reject or withdraw exactly the request that was looked at."""
    number = path_id(template_id, "TEMPLATE_NOT_FOUND")
    approval_id = path_id(request.form.get("approval_id", ""), "TEMPLATE_NOT_FOUND")
    decision, comment, operator = request.form.get("decision"), reason(), principal().key_id
    if decision == "approved":
        desk.approve(services(), number, operator, approval_id=approval_id, comment=comment)
    elif decision == "withdrawn":
        desk.withdraw(services(), number, operator, comment, approval_id=approval_id)
    elif decision == "rejected" and comment is not None:
        desk.reject(services(), number, operator, comment, approval_id=approval_id)
    else:
        raise InvalidInput([("reason", gettext("say why"))])
    return done(url_for("console.approvals"), decision)
