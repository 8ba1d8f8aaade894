"""The live view tells what the fronts have answered, second by second, and what waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from coupon_workers.claiming.live_tally import KEPT_S, live_key, tell_live
from coupon_workers.claiming.live_view import _LATENCIES, LATE_S, last_whole_second, read_latency, read_live
from coupon_workers.runtime.metrics import count_claims, take_claims
from coupon_workers.runtime.services import Services
from tests.support.console_visitor import Visitor
from tests.support.http_shop import Shop


@pytest.fixture
def shop(services: Services) -> Shop:
    """A shop on empty stores; what other tests have counted is forgotten."""
    take_claims()
    return Shop(services, claim_rate=0)


def _later(services: Services) -> Services:
    """Once the seconds that were told are whole."""
    return replace(services, clock=lambda: services.clock() + timedelta(seconds=LATE_S + 1))


def _outcomes(services: Services, template_id: str) -> Counter[str]:
    now = last_whole_second(services)
    [found] = read_live(services, [int(template_id)], now - 60)
    return sum((Counter(outcomes) for outcomes in found.seconds.values()), Counter())


def test_answers_are_told_by_template_and_outcome(shop: Shop) -> None:
    """Single claims and those of a batch; asked again, nothing is told twice."""
    first, second = shop.desk.open(total_quantity=2), shop.desk.open()
    for user in ("ann", "bob", "cid"):
        shop.front.claim(first, user)
    shop.front.claim_many([{"template_id": second, "user_id": "ann", "request_id": "b1"}]).ok(200)

    tell_live(shop.services)
    tell_live(shop.services)

    later = _later(shop.services)
    assert Counter(ACCEPTED=2, SOLD_OUT=1) == _outcomes(later, first)
    assert Counter(ACCEPTED=1) == _outcomes(later, second)


def test_the_fronts_of_all_hosts_add_up(shop: Shop) -> None:
    """In the same second as in another."""
    count_claims([(7, "SOLD_OUT"), (7, "SOLD_OUT")])
    tell_live(shop.services)
    count_claims([(7, "SOLD_OUT")])
    tell_live(shop.services)

    assert Counter(SOLD_OUT=3) == _outcomes(_later(shop.services), "7")


def test_what_nobody_has_made_fills_no_redis(shop: Shop) -> None:
    """Claims of templates that do not exist are not told; the others go by themselves."""
    shop.front.claim("4711", "ann")
    count_claims([(7, "SOLD_OUT")])

    tell_live(shop.services)

    [name] = shop.services.redis.keys("cw:{live*")
    assert live_key(7, 0).rpartition(":")[0] == name.decode().rpartition(":")[0]
    assert KEPT_S <= shop.services.redis.ttl(name) <= KEPT_S + 60


def test_what_is_left_and_what_waits_is_told(shop: Shop) -> None:
    """With the age of the oldest claim; both templates in one round trip."""
    sold, cold = shop.desk.open(total_quantity=5), shop.desk.draft()
    shop.front.claimed(sold, "ann")

    of_sold, of_cold = read_live(shop.services, [int(sold), int(cold)], last_whole_second(shop.services))

    assert (True, 4, 1) == (of_sold.warmed, of_sold.remaining, of_sold.queued)
    assert 0 <= of_sold.oldest_ms < 60_000
    assert (False, 0, 0) == (of_cold.warmed, of_cold.remaining, of_cold.queued)


def test_the_latency_is_that_of_coupons_just_issued(shop: Shop) -> None:
    """From the gate's acceptance to the commit; what is older than asked for is left out."""
    template_id = shop.desk.open()
    for user in ("ann", "bob"):
        shop.front.claimed(template_id, user)
    shop.settle(template_id)
    now = last_whole_second(shop.services)

    [latency] = read_latency(shop.services, int(template_id), now - 60)

    assert 2 == latency.coupons
    assert 0 <= latency.median_ms <= latency.p99_ms < 60_000
    assert [] == read_latency(shop.services, int(template_id), now + 3_600)


def test_the_latency_of_a_large_template_costs_its_newest_coupons(shop: Shop) -> None:
    """Found by the index of a template's coupons in each partition, none of them sorted."""
    with shop.services.engine.connect() as connection:
        named = {"template_id": 7, "most": 2_000, "since": 0}
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {_LATENCIES.text}"), named))

    assert "Index Scan Backward using" in plan
    assert "Merge Append" in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize("after", ["-9", "0", "99999999999999999999", "x"])
def test_whatever_a_script_asks_for_is_answered(shop: Shop, after: str) -> None:
    """At most the last five minutes, and of the future nothing."""
    template_id = shop.desk.open()

    assert {} == _data(Visitor(shop, "ops"), f"/live/{template_id}?after={after}")["seconds"]


def _data(visitor: Visitor, path: str) -> dict[str, Any]:
    answer = visitor.get(f"/data{path}")
    assert 200 == answer.status_code
    return dict(answer.get_json())


def test_the_page_asks_for_the_seconds_it_has_not_seen(shop: Shop) -> None:
    """And hears what is left and waits, each time."""
    template_id = shop.desk.open()
    zoe = Visitor(shop, "ops")
    shop.front.claimed(template_id, "ann")

    first = _data(zoe, f"/live/{template_id}")
    again = _data(zoe, f"/live/{template_id}?after={first['now'] + 3600}")
    [glance] = _data(zoe, f"/live?id={template_id}")["templates"]

    assert (9, 1, "active") == (first["remaining"], first["queued"], first["status"])
    assert {} == again["seconds"]
    assert (template_id, 9, 1) == (glance["id"], glance["remaining"], glance["queued"])


@pytest.mark.parametrize("path", ["/live/4711", "/live/nonsense", "/live?id=x"])
def test_what_is_not_there_is_answered_as_data(shop: Shop, path: str) -> None:
    """A script reads JSON."""
    answer = Visitor(shop, "ops").get(f"/data{path}")

    assert 404 == answer.status_code
    assert answer.is_json
