"""What a clerk does with one coupon, each with a reason: take it back, free it, put another in its place."""

from __future__ import annotations

from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.coupons.coupon_trail import owner_of
from coupon_workers.coupons.reissue import Reissue, reissue_coupon
from coupon_workers.coupons.single_revocation import revoke_coupon
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.orders.unlock import unlock_coupon
from web.console.blueprint import console
from web.console.form import reason, taken_id
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.notice import done
from web.context import principal, services
from web.path_id import path_id

NOT_FOUND = "COUPON_NOT_FOUND"


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
    """Have its order let go; with ``force`` also while that may still be paid."""
    coupon_id, owner = coupon_and_owner(coupon_no)
    force = bool(request.form.get("force"))
    unlock_coupon(services(), owner, coupon_id, given_reason(), _operator(), force=force)
    return done(url_for("console.coupon", coupon_no=coupon_no), "coupon_unlocked")


@console.post("/coupons/<coupon_no>/reissue")
@shown_to(Scope.ADMIN)
def replace_coupon(coupon_no: str) -> Any:
    """Give its owner another one in its place, and lead there."""
    coupon_id, owner = coupon_and_owner(coupon_no)
    template_id = path_id(request.form.get("template_id", "").strip(), "TEMPLATE_NOT_FOUND")
    wish = Reissue(owner, template_id, f"console-{taken_id()}", given_reason(), coupon_id)
    made = reissue_coupon(services(), wish, _operator())
    return done(url_for("console.coupon", coupon_no=made.coupon_id), "coupon_replaced")


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
