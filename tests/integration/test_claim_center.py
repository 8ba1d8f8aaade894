"""The claim centre: what a user finds there, and in which state (API.md, Claims)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import event

from coupon_workers.claiming import offer_list
from coupon_workers.claiming.claim_center import ClaimCenter
from coupon_workers.claiming.offer import Offer
from coupon_workers.claiming.offer_list import forget_offers
from coupon_workers.runtime import kept_page, shared_read
from coupon_workers.runtime.kept_page import KeptPages
from coupon_workers.runtime.lean_redis import lean_threads
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
    return center_of(services).offers_for(user, channel, limit=50, before=FIRST).offers


def center_of(services: Services) -> ClaimCenter:
    """The claim centre of a front that has just been started."""
    return ClaimCenter(services, KeptPages(services.lean, services.redis))


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
    forget_offers(sale.services)
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


def test_what_is_set_aside_is_told_from_what_is_sold_out(services: Services) -> None:
    """Nobody has claimed a unit: all are reserved or came out of that. One that a held claim has taken is a claim's."""
    counts = {"total_quantity": 9, "issued_quantity": 4, "reserved_quantity": 5}
    aside = open_sale(services, template_id=1, **counts, granted_quantity=4)
    claimed = open_sale(services, template_id=2, **counts, granted_quantity=3)
    held = open_sale(services, template_id=3, **counts, granted_quantity=4, held_quantity=1)
    open_sale(services, template_id=4, **counts | {"reserved_quantity": 4}, granted_quantity=4)
    services.redis.mset({each.keys.stock: 0 for each in (aside, claimed, held)})

    found = {offer.template["template_id"]: (offer.state, offer.is_set_aside) for offer in offers(services)}

    sold_out = ("sold_out", False)
    assert {1: ("sold_out", True), 2: sold_out, 3: sold_out, 4: ("claimable", False)} == found


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

    center = center_of(services)
    pages = [center.offers_for("ann", None, limit=2, before=before) for before in (FIRST, 4, 2)]

    assert [[5, 4], [3, 2], [1]] == [[offer.template["template_id"] for offer in page.offers] for page in pages]
    assert [True, True, False] == [page.has_more for page in pages]


@contextmanager
def list_reads(services: Services) -> Iterator[list[str]]:
    """The statements by which the list is read from the database meanwhile."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *rest: Any) -> None:
        if "claim_end > " in sql:
            seen.append(sql)

    event.listen(services.engine, "before_cursor_execute", note)
    yield seen
    event.remove(services.engine, "before_cursor_execute", note)


def test_readers_of_several_fronts_read_the_list_once(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """And once again for each life of it, on a machine that takes so long; nobody gives up waiting for another."""
    for module in (kept_page, shared_read):
        monkeypatch.setattr(module, "PATIENCE_S", 60.0)
    open_sale(services)
    fronts = [center_of(services) for _ in range(3)]
    began_s = time.monotonic()
    with list_reads(services) as read, ThreadPoolExecutor(24) as threads:
        found = threads.map(
            lambda number: fronts[number % 3].offers_for(f"u{number}", None, limit=50, before=FIRST), range(600)
        )
        assert {"claimable"} == {center.offers[0].state for center in found}

    assert 1 <= len(read) <= 2 + time.monotonic() - began_s


def test_a_front_that_has_the_list_sees_a_change_at_once(services: Services) -> None:
    """Though it has the list at hand: the one that Redis keeps is another, or none."""
    sale, center = open_sale(services), center_of(services)
    for _ in range(2):
        assert 1 == len(center.offers_for("ann", None, limit=50, before=FIRST).offers)
    pause_template(services, sale.template_id)

    assert [] == center.offers_for("ann", None, limit=50, before=FIRST).offers


def test_a_change_of_which_redis_does_not_hear_is_seen_within_a_second(services: Services) -> None:
    """The list runs out."""
    sale, center = open_sale(services), center_of(services)
    center.offers_for("ann", None, limit=50, before=FIRST)
    change_template(services.engine, sale.template_id, status="paused")
    asked_s = began_s = time.monotonic()

    while center.offers_for("ann", None, limit=50, before=FIRST).offers:
        assert asked_s - began_s < 1
        asked_s = time.monotonic()


def test_without_redis_the_database_tells_all_of_it(sale: Sale) -> None:
    """What is settled of the user, the day's too, and the units that its books have free."""
    sale.claim("ann")
    sale.claim("bob")
    sale.drain()
    away = sale.services.settings.model_copy(update={"redis_url": SecretStr("unix:///nowhere.sock")})
    services = replace(sale.services, lean=lean_threads(away))
    center = center_of(services)

    assert [("limit_reached", 1, 1), ("claimable", 0, 1)] == [only(services, user) for user in ("ann", "eve")]
    assert 1 == len(center.offers_for("ann", None, limit=50, before=FIRST).offers)


def test_a_cold_gate_leaves_the_users_counts_to_the_database(sale: Sale) -> None:
    """Redis was flushed: what he has is not forgotten, and nothing is sold out."""
    sale.claim("ann")
    sale.drain()
    center = center_of(sale.services)
    before = center.offers_for("ann", None, limit=50, before=FIRST).offers[0]
    sale.services.redis.flushall()
    after = center.offers_for("ann", None, limit=50, before=FIRST).offers[0]

    assert [("limit_reached", 1, 2), ("limit_reached", 1, None)] == [
        (offer.state, offer.claimed, offer.remaining) for offer in (before, after)
    ]


def test_what_the_list_has_no_room_for_is_read_page_by_page(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is bounded: of many templates it holds the newest."""
    monkeypatch.setattr(offer_list, "MOST_LISTED", 3)
    for number in range(1, 8):
        insert_template(services.engine, template_id=number, channels_claim=["app"] if number % 2 else ["h5"])
    center = center_of(services)

    def walk(channel: str | None, limit: int) -> list[int]:
        seen, before = [], FIRST
        while True:
            page = center.offers_for("ann", channel, limit=limit, before=before)
            seen += [offer.listed.template_id for offer in page.offers]
            if not page.has_more:
                return seen
            before = seen[-1]

    for limit in (1, 2, 3, 4, 7, 50):
        assert [7, 6, 5, 4, 3, 2, 1] == walk(None, limit)
        assert [7, 5, 3, 1] == walk("app", limit)
        assert [6, 4, 2] == walk("h5", limit)
