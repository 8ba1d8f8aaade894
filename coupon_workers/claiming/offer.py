"""A template as a user finds it in the claim centre."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from coupon_workers.claiming.listed_template import ListedTemplate
from coupon_workers.claiming.user_taking import Taking

MOST_OFFERS = 8_000
"""Offers that are remembered: eight of each template that a list holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """``remaining`` is rounded for the public; None while the template is being made ready.

    Users who find the same are told the same object, so that its answer is made once.
    """

    listed: ListedTemplate
    state: str
    claimed: int
    remaining: int | None

    @property
    def template(self) -> dict[str, Any]:
        """Its columns."""
        return self.listed.row

    @property
    def is_set_aside(self) -> bool:
        """Whether nobody has ever claimed a unit, and none is free: all are for batches, codes or prizes."""
        return self.remaining == 0 and bool(self.template.get("set_aside"))


def offer_of(listed: ListedTemplate, seen: Taking, now: datetime) -> Offer:
    """What a user finds of whom and of which this was seen."""
    return _offer(listed, _state(listed.row, seen, now), seen.count, _rounded(seen.remaining))


@lru_cache(MOST_OFFERS)
def _offer(listed: ListedTemplate, state: str, claimed: int, remaining: int | None) -> Offer:
    return Offer(listed, state, claimed, remaining)


def _state(template: dict[str, Any], seen: Taking, now: datetime) -> str:
    if now < template["claim_start"]:
        return "not_started"
    limit, daily_limit = template["per_user_limit"], template["per_user_daily_limit"]
    if limit is not None and seen.count >= limit:
        return "claimed" if limit == 1 else "limit_reached"
    if daily_limit is not None and seen.today >= daily_limit:
        return "limit_reached"
    if seen.remaining == 0:
        return "sold_out"
    return "claimable"


def _rounded(remaining: int | None) -> int | None:
    """Rounded down to two leading digits: enough for a progress bar, too little to watch the sale by."""
    if remaining is None or remaining < 100:
        return remaining
    step = 10 ** (len(str(remaining)) - 2)
    return int(remaining // step * step)
