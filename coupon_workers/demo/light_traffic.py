"""Traffic that goes on while people look: claims in waves, and a few orders between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from coupon_workers.errors import StoreUnavailable
from coupon_workers.load.claim_client import ClaimClient
from coupon_workers.load.claim_plan import ClaimPlan, TemplateShare
from coupon_workers.load.http_request import Address
from coupon_workers.load.order_client import OrderClient
from coupon_workers.load.order_plan import plan_orders, rounds
from coupon_workers.load.order_report import free_coupons
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

WAVES = (8, 14, 45, 25, 10)
"""Claims a second, a wave after the other: little for the machine, enough for a chart."""

WAVE_S = 5
USERS, MORE_USERS = 100, 15
"""At first, and a wave: few enough that some have reached the limit, so that the picture shows refusals too."""

BUYERS, ORDER_CALLS = 4, 12
WEIGHTS = (60, 25, 15)

log = get_logger(__name__)


class LightTraffic:
    """For the templates named, the busiest first. ``run`` keeps its requests apart from others."""

    def __init__(
        self, services: Services, address: Address, template_ids: Sequence[str], *, run: str, seed: int
    ) -> None:
        self._services = services
        self._address = address
        self._template_ids = [int(template_id) for template_id in template_ids]
        self._shares = [TemplateShare(*pair) for pair in zip(template_ids, WEIGHTS, strict=True)]
        self._run = run
        self._seed = seed

    def go_on(self) -> None:
        """For ever: whoever wants its end raises something in this thread."""
        for turn in count():
            self._claim(turn, WAVES[turn % len(WAVES)])
            try:
                self._order(turn)
            except StoreUnavailable as error:  # somebody tries what happens without it; it comes back
                log.warning("no orders this time", error=str(error))

    def _claim(self, turn: int, rate: int) -> None:
        plan = ClaimPlan(
            seed=self._seed + turn,
            claims=rate * WAVE_S,
            users=USERS + MORE_USERS * turn,
            templates=self._shares,
            prefix=f"{self._run}-{turn}",
        )
        with ClaimClient(self._address, connections=4) as client:
            client.run(plan, rate=rate)

    def _order(self, turn: int) -> None:
        coupons = free_coupons(self._services, self._template_ids)[-BUYERS:]
        name = f"{self._run}-{turn}"
        lives = plan_orders(coupons, calls=ORDER_CALLS, seed=self._seed + turn, now=utc_now(), run=name)
        with OrderClient(self._address, connections=2) as client:
            for calls in rounds(lives):
                client.run(calls)
