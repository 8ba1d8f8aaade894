"""What docs/lottery.md says of draws while a store is away or the template stands still, one test a promise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import create_engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_front import DrawFront
from coupon_workers.lottery.draw_gate import DrawRequest
from coupon_workers.lottery.lottery_control import end_lottery
from coupon_workers.lottery.outcome import DrawOutcome
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services
from tests.support.http_shop import Shop
from tests.support.lottery import FIRST, OPERATOR, Fair, coupon_prize, open_lottery, thanks
from tests.support.sale import assert_sound, open_sale


def _without_redis(services: Services) -> Services:
    return replace(services, redis=client_without_retries("unix:///nowhere/valkey.sock", 100))


@pytest.mark.parametrize("stop", ["pause", "offline"])
def test_a_template_that_stops_claims_stops_no_prizes(services: Services, stop: str) -> None:
    """Whoever is told that he has won gets it, also what is drawn afterwards."""
    shop = Shop(services, claim_rate=0)
    template_id = shop.desk.open(total_quantity=10)
    fair = open_lottery(services, [coupon_prize(int(template_id), 3)], start=shop.services.clock())

    fair.draw("ann", number=FIRST)
    shop.desk.act(template_id, stop).ok()
    fair.draw("ben", number=FIRST)
    fair.drain()

    assert {"ann": 1, "ben": 1} == fair.coupons()
    assert 409 == shop.front.claim(template_id, "cleo").status
    shop.assert_sound()


def test_while_redis_is_away_nothing_is_taken(services: Services) -> None:
    """The storefront is told to ask again; back again, the same request is a draw."""
    fair = open_lottery(services, [thanks()])
    shop = Shop(_without_redis(services), claim_rate=0)
    asked = ("POST", f"/v1/lotteries/{fair.lottery_id}/draws", {"user_id": "ann", "request_id": "r1"})

    assert 503 == shop.front.ask(*asked).status
    assert ([1_000_000], 0) == (fair.stock, fair.queued)
    assert False is Shop(services, claim_rate=0).front.ask(*asked).ok()["replayed"]
    assert 1 == fair.queued


def test_a_lottery_that_ends_while_redis_is_away_waits_for_it(services: Services) -> None:
    """Nobody knows what is queued: its units stay aside, and the sweep gives them back afterwards."""
    sale = open_sale(services, total_quantity=10)
    fair = open_lottery(services, [coupon_prize(sale.template_id, 4)])
    fair.draw("ann", number=FIRST)
    away = _without_redis(services)

    end_lottery(away, fair.lottery_id, OPERATOR)
    with pytest.raises(StoreUnavailable):
        Fair(away, fair.lottery_id).sweep()
    assert ("ending", 4) == (fair.books["status"], sale.books["reserved_quantity"])
    fair.sweep()
    fair.drain()
    fair.sweep()

    assert ("ended", 0) == (fair.books["status"], sale.books["reserved_quantity"])
    assert {"ann": 1} == fair.coupons()
    assert_sound(services)


def test_while_postgresql_is_away_draws_are_accepted_up_to_the_backlog(services: Services) -> None:
    """Each is settled afterwards; one more was told to ask again."""
    fair = open_lottery(services, [thanks()])
    limited = services.settings.model_copy(update={"backlog_limit": 3})
    dead = create_engine("postgresql+psycopg2://nobody@/nothing?host=/nowhere")
    front = DrawFront(replace(services, engine=dead, settings=limited))

    outcomes = [front.draw(DrawRequest(fair.lottery_id, f"u{number}", "r1")).outcome for number in range(4)]
    fair.drain()

    assert [DrawOutcome.DRAWN] * 3 + [DrawOutcome.BACKLOG_FULL] == outcomes
    assert 3 == len(fair.draws())
