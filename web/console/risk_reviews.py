"""Claims that are held for review: why, from where, how long still; approved or refused, one or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import request, url_for

from coupon_workers.access.principal import Scope
from coupon_workers.errors import Conflict, InvalidInput, NotFound
from coupon_workers.risk import review_desk
from coupon_workers.risk.review_queue import HEAD, read_fired, read_queue, read_these
from coupon_workers.risk.review_reading import ReviewAnswer, read_reviews
from coupon_workers.risk.rule_reading import read_rules
from coupon_workers.runtime.clock import to_ms
from coupon_workers.templates.template_name import read_names
from web.console.blueprint import console
from web.console.form import reason
from web.console.guard import shown_to
from web.console.language import gettext
from web.console.listing import PAGE_SIZE, Listing, cursor_of, page_before
from web.console.notice import done
from web.console.rendering import render
from web.console.risk_word import rule_sentence
from web.console.word import reason_of
from web.context import principal, services
from web.page import cursor_instant
from web.path_id import path_id

UNKNOWN = "REVIEW_NOT_FOUND"

Left = Sequence[tuple[ReviewAnswer | None, str]]
"""What was not decided, and why."""


@console.get("/risk-reviews")
@shown_to(Scope.ADMIN)
def risk_reviews() -> Any:
    """The queue, the nearest deadline first; ``?state=all`` shows what was decided too, newest first."""
    return _page()


@console.post("/risk-reviews")
@shown_to(Scope.ADMIN)
def decide_reviews() -> Any:
    """Approve or refuse what was chosen, each by itself: what somebody else has decided is told."""
    one, why = request.form.get("one"), reason()
    decision = "approved" if one else request.form.get("decision", "")
    chosen = list(dict.fromkeys([one] if one else request.form.getlist("claim_id")))[:PAGE_SIZE]
    if not chosen:
        return _page(422, problem=gettext("Choose at least one claim."))
    if decision not in ("approved", "rejected"):
        raise InvalidInput([("decision", gettext("Choose one."))])
    if decision == "rejected" and why is None:
        return _page(422, problem=gettext("Say why: a refusal needs a reason."), chosen=chosen)
    left = [(claim_id, told) for claim_id in chosen if (told := _decide(claim_id, decision, why))]
    if left:
        known = {review.claim_id: review for review in read_these(services(), _numbers(left))}
        shown = [(known.get(claim_id), told) for claim_id, told in left]
        return _page(409, left=shown, decided=len(chosen) - len(left))
    return done(url_for("console.risk_reviews"), f"claims_{decision}")


def _decide(claim_id: str, decision: str, why: str | None) -> str | None:
    """Why it could not be; None when it was."""
    try:
        number = path_id(claim_id, UNKNOWN)
        if decision == "approved":
            review_desk.approve(services(), number, principal().key_id, why)
        else:
            review_desk.reject(services(), number, principal().key_id, str(why))
    except (Conflict, NotFound) as error:
        return reason_of(error)
    return None


def _numbers(left: Sequence[tuple[str, str]]) -> list[int]:
    numbers = []
    for claim_id, _ in left:
        try:
            numbers.append(path_id(claim_id, UNKNOWN))
        except NotFound:
            continue
    return numbers


def _page(
    http_status: int = 200,
    *,
    problem: str | None = None,
    chosen: Sequence[str] = (),
    left: Left = (),
    decided: int = 0,
) -> Any:
    waiting = request.args.get("state") != "all"
    listing = _queue() if waiting else _decided()
    now_ms = to_ms(services().clock())
    rules = read_rules(services(), [int(review.template_id) for review in listing.items])
    return render(
        "risk_reviews.html",
        http_status,
        listing=listing,
        waiting=waiting,
        fired=read_fired(services(), listing.items),
        sentences={place: rule_sentence(rule) for place, rule in rules.items()},
        names=read_names(services(), [review.template_id for review in listing.items]),
        left_ms=lambda review: to_ms(review.deadline_at) - now_ms,
        problem=problem,
        chosen=chosen,
        left=left,
        decided=decided,
        given=request.form.get("reason", "") if problem else "",
    )


def _queue() -> Listing[ReviewAnswer]:
    position = cursor_of(str, int)
    after = (cursor_instant(position[0]), position[1]) if position else HEAD
    found = read_queue(services(), limit=PAGE_SIZE + 1, after=after)
    return Listing(found, lambda review: [review.deadline_at.isoformat(), int(review.claim_id)])


def _decided() -> Listing[ReviewAnswer]:
    found = read_reviews(services(), limit=PAGE_SIZE + 1, before=page_before())
    return Listing(found, lambda review: [int(review.claim_id)])
