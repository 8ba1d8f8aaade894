"""One coupon, and what a clerk does with it, each with a reason: take it back, free it, put another in its place."""

from __future__ import annotations

from typing import Any

from flask import redirect, request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.audit.reading import AuditFilter, read_audit_log
from coupon_workers.coupons.coupon_trail import owner_of, transfer_chain
from coupon_workers.coupons.reissue import Reissue, reissue_coupon
from coupon_workers.coupons.replacement import original_of, replacement_of
from coupon_workers.coupons.single_revocation import revoke_coupon
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.finance.user_ledger import read_user_ledger
from coupon_workers.orders.unlock import unlock_coupon
from coupon_workers.wallet.wallet import read_coupon
from web.console.blueprint import console
from web.console.form import allotted_id, reason, taken_id
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.notice import done
from web.console.rendering import render
from web.console.word import reason_of
from web.context import principal, services
from web.path_id import path_id

NOT_FOUND = "COUPON_NOT_FOUND"

MOST_BOOKINGS = 200
"""On a coupon's page: more than the pieces that people send back one by one. The ledger has them all."""

MOST_SAID = 20
"""Of what was done by hand, with its reason. The audit log has it all."""


@console.get("/coupons/<coupon_no>")
@shown_to(Scope.ADMIN)
def coupon(coupon_no: str) -> Any:
    """Whose it is and what it is worth, its history as a line of time, what it has cost, the hands it went through."""
    return _page(*coupon_and_owner(coupon_no))


@console.post("/coupons/<coupon_no>/revoke")
@shown_to(Scope.ADMIN)
def end_coupon(coupon_no: str) -> Any:
    """Take it back."""
    coupon_id, owner = coupon_and_owner(coupon_no)
    revoke_coupon(services(), owner, coupon_id, given_reason(), principal().key_id)
    return done(url_for("console.coupon", coupon_no=coupon_no), "coupon_revoked")


@console.post("/coupons/<coupon_no>/unlock")
@shown_to(Scope.ADMIN)
def free_coupon(coupon_no: str) -> Any:
    """Have its order let go; with ``force`` also while that may still be paid. That it may be is told at the form."""
    coupon_id, owner = coupon_and_owner(coupon_no)
    force, why = bool(request.form.get("force")), given_reason()
    try:
        unlock_coupon(services(), owner, coupon_id, why, _operator(), force=force)
    except Conflict as error:
        if error.code != "LOCK_STANDS":
            raise
        return _page(coupon_id, owner, 409, unlock_refused=reason_of(error), unlock_reason=why)
    return done(url_for("console.coupon", coupon_no=coupon_no), "coupon_unlocked")


@console.get("/coupons/<coupon_no>/unlock")
@shown_to(Scope.ADMIN)
def free_coupon_again(coupon_no: str) -> Any:
    """The address of a refusal, opened by itself, is the coupon."""
    return redirect(url_for("console.coupon", coupon_no=coupon_no), 303)


@console.post("/coupons/<coupon_no>/reissue")
@shown_to(Scope.ADMIN)
def replace_coupon(coupon_no: str) -> Any:
    """Give its owner another one in its place, and lead there."""
    coupon_id, owner = coupon_and_owner(coupon_no)
    template_id = path_id(request.form.get("template_id", "").strip(), "TEMPLATE_NOT_FOUND")
    wish = Reissue(owner, template_id, f"console-{taken_id()}", given_reason(), coupon_id)
    made = reissue_coupon(services(), wish, _operator())
    return done(url_for("console.coupon", coupon_no=made.coupon_id), "coupon_replaced")


def _page(coupon_id: int, owner: str, http_status: int = 200, /, **told: Any) -> Any:
    found = read_coupon(services(), owner, coupon_id)
    if found is None:
        raise NotFound(NOT_FOUND, "there is no such coupon")
    chain = transfer_chain(services(), coupon_id)
    replaced = replacement_of(services(), owner, coupon_id)
    bookings = read_user_ledger(services(), owner, coupon_id=coupon_id, limit=MOST_BOOKINGS)
    around = {"unlock_refused": None, "unlock_reason": "", "allotted": allotted_id(), **told}
    return render(
        "coupon.html",
        http_status,
        coupon=found,
        chain=chain,
        bookings=bookings,
        refunded=sum(entry.amount for entry in bookings if entry.kind == "refund"),
        replacement=replaced,
        original=original_of(services(), owner, coupon_id),
        said=read_audit_log(services(), AuditFilter(subject=f"coupon:{coupon_id}"), limit=MOST_SAID),
        **around,
    )


def coupon_and_owner(coupon_no: str) -> tuple[int, str]:
    """The coupon of an address, and whose it is. Raises ``NotFound``."""
    coupon_id = path_id(coupon_no, NOT_FOUND)
    owner = owner_of(services(), coupon_id)
    if owner is None:
        raise NotFound(NOT_FOUND, "there is no such coupon")
    return coupon_id, owner


def given_reason() -> str:
    """The reason of this request's form. Raises ``InvalidInput`` when there is none."""
    given = reason()
    if given is None:
        raise InvalidInput([("reason", gettext("say why"))])
    return given


def _operator() -> str:
    return f"key:{principal().key_id}"
