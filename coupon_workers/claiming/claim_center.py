"""The claim centre: active and coming templates, each with this user's state (API.md, Claims).

One round trip to Redis, as a rule: is the front's list the one that is kept, and what do the gates say. Without Redis
the database answers, and where a gate is cold, for the user's counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from coupon_workers.claiming.offer import Offer
from coupon_workers.claiming.offer_list import OfferList, OfferLists, read_older
from coupon_workers.claiming.offer_page import OfferPage
from coupon_workers.claiming.offer_pages import OfferPages, Wish
from coupon_workers.claiming.user_taking import Taking, takings_in_database
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.services import Services


@dataclass(frozen=True, slots=True)
class Center:
    """Offers as of ``now``, newest first, and whether older ones follow."""

    offers: list[Offer]
    has_more: bool
    now: datetime


class ClaimCenter:
    """The claim centre of one front. Threads share it."""

    def __init__(self, services: Services, pages: KeptPages) -> None:
        self._services = services
        self._lists = OfferLists(services, pages)

    def offers_for(self, user_id: str, channel: str | None, *, limit: int, before: int) -> Center:
        """Templates with an id below ``before``, at most ``limit``. Raises ``StoreUnavailable``."""
        wish = Wish(user_id, channel, limit, before, self._services.clock())
        return self._with_known_list(wish) or self._with_new_list(wish)

    def _with_known_list(self, wish: Wish) -> Center | None:
        """None when the list is not the one that Redis keeps, or Redis does not answer."""
        known = self._lists.known
        if known is None:
            return None
        page = self._page(known.pages, wish)
        try:
            stamp, *answers = self._ask([OfferList.ASK_STAMP, *page.questions(wish.user_id)])
            if stamp != known.stamp:
                return None
            return self._center(wish, page, page.offers(answers))
        except StoreUnavailable:
            return None

    def _with_new_list(self, wish: Wish) -> Center:
        page = self._page(self._lists.renewed().pages, wish)
        try:
            offers = page.offers(self._ask(page.questions(wish.user_id)))
        except StoreUnavailable:
            taken = takings_in_database(self._services, wish.user_id, page.templates, wish.now)
            offers = [page.offer(each, taken[each.template_id]) for each in page.templates]
            return Center(offers, page.has_more, wish.now)
        return self._center(wish, page, offers)

    def _page(self, pages: OfferPages, wish: Wish) -> OfferPage:
        page = pages.page(wish)
        if page is not None:
            return page
        found = pages.chosen(wish)
        before = min(wish.before, pages.templates[-1].template_id)
        most = wish.limit + 1 - len(found)
        older = read_older(self._services, wish.channel, wish.now, before=before, limit=most)
        return pages.page_of(found + older, wish)

    def _ask(self, questions: Sequence[bytes]) -> list[Any]:
        if not questions:
            return []
        try:
            return self._services.lean.ask(questions)
        except StoreUnavailable:
            # The connection may have been left over from a server that was started anew since.
            return self._services.lean.ask(questions)

    def _center(self, wish: Wish, page: OfferPage, offers: list[Offer]) -> Center:
        """What the gates answered; of a cold one the counts are the database's."""
        cold = [each.listed for each in offers if each.remaining is None]
        if cold:
            counted = takings_in_database(self._services, wish.user_id, cold, wish.now)
            offers = [_counted(page, each, counted) for each in offers]
        return Center(offers, page.has_more, wish.now)


def _counted(page: OfferPage, offer: Offer, counted: dict[int, Taking]) -> Offer:
    if offer.remaining is not None:
        return offer
    return page.offer(offer.listed, replace(counted[offer.listed.template_id], remaining=None))
