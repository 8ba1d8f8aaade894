"""The claim centre and the wallet: a claim is queued, then issued or rejected; a code becomes a coupon."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import uuid4

from flask import Response, redirect, request, url_for

from coupon_workers.claiming.claim_request import read_claim, user_id_problem
from coupon_workers.claiming.claim_status import ClaimStatus, claim_status
from coupon_workers.claiming.offer import Offer
from coupon_workers.codes.exchange import Exchange, exchange_code
from coupon_workers.errors import Conflict, CouponWorkersError, InvalidInput, NotFound, TooManyTries
from coupon_workers.orders.order_list import newest_orders
from coupon_workers.runtime.metrics import count_claim
from coupon_workers.wallet.wallet import MAX_COUPON_ID, read_wallet
from web.auth import open_to_all
from web.claim_answer import REFUSALS
from web.claim_front import claim_front
from web.console.language import gettext
from web.console.word import reason_of
from web.context import services, web_of_app
from web.path_id import path_id
from web.shop.blueprint import page, shop, status_of
from web.shop.goods import CHANNEL, GOODS
from web.shop.lottery_wheel import Told, wheels
from web.shop.visitor import NAME_COOKIE, TOKEN_COOKIE, check_meant, for_visitors, remember, token, user

SHOWN = 24
"""Offers, coupons and orders on the page."""

_OF_A_CODE = (InvalidInput, NotFound, Conflict, TooManyTries)


class WrongCode(NamedTuple):
    """A code as it was typed, and why no coupon came of it."""

    typed: str
    error: CouponWorkersError


@shop.get("/welcome")
@open_to_all
def welcome() -> Any:
    """Pick a name."""
    return page("welcome.html", problem=None, name=user() or "ann")


@shop.post("/welcome")
@open_to_all
def enter() -> Any:
    """Remember the name; the cookie alone says who looks around."""
    check_meant()
    name = request.form.get("name", "").strip()
    if user_id_problem(name) or not name.isascii():
        problem = gettext("A name has letters A–Z and digits 0–9, up to 64 and without spaces.")
        return page("welcome.html", 422, problem=problem, name=name)
    response = redirect(url_for("shop.front"), 303)
    remember(response, NAME_COOKIE, name)
    remember(response, TOKEN_COOKIE, token())
    return response


@shop.get("")
@for_visitors
def front() -> Any:
    """What there is to claim, wheels, what one has, and the goods."""
    return show_front()


def show_front(drawn: Told | None = None, wrong: WrongCode | None = None) -> Response:
    """The page, also after a draw of which it tells, or a code that was refused."""
    claim_id = request.args.get("claim")
    refused = request.args.get("refused")
    return page(
        "front.html",
        status_of(wrong.error) if wrong else 200,
        offers=_offers(),
        coupons=read_wallet(services(), user(), limit=SHOWN).items,
        orders=newest_orders(services(), user(), limit=SHOWN),
        wrong_code=wrong.typed if wrong else None,
        wrong_why=reason_of(wrong.error) if wrong else None,
        claim=_claim(claim_id) if claim_id else None,
        claim_id=claim_id,
        refused=refused if refused in REFUSALS else None,
        request_id=uuid4().hex,
        goods=GOODS,
        exchanged="exchanged" in request.args,
        wheels=wheels(),
        drawn=drawn,
    )


@shop.post("/claims")
@for_visitors
def claim() -> Any:
    """Ask the gate. The request's id is the form's: sent twice, it is one claim."""
    sent = {name: request.form.get(name, "") for name in ("template_id", "request_id")}
    asked = read_claim(sent | {"user_id": user(), "channel": CHANNEL})
    decision = claim_front().claim(asked)
    count_claim((asked.template_id, decision.outcome))
    if decision.claim_id:
        return redirect(url_for("shop.front", claim=str(decision.claim_id)), 303)
    return redirect(url_for("shop.front", refused=decision.outcome.value), 303)


@shop.get("/data/claims/<claim_id>")
@for_visitors
def claim_state(claim_id: str) -> Any:
    """How a claim stands, for the page's script."""
    return {"status": _claim(claim_id).status}


@shop.get("/claims")
@shop.get("/codes")
@shop.get("/draws")
@shop.get("/orders")
@for_visitors
def sent_before() -> Any:
    """Where forms are sent to stays in the browser's address when one is refused: opened by itself it is the shop."""
    return redirect(url_for("shop.front"), 303)


@shop.post("/codes")
@for_visitors
def exchange() -> Any:
    """A code becomes a coupon, once. Why one does not is told where it was typed."""
    code, request_id = request.form.get("code", "").strip(), request.form.get("request_id", "")
    if not code.isprintable() or not 0 < len(code) <= 64 or not request_id.isalnum() or len(request_id) > 64:
        return show_front(wrong=WrongCode(code, InvalidInput([("", gettext("Type the code as it is printed."))])))
    try:
        exchange_code(services(), Exchange(code, user(), request_id, ip=request.remote_addr, channel=CHANNEL))
    except _OF_A_CODE as error:
        return show_front(wrong=WrongCode(code, error))
    return redirect(url_for("shop.front", exchanged="1"), 303)


def _offers() -> list[Offer]:
    """What can be claimed stands first, then what is to come; newer before older."""
    found = web_of_app().center.offers_for(user(), CHANNEL, limit=SHOWN, before=MAX_COUPON_ID).offers
    ranks = {"claimable": 0, "not_started": 1, "sold_out": 3}
    return sorted(found, key=lambda offer: ranks.get(offer.state, 2))


def _claim(claim_id: str) -> ClaimStatus:
    found = claim_status(services(), path_id(claim_id, "CLAIM_NOT_FOUND"))
    if found is None:
        raise InvalidInput([("", gettext("There is no such claim."))])
    return found
