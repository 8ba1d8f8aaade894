"""The claim centre: active and coming templates, each with this user's state (API.md, Claims).

One round trip to Redis, as a rule: is the front's list the one that is kept, and what do the gates say. Without Redis
the database answers, and where a gate is cold, for the user's counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from coupon_workers.claiming.listed_template import ListedTemplate, UserWord
from coupon_workers.claiming.offer_list import OfferList, OfferLists, read_older
from coupon_workers.claiming.user_taking import Taking, takings_from, takings_in_database
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.services import Services


@dataclass(frozen=True, slots=True)
class Offer:
    """A template as a user finds it. ``remaining`` is rounded for the public; None while it is being made ready."""

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


@dataclass(frozen=True, slots=True)
class Center:
    """Offers, newest first, and whether older ones follow."""

    offers: list[Offer]
    has_more: bool


@dataclass(frozen=True, slots=True)
class _Wish:
    user_id: str
    channel: str | None
    limit: int
    before: int
    now: datetime


class ClaimCenter:
    """The claim centre of one front. Threads share it."""

    def __init__(self, services: Services, pages: KeptPages) -> None:
        self._services = services
        self._lists = OfferLists(services, pages)

    def offers_for(self, user_id: str, channel: str | None, *, limit: int, before: int) -> Center:
        """Templates with an id below ``before``, at most ``limit``. Raises ``StoreUnavailable``."""
        wish = _Wish(user_id, channel, limit, before, self._services.clock())
        templates, takings = self._with_known_list(wish) or self._with_new_list(wish)
        offers = [_offer(each, seen, wish.now) for each, seen in zip(templates[:limit], takings, strict=True)]
        return Center(offers, len(templates) > limit)

    def _with_known_list(self, wish: _Wish) -> tuple[list[ListedTemplate], list[Taking]] | None:
        """None when the list is not the one that Redis keeps, or Redis does not answer."""
        known = self._lists.known
        if known is None:
            return None
        templates = self._chosen(known, wish)
        try:
            stamp, *answers = self._ask(wish, templates, [OfferList.ASK_STAMP])
            if stamp != known.stamp:
                return None
            return templates, self._warm(wish, templates, answers)
        except StoreUnavailable:
            return None

    def _with_new_list(self, wish: _Wish) -> tuple[list[ListedTemplate], list[Taking]]:
        templates = self._chosen(self._lists.renewed(), wish)
        try:
            answers = self._ask(wish, templates, [])
        except StoreUnavailable:
            shown = templates[: wish.limit]
            taken = takings_in_database(self._services, wish.user_id, shown, wish.now)
            return templates, [taken[each.template_id] for each in shown]
        return templates, self._warm(wish, templates, answers)

    def _chosen(self, offers: OfferList, wish: _Wish) -> list[ListedTemplate]:
        """One more than are shown, where there are more."""
        most = wish.limit + 1
        wished = (t for t in offers.templates if t.template_id < wish.before and t.is_on(wish.channel, wish.now))
        found = list(islice(wished, most))
        if len(found) == most or offers.is_whole:
            return found
        before = min(wish.before, offers.templates[-1].template_id)
        older = read_older(self._services, wish.channel, wish.now, before=before, limit=most - len(found))
        return found + older

    def _ask(self, wish: _Wish, templates: Sequence[ListedTemplate], first: list[bytes]) -> list[Any]:
        user = UserWord(wish.user_id)
        asked = first + [word for each in templates[: wish.limit] for word in each.questions(user, wish.now)]
        if not asked:
            return []
        try:
            return self._services.lean.ask(asked)
        except StoreUnavailable:
            # The connection may have been left over from a server that was started anew since.
            return self._services.lean.ask(asked)

    def _warm(self, wish: _Wish, templates: Sequence[ListedTemplate], answers: Sequence[Any]) -> list[Taking]:
        """What the gates answered; of a cold one the counts are the database's."""
        shown = templates[: wish.limit]
        takings = takings_from(answers, shown)
        cold = [each for each, seen in zip(shown, takings, strict=True) if seen.remaining is None]
        if not cold:
            return takings
        counted = takings_in_database(self._services, wish.user_id, cold, wish.now)
        return [
            seen if seen.remaining is not None else replace(counted[each.template_id], remaining=None)
            for each, seen in zip(shown, takings, strict=True)
        ]


def _offer(listed: ListedTemplate, seen: Taking, now: datetime) -> Offer:
    return Offer(listed, _state(listed.row, seen, now), seen.count, _rounded(seen.remaining))


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
