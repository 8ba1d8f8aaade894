"""Redis is lost between any two questions of whatever asks it: that is said in one word, and no other error comes out.

What is done by itself (``actors/``) expects this one, and its next pass goes on; anything else would end as a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from coupon_workers.claiming.claim_status import claim_status
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.claiming.gate_sweep import sweep_gates
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.live_view import last_whole_second, read_live
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.claiming.stock_gauge import read_sale_stock
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.errors import StoreUnavailable
from coupon_workers.lottery.draw_settlement import drain_draws
from coupon_workers.lottery.lottery_preheat import preheat_lottery
from coupon_workers.lottery.lottery_sweep import sweep_lotteries
from coupon_workers.risk.listing import put_entry
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.queue_depth import pending_depths
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from tests.support.code_batch import hand_out_codes
from tests.support.lottery import coupon_prize, open_lottery
from tests.support.redis_proxy import Fault, proxied
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import Sale
from tests.support.template import change_template

Use = Callable[[Services, "Busy"], object]

QUESTIONS = 14
"""Longer than any of these talks to Redis, the greetings of its connection included."""


class Busy:
    """A template with something in every queue: claims, one of them held, a listed user, codes, and a lottery."""

    def __init__(self, services: Services) -> None:
        self.sale: Sale = risky_sale(services, rule(threshold=0, verdict="review"), total_quantity=50)
        hand_out_codes(self.sale, 2)
        self.lottery_id = open_lottery(services, [coupon_prize(self.sale.template_id, 5)]).lottery_id
        claim_from(self.sale, "ann", device="d1")
        self.sale.drain()
        put_entry(services, "block", "user", "bob", "key-1")
        claim_from(self.sale, "bob")
        self.claim_id = claim_from(self.sale, "cat").claim_id
        change_template(services.engine, self.sale.template_id, name="told later")

    @property
    def template_id(self) -> int:
        """The template's."""
        return self.sale.template_id


USES: dict[str, Use] = {
    "settling": lambda services, busy: drain(services, busy.template_id, 0),
    "preheating": lambda services, busy: preheat_template(services, busy.template_id),
    "telling a gate": lambda services, busy: sync_template(services, busy.template_id),
    "retiring gates": lambda services, _: retire_gates(services),
    "sweeping gates": lambda services, _: sweep_gates(services),
    "sweeping risk": lambda services, _: sweep_risk(services),
    "sweeping codes": lambda services, _: sweep_codes(services),
    "sweeping lotteries": lambda services, _: sweep_lotteries(services),
    "settling draws": lambda services, busy: drain_draws(services, busy.lottery_id),
    "preheating a lottery": lambda services, busy: preheat_lottery(services, busy.lottery_id),
    "a claim's status": lambda services, busy: claim_status(services, busy.claim_id),
    "the live view": lambda services, busy: read_live(services, [busy.template_id], last_whole_second(services) - 60),
    "the stock of sales": lambda services, _: read_sale_stock(services.redis),
    "what is pending": lambda services, _: pending_depths(services.redis),
}


@pytest.mark.parametrize("use", USES)
def test_a_redis_that_is_lost_amid_any_work_is_unavailable(services: Services, use: str) -> None:
    """From each of its questions on: nothing else is raised, and with Redis back the work is done."""
    busy = Busy(services)

    for number in range(QUESTIONS):
        services.redis.delete(busy.sale.keys.risk_list)
        with proxied(services.settings) as (proxy, settings):
            proxy.plan(*[Fault.NONE] * number, *[Fault.LOSE_QUESTION] * QUESTIONS)
            lost = replace(services, redis=make_redis(settings), settings=settings)
            with suppress(StoreUnavailable):
                USES[use](lost, busy)

    USES[use](services, busy)
