"""The pages of one list of the claim centre, each made once for those who ask for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from math import lcm
from typing import NamedTuple

from coupon_workers.claiming.key import bucket_of
from coupon_workers.claiming.listed_template import ListedTemplate
from coupon_workers.claiming.offer_page import OfferPage
from coupon_workers.templates.local_day import local_day_number

MOST_PAGES = 64
"""Pages of a list that are remembered: of each channel the first few."""


class Wish(NamedTuple):
    """Whose claim centre is asked for, and which page of it: templates with an id below ``before``."""

    user_id: str
    channel: str | None
    limit: int
    before: int
    now: datetime


class OfferPages:
    """``templates``, newest first; all there are if the list ``is_whole``. Threads share it."""

    def __init__(self, templates: Sequence[ListedTemplate], *, is_whole: bool) -> None:
        self.templates, self.is_whole = templates, is_whole
        self._instants = sorted({each.row[name] for each in templates for name in ("claim_start", "claim_end")})
        self._zones = sorted({each.row["timezone"] for each in templates if each.counts_days})
        self._buckets = lcm(*(each.row["bucket_count"] for each in templates))
        self._made: dict[tuple[object, ...], OfferPage] = {}

    def page(self, wish: Wish) -> OfferPage | None:
        """The page; None when the list does not reach so far."""
        place = self._place_of(wish.user_id)
        days = [local_day_number(wish.now, zone) for zone in self._zones]
        key = (wish.channel, wish.limit, wish.before, place, bisect_right(self._instants, wish.now), *days)
        page = self._made.get(key)
        if page is None:
            found = self.chosen(wish)
            if len(found) <= wish.limit and not self.is_whole:
                return None
            page = self.page_of(found, wish)
            if len(self._made) >= MOST_PAGES:
                self._made.clear()
            self._made[key] = page
        return page

    def page_of(self, found: Sequence[ListedTemplate], wish: Wish) -> OfferPage:
        """The page of what was found: one more than are shown, where there are more."""
        place = self._place_of(wish.user_id)
        return OfferPage(found[: wish.limit], wish.now, place, has_more=len(found) > wish.limit)

    def chosen(self, wish: Wish) -> list[ListedTemplate]:
        """What the list has for the page, and one more where there are more."""
        wished = (t for t in self.templates if t.template_id < wish.before and t.is_on(wish.channel, wish.now))
        return list(islice(wished, wish.limit + 1))

    def _place_of(self, user_id: str) -> int:
        """The number of a user among all buckets: his bucket of a template is what is left when divided by theirs."""
        return bucket_of(user_id, self._buckets)
