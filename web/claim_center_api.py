"""The claim centre over HTTP (API.md, Claims)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from coupon_workers.claiming.claim_center import Offer, offers_for
from coupon_workers.claiming.claim_request import TEXT_LENGTH, user_id_problem
from coupon_workers.errors import InvalidInput
from coupon_workers.runtime.clock import rfc3339
from web.auth import require
from web.context import services
from web.query_model import QueryModel

api = APIBlueprint("claim_center", __name__, abp_tags=[Tag(name="Claims")])

NEWEST = 2**63 - 1


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
    type: Literal["amount_off", "percent_off", "cash", "random_amount"]
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
def get_claim_center(query: CenterQuery) -> dict[str, Any]:
    """Active and coming templates with this user's state."""
    problem = user_id_problem(query.user_id)
    if problem:
        raise InvalidInput([("user_id", problem)])
    before = min(int(query.cursor), NEWEST) if query.cursor else NEWEST
    offers = offers_for(services(), query.user_id, query.channel, limit=query.limit, before=before)
    items = [_answer(offer) for offer in offers]
    return {
        "items": items,
        "next_cursor": items[-1]["template_id"] if len(items) == query.limit else None,
        "server_time": rfc3339(services().clock()),
    }


def _answer(offer: Offer) -> dict[str, Any]:
    template = offer.template
    return {
        "template_id": str(template["template_id"]),
        "name": template["name"],
        "type": template["type"],
        "currency": template["currency"],
        "amount": template["amount_minor"],
        "percent_off": template["percent_off_bp"],
        "max_discount": template["max_discount_minor"],
        "threshold": template["threshold_minor"],
        "state": offer.state,
        "claimed": offer.claimed,
        "remaining": offer.remaining,
        "starts_at": rfc3339(template["claim_start"]),
        "ends_at": rfc3339(template["claim_end"]),
    }
