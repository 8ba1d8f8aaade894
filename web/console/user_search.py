"""A user's wallet: what a clerk looks at when somebody calls."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.claiming.claim_request import user_id_problem
from coupon_workers.coupons.coupon_trail import owner_of
from coupon_workers.coupons.transition import CouponStatus
from coupon_workers.errors import NotFound
from coupon_workers.wallet.wallet import MAX_COUPON_ID, read_wallet
from web.console.asked_word import asked_word
from web.console.blueprint import console
from web.console.coupon_desk import NOT_FOUND
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, page_before
from web.console.rendering import render
from web.context import services
from web.path_id import path_id


@console.get("/users")
@shown_to(Scope.ADMIN)
def users() -> Any:
    """A field to search by; ``?q=`` a coupon's number leads to the coupon, anything else is a user's id."""
    asked = request.args.get("q", "").strip()
    if not asked:
        return render("users.html", user_id="", problem=None, listing=None, status=None, statuses=list(CouponStatus))
    if _is_coupon(asked):
        return redirect(url_for("console.coupon", coupon_no=asked), 303)
    problem = gettext("No user is called so.") if user_id_problem(asked) else None
    status = asked_word(CouponStatus, "status")
    listing = None if problem else _wallet(asked, status)
    return render(
        "users.html", user_id=asked, problem=problem, listing=listing, status=status, statuses=list(CouponStatus)
    )


def _wallet(user_id: str, status: str | None) -> Listing[dict[str, Any]]:
    before = page_before()
    below = MAX_COUPON_ID if before is None else before
    found = read_wallet(services(), user_id, limit=PAGE_SIZE + 1, before=below, status=status)
    return Listing(found.items, lambda coupon: [int(coupon["coupon_no"])])


def _is_coupon(text: str) -> bool:
    try:
        return owner_of(services(), path_id(text, NOT_FOUND)) is not None
    except NotFound:
        return False
