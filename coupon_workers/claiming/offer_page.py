"""A page of the claim centre: what of it is the same for many users is made once, for as long as its list holds.

Each reader asks the gates himself, of all templates in one question, so that nothing he is told is older than his own.
An offer is made anew only where a gate says something else than it said last, or where the user has taken of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from coupon_workers.claiming.gate_words import ask_field, ask_stocks, packed_word
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.listed_template import ListedTemplate
from coupon_workers.claiming.offer import Offer, offer_of
from coupon_workers.claiming.user_taking import Taking
from coupon_workers.errors import StoreUnavailable
from coupon_workers.templates.local_day import local_day_number


class OfferPage:
    """``templates`` as they are shown at ``now``, to users whose number among all buckets is ``place``; ``has_more``:
    older ones follow. It holds until a template begins or ends, or a day. Threads share it."""

    def __init__(self, templates: Sequence[ListedTemplate], now: datetime, place: int, *, has_more: bool) -> None:
        self.templates, self.has_more = templates, has_more
        self._now = now
        words = [each.words_of(place % each.row["bucket_count"]) for each in templates]
        self._counted = [index for index, each in enumerate(templates) if each.counts_days]
        self._ask_stocks = ask_stocks([word.stock for word in words])
        self._ask_user = [word.ask_taker for word in words] + [self._ask_day(index, place) for index in self._counted]
        nothing: list[Any] = [None] * (2 * len(templates))
        self._seen = nothing, [offer_of(each, _NOTHING, now) for each in templates]

    def questions(self, user_id: str) -> list[bytes]:
        """What the gates are asked: generation and stock of all, the user's count of each, and the count of his day
        where it matters."""
        user = packed_word(user_id)
        return self._ask_stocks + [ask + user for ask in self._ask_user]

    def offers(self, answers: Sequence[Any]) -> list[Offer]:
        """What the gates have answered, in the order of the templates. Raises ``StoreUnavailable``."""
        if not self.templates:
            return []
        gates, *taken = answers
        has_taken = taken.count(None) < len(taken)
        if not isinstance(gates, list) or (has_taken and any(isinstance(each, Exception) for each in taken)):
            raise StoreUnavailable("Redis", "it refused to answer")
        offers = self._of_nobody(gates)
        if has_taken:
            self._take(offers, gates, taken)
        return offers

    def offer(self, template: ListedTemplate, seen: Taking) -> Offer:
        """What a user finds of whom and of which this was seen."""
        return offer_of(template, seen, self._now)

    def _of_nobody(self, gates: list[Any]) -> list[Offer]:
        """What somebody finds who has taken nothing: the offers of the last reader, but for stocks that have moved."""
        before, offers = self._seen
        offers = list(offers)
        if gates != before:
            for index, template in enumerate(self.templates):
                at = 2 * index
                if gates[at : at + 2] != before[at : at + 2]:
                    offers[index] = self.offer(template, Taking(_remaining(gates, index), 0, 0))
            self._seen = gates, list(offers)
        return offers

    def _take(self, offers: list[Offer], gates: list[Any], taken: list[Any]) -> None:
        """Put in the offers of which the user has taken."""
        days = dict(zip(self._counted, taken[len(offers) :], strict=True))
        for index, (template, taker) in enumerate(zip(self.templates, taken, strict=False)):
            today = days.get(index)
            if taker is not None or today is not None:
                count = int(taker.split()[0]) if taker else 0
                offers[index] = self.offer(template, Taking(_remaining(gates, index), count, int(today or 0)))

    def _ask_day(self, index: int, place: int) -> bytes:
        template = self.templates[index]
        keys = BucketKeys(template.template_id, place % template.row["bucket_count"])
        return ask_field(f"{keys.day_prefix}{local_day_number(self._now, template.row['timezone'])}")


_NOTHING = Taking(None, 0, 0)


def _remaining(gates: list[Any], index: int) -> int | None:
    """Units that may be taken by anybody; None while the gate is cold."""
    generation, stock = gates[2 * index : 2 * index + 2]
    return None if generation is None else max(0, int(stock or 0))
