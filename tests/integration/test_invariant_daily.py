"""The checker bites where what a user took today is counted wrongly at the gate, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import check_all
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.support.sale import Sale, assert_sound, open_sale

BRIEFLY_S = 0.3


def where_it_is_noon() -> str:
    """A zone in which no day ends while a test runs."""
    return f"Etc/GMT{utc_now().hour - 12:+d}"


@pytest.fixture
def daily(services: Services) -> Sale:
    """Two a day: ann has a coupon, bob's claim is queued, cid's was rejected, eve's is of long ago."""
    sale = open_sale(services, per_user_daily_limit=2, per_user_limit=9, timezone=where_it_is_noon())
    sale.claim_each(["ann", "eve"])
    sale.drain()
    with services.engine.begin() as connection:
        connection.execute(text("UPDATE coupon SET claimed_at = claimed_at - interval '9 days' WHERE user_id = 'eve'"))
    sale.preheat()
    sale.claim("cid")
    pause_template(services, sale.template_id)
    sale.drain()
    resume_template(services, sale.template_id)
    sale.claim("bob")
    return sale


def today(sale: Sale) -> str:
    """The hash in which the gate counts."""
    found: Any = sale.services.redis.keys(f"{sale.keys.day_prefix}*")
    [key] = found
    return str(key.decode())


DAILY_BREAKS: dict[str, Callable[[Sale], object]] = {
    "ann": lambda sale: sale.services.redis.hincrby(today(sale), "ann", 1),
    "bob": lambda sale: sale.services.redis.hdel(today(sale), "bob"),
    "cid": lambda sale: sale.services.redis.hset(today(sale), "cid", 1),
}


def test_what_users_took_today_is_counted_by_itself(daily: Sale) -> None:
    """Who was rejected, or came on another day, counts for nothing."""
    assert ["PAUSED"] == list(daily.rejections().values())
    assert {b"ann": b"1", b"bob": b"1"} == daily.services.redis.hgetall(today(daily))
    assert_sound(daily.services)


@pytest.mark.parametrize("user", DAILY_BREAKS)
def test_a_count_of_today_that_is_wrong_is_reported(daily: Sale, user: str) -> None:
    """Whether it lets the user claim too often, or keeps him from claiming what a rejection gave back."""
    DAILY_BREAKS[user](daily)

    found = check_all(daily.services, patience_s=BRIEFLY_S).breaches

    assert ["taker_count"] == [breach.invariant for breach in found]
    assert f"user {user} day 20" in found[0].subject
