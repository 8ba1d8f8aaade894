"""The claim centre over HTTP (API.md, Claims)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Literal

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.claiming.claim_request import TEXT_LENGTH, user_id_problem
from coupon_workers.claiming.listed_template import ListedTemplate
from coupon_workers.claiming.offer import MOST_OFFERS, Offer
from coupon_workers.claiming.offer_list import MOST_LISTED, NEWEST
from coupon_workers.errors import InvalidInput
from coupon_workers.runtime.clock import rfc3339
from coupon_workers.templates.template import CouponType
from web.auth import require
from web.context import web_of_app
from web.query_model import QueryModel

api = APIBlueprint("claim_center", __name__, abp_tags=[Tag(name="Claims")])


class CenterQuery(QueryModel):
    """Whose claim centre, on which channel."""

    user_id: str
    channel: Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH, pattern=r"^[^\x00-\x1f]*$")] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,19}$")] | None = None


class OfferAnswer(BaseModel):
    """A template as this user finds it. ``remaining`` is rounded down; null while the template is made ready."""

    template_id: str
    name: str
    type: CouponType
    currency: str
    amount: int | None
    percent_off: int | None
    max_discount: int | None
    threshold: int
    state: Literal["claimable", "claimed", "sold_out", "not_started", "limit_reached"]
    claimed: int
    remaining: int | None
    starts_at: str
    ends_at: str


class CenterAnswer(BaseModel):
    """Active and coming templates, newest first, and the server's time."""

    items: list[OfferAnswer]
    next_cursor: str | None
    server_time: str


@api.get("/v1/claim-center", summary="What a user may claim", responses={200: CenterAnswer})
@require("storefront")
def get_claim_center(query: CenterQuery) -> Response:
    """Active and coming templates with this user's state."""
    problem = user_id_problem(query.user_id)
    if problem:
        raise InvalidInput([("user_id", problem)])
    before = min(int(query.cursor), NEWEST) if query.cursor else NEWEST
    found = web_of_app().center.offers_for(query.user_id, query.channel, limit=query.limit, before=before)
    cursor = b'"%d"' % found.offers[-1].listed.template_id if found.has_more else b"null"
    body = b'{"items":[%b],"next_cursor":%b,"server_time":"%b"}' % (
        b",".join(map(_answer, found.offers)),
        cursor,
        rfc3339(found.now).encode(),
    )
    return Response(body, content_type="application/json")


@lru_cache(MOST_OFFERS)
def _answer(offer: Offer) -> bytes:
    """As JSON: made once for all users who find the same."""
    remaining = b"null" if offer.remaining is None else b"%d" % offer.remaining
    state, claimed = offer.state.encode(), offer.claimed
    return b'%b"state":"%b","claimed":%d,"remaining":%b}' % (_head(offer.listed), state, claimed, remaining)


@lru_cache(MOST_LISTED * 2)
def _head(listed: ListedTemplate) -> bytes:
    """What is the same for every user, as JSON up to what is not: made once for as long as the front has the list."""
    template = listed.row
    head = {
        "template_id": str(template["template_id"]),
        "name": template["name"],
        "type": template["type"],
        "currency": template["currency"],
        "amount": template["amount_minor"],
        "percent_off": template["percent_off_bp"],
        "max_discount": template["max_discount_minor"],
        "threshold": template["threshold_minor"],
        "starts_at": rfc3339(template["claim_start"]),
        "ends_at": rfc3339(template["claim_end"]),
    }
    return json.dumps(head, separators=(",", ":")).encode()[:-1] + b","
