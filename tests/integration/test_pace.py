"""Work that can wait, beside claims that cannot: when it is paced, and how."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.pace import MANY, Lane, claims_come, line_ms, note_claims, reserve
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.sale import open_sale

NOON = datetime(2026, 11, 11, 12, tzinfo=UTC)
RATE = 10_000


def at(services: Services, instant: datetime, rate: int = RATE) -> Services:
    """The services with a clock that stands."""
    return replace(
        services, clock=lambda: instant, settings=services.settings.model_copy(update={"background_rate": rate})
    )


def test_claims_come_for_two_seconds_after_many_were_settled(services: Services) -> None:
    """In the second they were settled, and in the next."""
    note_claims(at(services, NOON), MANY)

    seconds = [at(services, NOON + timedelta(seconds=passed)) for passed in (-1, 0, 1, 2)]
    assert [False, True, True, False] == [claims_come(one) for one in seconds]


def test_few_claims_are_not_felt(services: Services) -> None:
    """Several drains of a second are counted together."""
    here = at(services, NOON)
    note_claims(here, MANY - 1)

    few = claims_come(here)
    note_claims(here, 1)

    assert (False, True) == (few, claims_come(here))


def test_settling_notes_what_it_settles(services: Services) -> None:
    """A sale is noticed without anything in the claim's own way."""
    sale = open_sale(services, total_quantity=200)
    sale.claim_each(f"u{number}" for number in range(2 * MANY))
    before = claims_come(services)

    sale.drain()

    assert (False, True) == (before, claims_come(services))


def test_lanes_do_not_wait_for_each_other(services: Services) -> None:
    """A sweep does not stand behind the hundred shards of a campaign."""
    here = at(services, NOON)
    note_claims(here, MANY)

    campaign = [reserve(here, Lane.CAMPAIGN, RATE) for _ in range(2)]

    assert 0 == campaign[0]
    assert campaign[1] is not None and 900 < campaign[1] <= 1_000
    assert 0 == reserve(here, Lane.EXPIRY, RATE)
    assert 1_900 < line_ms(here.redis, Lane.CAMPAIGN) <= 2_000


def test_without_a_rate_nothing_is_paced(services: Services) -> None:
    """An operator may want the campaign first."""
    note_claims(at(services, NOON), MANY)
    here = at(services, NOON, rate=0)

    assert (False, None) == (claims_come(here), reserve(here, Lane.CAMPAIGN, 1_000_000))


def test_without_redis_nothing_is_paced(services: Services, settings: Settings) -> None:
    """No claims come then; only who asks for the line is told."""
    away = make_redis(settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")}))
    here = replace(at(services, NOON), redis=away)

    note_claims(here, MANY)

    assert (False, None) == (claims_come(here), reserve(here, Lane.EXPIRY, 1))
    with pytest.raises(StoreUnavailable):
        line_ms(away, Lane.EXPIRY)
