"""Pages of the claim centre that a front remembers: they answer as one would that has just been started."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from coupon_workers.claiming import offer_pages
from coupon_workers.claiming.claim_center import ClaimCenter
from coupon_workers.claiming.listed_template import listed
from coupon_workers.claiming.offer import Offer
from coupon_workers.claiming.offer_list import forget_offers
from coupon_workers.claiming.offer_pages import OfferPages, Wish
from coupon_workers.errors import Conflict
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template
from tests.support.sale import open_sale
from tests.support.template import change_template

FIRST = 2**63 - 1
NOON = datetime(2026, 11, 11, 12, tzinfo=UTC)
USERS = ("ann", "bob", "cat", "券")


def center_of(services: Services) -> ClaimCenter:
    """The claim centre of a front that has just been started."""
    return ClaimCenter(services, KeptPages(services.lean, services.redis))


def told(center: ClaimCenter, user: str, channel: str | None = None, limit: int = 50, before: int = FIRST) -> object:
    """All that a user is told."""
    found = center.offers_for(user, channel, limit=limit, before=before)
    return found.has_more, [(o.listed.template_id, o.state, o.claimed, o.remaining) for o in found.offers]


def offers(center: ClaimCenter, user: str) -> list[Offer]:
    """The first page."""
    return center.offers_for(user, None, limit=50, before=FIRST).offers


@pytest.mark.parametrize("seed", range(3))
def test_a_front_that_remembers_answers_as_a_new_one(services: Services, seed: int) -> None:
    """After whatever happens: claims, changes told and not told to the gate, a flush, settling, time."""
    chance = random.Random(seed)
    now = [services.clock()]
    services = replace(services, clock=lambda: now[0])
    limits = [{}, {"per_user_limit": 1}, {"per_user_limit": 2, "per_user_daily_limit": 1}, {"channels_claim": ["app"]}]
    windows = [{"claim_end": now[0] + timedelta(hours=2)}, {"claim_start": now[0] + timedelta(hours=1)}, {}, {}]
    sales = [
        open_sale(services, template_id=7_000 + n, total_quantity=3, **limits[n % 4], **windows[n // 4])
        for n in range(16)
    ]
    happenings: list[Callable[[], object]] = [
        *[lambda: chance.choice(sales).claim(chance.choice(USERS), f"r{chance.random()}")] * 12,
        lambda: chance.choice(sales).drain(),
        lambda: chance.choice(sales).preheat(),
        lambda: pause_template(services, chance.choice(sales).template_id),
        lambda: services.redis.flushall(),
        lambda: now.__setitem__(0, now[0] + timedelta(minutes=chance.choice((7, 40)))),
    ]
    kept = center_of(services)

    for _ in range(60):
        with suppress(Conflict):  # what is paused is not paused again
            chance.choice(happenings)()
        user, channel = chance.choice(USERS), chance.choice((None, "app", "h5"))
        limit, before = chance.choice((3, 50)), chance.choice((FIRST, 7_010))
        assert told(center_of(services), user, channel, limit, before) == told(kept, user, channel, limit, before)


def test_users_who_find_the_same_are_told_the_same_offer(services: Services) -> None:
    """So that its answer is made once; where a unit is taken only that offer is made anew."""
    moving, still = open_sale(services, template_id=7_001), open_sale(services, template_id=7_002)
    center = center_of(services)
    first, second = offers(center, "ann"), offers(center, "bob")

    moving.claim("cat")
    third, own = offers(center, "ann"), offers(center, "cat")

    assert [id(offer) for offer in first] == [id(offer) for offer in second]
    assert [id(first[0]), id(third[0]), id(own[0])] == [id(first[0])] * 3
    assert [(10, 0), (9, 0), (9, 1)] == [(found[1].remaining, found[1].claimed) for found in (first, third, own)]
    assert [still.template_id, moving.template_id] == [offer.listed.template_id for offer in third]


def test_a_change_of_one_template_leaves_the_others_as_they_are(services: Services) -> None:
    """Of a list that is read anew."""
    changed, same = open_sale(services, template_id=7_001), open_sale(services, template_id=7_002)
    center = center_of(services)
    before = offers(center, "ann")
    change_template(services.engine, changed.template_id, name="Another")
    forget_offers(services)

    after = offers(center, "ann")

    assert [same.template_id, changed.template_id] == [offer.listed.template_id for offer in after]
    assert before[0] is after[0]
    assert ["Double Eleven 100-20", "Another"] == [found[1].template["name"] for found in (before, after)]


def listing(**columns: object) -> OfferPages:
    """A list of one template that is on sale from ten to two, local time of Shanghai being eight hours ahead."""
    row = {
        "template_id": 1, "claim_start": NOON - timedelta(hours=2), "claim_end": NOON + timedelta(hours=10),
        "per_user_limit": None, "per_user_daily_limit": None, "timezone": "Asia/Shanghai", "bucket_count": 1,
        "channels_claim": [], "free": 1,
    }  # fmt: skip
    return OfferPages([listed(row | columns)], is_whole=True)


def test_a_page_holds_until_something_begins_or_ends() -> None:
    """Its first and last instant are those of the templates; a clock that is set back finds the earlier page."""
    pages, millisecond = listing(), timedelta(milliseconds=1)
    start, end = NOON - timedelta(hours=2), NOON + timedelta(hours=10)

    made = [pages.page(Wish("ann", None, 50, FIRST, at)) for at in (start - millisecond, start, end - millisecond, end)]
    again = pages.page(Wish("bob", None, 50, FIRST, start - millisecond))

    assert made[0] is not made[1] is made[2] is not made[3]
    assert [1, 1, 1, 0] == [len(page.templates) for page in made if page]
    assert made[0] is again


def test_a_page_with_a_daily_limit_holds_for_the_local_day() -> None:
    """The count of another day is asked for after midnight there, at 16:00 UTC."""
    midnight = NOON + timedelta(hours=4)
    limited, free = listing(per_user_daily_limit=1), listing()
    moments = (NOON, midnight - timedelta(milliseconds=1), midnight)

    first, before, after = (limited.page(Wish("ann", None, 50, FIRST, at)) for at in moments)

    assert first is before is not after
    assert first and after and first.questions("ann")[:2] == after.questions("ann")[:2]
    assert b":day:20768\r\n" in first.questions("ann")[2]
    assert b":day:20769\r\n" in after.questions("ann")[2]
    assert 1 == len({id(free.page(Wish("ann", None, 50, FIRST, at))) for at in moments})


def test_users_of_different_buckets_ask_different_gates() -> None:
    """Each the one in which he is counted; those of one bucket share their page."""
    pages = listing(bucket_count=3)
    users = [f"u{number}" for number in range(30)]
    found = {user: pages.page(Wish(user, None, 50, FIRST, NOON)) for user in users}

    assert 3 == len({id(page) for page in found.values()})
    for user, page in found.items():
        bucket = offer_pages.bucket_of(user, 3)
        assert page and all(f"{{t1.{bucket}}}".encode() in question for question in page.questions(user))


def test_no_more_pages_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a page of each size, below each number."""
    monkeypatch.setattr(offer_pages, "MOST_PAGES", 5)
    pages = listing()

    for before in range(2, 40):
        assert pages.page(Wish("ann", None, 50, before, NOON))

    assert len(pages._made) <= 5
