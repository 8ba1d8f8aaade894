"""A pool that is claimed and settled while its gate is rebuilt, paused or emptied: no value twice, none lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import preheat_template
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.conftest import PostBox
from tests.support.pool import PoolSale, open_pool
from tests.support.sale import assert_sound
from tests.support.traffic import amid_traffic, assert_every_accepted_claim_ended


def pool_of(total: int) -> dict[str, Any]:
    """Amounts of which many are there more than once."""
    return {"min": 1, "max": 40, "budget": 12 * total, "distribution": "uniform"}


def sell_out(sale: PoolSale) -> None:
    """Claim what is left, and settle."""
    number = 0
    while sale.claim(f"rest{number}").outcome is ClaimOutcome.ACCEPTED:
        number += 1
    sale.drain()


def assert_sold_to_the_last_value(sale: PoolSale) -> None:
    """The coupons are the pool."""
    assert sale.pool() == Counter(sale.worth().values())
    assert sale.books["pool"]["budget"] == sum(sale.worth().values())
    assert_sound(sale.services)


@pytest.mark.parametrize("total", [150, 400])
def test_preheats_under_traffic_have_no_value_drawn_twice(services: Services, post: PostBox, total: int) -> None:
    """Each claim keeps what it drew: the database has to draw for none, and no rebuild is asked for."""
    sale = open_pool(services, pool=pool_of(total), total_quantity=total)

    answers = amid_traffic(sale, sale.preheat)

    assert preheat_template(sale.template_id) not in post.sent
    assert_every_accepted_claim_ended(sale, answers)
    sell_out(sale)
    assert_sold_to_the_last_value(sale)


def test_pauses_under_traffic_give_every_value_back(services: Services, post: PostBox) -> None:
    """Rejections, drains and rebuilds beside one another."""
    sale = open_pool(services, pool=pool_of(300), total_quantity=300)

    def disturb() -> None:
        pause_template(services, sale.template_id)
        sale.preheat()
        resume_template(services, sale.template_id)

    answers = amid_traffic(sale, disturb)

    assert preheat_template(sale.template_id) not in post.sent
    assert_every_accepted_claim_ended(sale, answers)
    sell_out(sale)
    assert_sold_to_the_last_value(sale)


def test_a_redis_emptied_under_traffic_loses_no_value(services: Services) -> None:
    """Again and again, with claims queued: what a lost claim had drawn is drawn by another."""
    sale = open_pool(services, pool=pool_of(300), total_quantity=300)

    def lose_everything() -> None:
        services.redis.flushall()
        sale.preheat()

    amid_traffic(sale, lose_everything)

    assert Counter(sale.worth().values()) <= sale.pool()
    sale.preheat()
    sell_out(sale)
    assert_sold_to_the_last_value(sale)
