"""The claim centre: what a user finds there, and in which state (API.md, Claims)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.claiming.claim_center import Offer, offers_for
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template
from tests.support.sale import Sale, open_sale
from tests.support.template import change_template, insert_template

FIRST = 2**63 - 1


@pytest.fixture
def sale(services: Services) -> Sale:
    """Three units, two a user, one a day."""
    return open_sale(services, total_quantity=3, per_user_limit=2, per_user_daily_limit=1)


def offers(services: Services, user: str = "ann", channel: str | None = None) -> list[Offer]:
    """The first page."""
    return offers_for(services, user, channel, limit=50, before=FIRST)


def only(services: Services, user: str = "ann") -> tuple[str, int, int | None]:
    """State, own claims and remaining units of the only offer."""
    (offer,) = offers(services, user)
    return offer.state, offer.claimed, offer.remaining


def test_an_open_template_is_claimable(sale: Sale) -> None:
    """With what remains of it."""
    assert ("claimable", 0, 3) == only(sale.services)


def test_a_user_at_his_daily_limit_has_reached_it_until_tomorrow(sale: Sale) -> None:
    """A queued claim counts like a coupon; another user may claim."""
    sale.claim("ann")

    assert ("limit_reached", 1, 2) == only(sale.services)
    assert ("claimable", 0, 2) == only(sale.services, "bob")

    tomorrow = sale.services.clock() + timedelta(hours=23, minutes=59)
    change_template(sale.services.engine, sale.template_id, claim_end=tomorrow + timedelta(days=2))
    later = replace(sale.services, clock=lambda: tomorrow + timedelta(days=1))
    assert ("claimable", 1, 2) == only(later)


def test_the_only_coupon_a_user_may_have_is_claimed(services: Services) -> None:
    """A limit of one has a word of its own; a higher one is reached."""
    one = open_sale(services, per_user_limit=1)
    two = open_sale(services, template_id=7_002, per_user_limit=2)
    one.claim("ann")
    two.claim("ann", "r1")
    two.claim("ann", "r2")

    assert ["limit_reached", "claimed"] == [offer.state for offer in offers(services)]


def test_what_is_sold_out_says_so_and_a_cold_template_does_not(sale: Sale) -> None:
    """Nothing is known of the stock of a cold one."""
    for user in ("bob", "cat", "dan"):
        sale.claim(user)
    sold_out = only(sale.services)
    sale.services.redis.flushdb()

    assert ("sold_out", 0, 0) == sold_out
    assert ("claimable", 0, None) == only(sale.services)


def test_a_coming_template_is_not_started_and_an_ended_one_is_gone(services: Services) -> None:
    """By the clock, whatever status is stored."""
    now = services.clock()
    insert_template(services.engine, template_id=1, claim_start=now + timedelta(hours=1))
    insert_template(services.engine, template_id=2, claim_end=now)
    insert_template(services.engine, template_id=3, status="ended")

    found = [(offer.template["template_id"], offer.state) for offer in offers(services)]

    assert [(3, "claimable"), (1, "not_started")] == found


def test_what_is_stopped_or_was_never_published_is_not_shown(services: Services) -> None:
    """Paused, offline, archived, draft."""
    pause_template(services, open_sale(services).template_id)
    for number, status in enumerate(("draft", "pending_approval", "offline", "archived"), 1):
        insert_template(services.engine, template_id=number, status=status)

    assert [] == offers(services)


def test_a_channel_sees_the_templates_that_are_for_it(services: Services) -> None:
    """And those that are for every channel."""
    insert_template(services.engine, template_id=1, channels_claim=["app"])
    insert_template(services.engine, template_id=2, channels_claim=["h5", "web"])
    insert_template(services.engine, template_id=3)

    def seen(channel: str | None) -> list[int]:
        return [offer.template["template_id"] for offer in offers(services, channel=channel)]

    assert ([3, 1], [3, 2], [3], [3, 2, 1]) == (seen("app"), seen("web"), seen("we"), seen(None))


@pytest.mark.parametrize(
    ("stock", "shown"), [(0, 0), (99, 99), (100, 100), (109, 100), (1_999, 1_900), (123_456, 120_000)]
)
def test_remaining_units_are_rounded_for_the_public(services: Services, stock: int, shown: int) -> None:
    """Down, to two digits: nobody follows the sale by them."""
    sale = open_sale(services, total_quantity=200_000)
    services.redis.set(sale.keys.stock, stock)

    assert shown == only(services)[2]


def test_pages_follow_one_another_newer_first(services: Services) -> None:
    """Each begins below the last id of the one before."""
    for number in range(1, 6):
        insert_template(services.engine, template_id=number)

    first = offers_for(services, "ann", None, limit=2, before=FIRST)
    second = offers_for(services, "ann", None, limit=2, before=4)

    assert [[5, 4], [3, 2]] == [[offer.template["template_id"] for offer in page] for page in (first, second)]
