"""Risk control under attack: farms of accounts, farms of devices, and a Redis that loses its memory meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from coupon_workers.claiming.claim_request import read_claim
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.risk.listing import put_entry
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services
from tests.support.recon_reading import found
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import Sale, assert_sound, gate_of

ACCOUNTS = 600
THREADS = 4
REFUSED = ClaimOutcome.RISK_REJECTED


def unhurried_sale(services: Services, *rules: dict[str, Any], **columns: Any) -> Sale:
    """Without a limit of claims in a second: that is not what stands in the way."""
    return replace(risky_sale(services, *rules, **columns), gate=gate_of(services, claim_rate=0))


def by_threads(sale: Sale, claims: list[dict[str, str]]) -> Counter[str]:
    """Make the claims, several at a time; how many were accepted, and refused by which rule."""

    def claim(number: int) -> str:
        decision = claim_from(sale, **({"user": f"u{number}"} | claims[number]))
        return decision.rule or decision.outcome.value

    with ThreadPoolExecutor(THREADS) as pool:
        return Counter(pool.map(claim, range(len(claims))))


@pytest.mark.parametrize("source", ["device", "ip", "address"])
def test_many_accounts_of_one_source_get_what_the_rule_lets_through(services: Services, source: str) -> None:
    """However many come at once; others are served meanwhile."""
    sale = unhurried_sale(
        services, rule("farm", dimension=source, measure="distinct_users", threshold=3), total_quantity=1_000
    )
    farm = [{source: "one"} for _ in range(ACCOUNTS)]
    others = [{source: f"home-{number}"} for number in range(100)]
    claims = farm + others
    random.Random(7).shuffle(claims)

    got = by_threads(sale, claims)
    sale.drain()
    sweep_risk(services)

    assert {"ACCEPTED": 103, "farm": ACCOUNTS - 3} == got
    assert 897 == sale.stock
    assert [(ACCOUNTS - 3,)] == sale.rows("SELECT count(*) FROM risk_verdict WHERE template_id = :template_id")
    assert_sound(services)


def test_one_account_of_many_devices_is_known_by_its_name(services: Services) -> None:
    """A new device each time does not help it; nor do devices make keys without end."""
    sale = unhurried_sale(
        services,
        rule("burst", dimension="user", threshold=4),
        rule("device", threshold=2),
        total_quantity=1_000,
        per_user_limit=100,
    )
    claims = [{"user": "eve", "request": f"r{number}", "device": f"d{number}"} for number in range(ACCOUNTS)]

    got = by_threads(sale, claims)
    sale.drain()

    assert {"ACCEPTED": 4, "burst": ACCOUNTS - 4} == got
    (counters,) = services.redis.scan_iter(f"{sale.keys.risk_prefix}*")
    assert 6 == services.redis.hlen(counters)  # one of the user, of each device that got something, and of the hash
    assert_sound(services)


def test_a_farm_that_spreads_over_devices_meets_the_rule_of_its_network(services: Services) -> None:
    """With neighbours of IPv6 in one network of 64 bits."""
    sale = unhurried_sale(services, rule("net", dimension="ip", threshold=5), rule("device", threshold=1))
    front = ClaimFront(services)
    requests = [
        read_claim(
            {
                "template_id": str(sale.template_id),
                "user_id": f"u{number}",
                "request_id": "r1",
                "device_id": f"d{number}",
                "ip": f"2001:db8::{number:x}",
            }
        )
        for number in range(60)
    ]

    got = Counter(decision.outcome for decision in front.claim_many(requests))

    assert {ClaimOutcome.ACCEPTED: 5, REFUSED: 55} == got


def test_a_redis_that_is_flushed_in_the_midst_loses_counters_and_nothing_else(services: Services) -> None:
    """Each device has one more window at most; who is listed is refused before and after; no coupon too many."""
    sale = unhurried_sale(
        services,
        rule("burst", threshold=3, window_s=3_600),
        rule("look", dimension="ip", threshold=0, verdict="review"),
        total_quantity=100,
        per_user_limit=1,
    )
    put_entry(services, "block", "user", "eve", "key-1")
    halfway = Event()

    def shop(thread: int) -> Counter[ClaimOutcome]:
        heard: Counter[ClaimOutcome] = Counter()
        for number in range(150):
            device = f"d{number % 10}"
            ip = "203.0.113.7" if number % 30 == 0 else ""
            heard[claim_from(sale, f"u{thread}-{number}", device=device, ip=ip).outcome] += 1
            eve = claim_from(sale, "eve", request=f"r{thread}-{number}", device=f"e{number}").outcome
            assert eve in (REFUSED, ClaimOutcome.NOT_WARMED)
            if number == 75:
                halfway.set()
        return heard

    with ThreadPoolExecutor(THREADS) as pool:
        shopping = [pool.submit(shop, thread) for thread in range(THREADS)]
        assert halfway.wait(60)
        sale.drain()
        services.redis.flushall()
        sale.preheat()
        heard = sum((each.result() for each in shopping), Counter[ClaimOutcome]())
    sale.drain()
    sweep_risk(services)

    devices = 10
    durable = len(sale.coupons()) + sale.books["held_quantity"]
    assert 3 * devices <= heard[ClaimOutcome.ACCEPTED] <= 2 * 3 * devices
    assert durable <= heard[ClaimOutcome.ACCEPTED]
    assert 100 == sale.stock + durable
    assert [(0,)] == sale.rows("SELECT count(*) FROM coupon WHERE user_id = 'eve'")
    assert [] == found(services)
    assert_sound(services)
