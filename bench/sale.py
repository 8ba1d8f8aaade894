"""One hot template on sale, as every row uses it: one coupon a user, seven days, told by the outbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.failure import BenchFailure
from bench.world import World
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.load.settled import wait_until_settled
from coupon_workers.runtime.clock import rfc3339, utc_now
from coupon_workers.templates.template import TemplateBody
from coupon_workers.templates.template_desk import create_template, publish_template

STOCK = 50_000_000
"""More than a run can take: nothing is measured that ends in "sold out"."""

CLAIMS_A_TRIP = 500
_LOOK_EVERY_S = 0.01
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Sale:
    """The template and what has become of its stock."""

    world: World
    template_id: int

    @property
    def accepted(self) -> int:
        """Claims the gate has taken from the stock, by its own books."""
        stock: Any = self.world.services.redis.get(BucketKeys(self.template_id).stock)
        return STOCK - int(stock)

    @property
    def issued(self) -> int:
        """Coupons the database has, by the template's counter."""
        return int(self.world.number("SELECT issued_quantity FROM coupon_template WHERE template_id = :id", **self._id))

    def fill(self, front: ClaimFront, users: list[str]) -> None:
        """Have the gate accept a claim of each user. Raises ``BenchFailure`` for any other answer."""
        requests = [ClaimRequest(self.template_id, user, f"order-form-{user}", "app") for user in users]
        for first in range(0, len(requests), CLAIMS_A_TRIP):
            decisions = front.claim_many(requests[first : first + CLAIMS_A_TRIP])
            outcomes = {decision.outcome for decision in decisions}
            if outcomes != {ClaimOutcome.ACCEPTED}:
                raise BenchFailure(f"the gate answered {outcomes} to claims it was to accept")

    def wait_issued(self, count: int, check: Callable[[], None]) -> float:
        """Wait until ``count`` coupons are committed; the seconds from the start of the first transaction to then, by
        the database's clock.

        ``check`` is called at each look. Raises ``BenchFailure`` when nothing moves for a minute.
        """
        last, moved_s = -1, time.monotonic()
        while (issued := self.issued) < count:
            check()
            if issued != last:
                last, moved_s = issued, time.monotonic()
            if time.monotonic() - moved_s > _PATIENCE_S:
                raise BenchFailure(f"{issued} of {count} claims are durable and nothing moves")
            time.sleep(_LOOK_EVERY_S)
        return self.world.number(
            "SELECT extract(epoch FROM clock_timestamp() - min(issued_at)) FROM coupon WHERE template_id = :id",
            **self._id,
        )

    def wait_acknowledged(self) -> None:
        """Wait until the gate has been told of all that is durable: the worker has nothing left to do."""
        wait_until_settled(self.world.services, frozenset({self.template_id}))

    def check_books(self, count: int) -> None:
        """Raise ``BenchFailure`` unless ``count`` coupons are there, each with its flow and its event."""
        expected = {"coupon": count, "coupon_flow": count, "outbox": count, "counter": count}
        found = {
            table: int(self.world.number(f"SELECT count(*) FROM {table}")) for table in expected if table != "counter"
        }
        found["counter"] = self.issued
        if found != expected:
            raise BenchFailure(f"{count} claims were to be durable, but there are {found}")

    @property
    def _id(self) -> dict[str, int]:
        return {"id": self.template_id}


def open_sale(world: World, **fields: Any) -> Sale:
    """Make a template with ``fields`` of its own and publish it, which preheats it."""
    now = utc_now()
    body = TemplateBody.model_validate(
        {
            "name": "Bench",
            "type": "amount_off",
            "currency": "CNY",
            "amount": 2_000,
            "threshold": 10_000,
            "total_quantity": STOCK,
            "per_user_limit": 1,
            "claim_start": rfc3339(now - timedelta(minutes=1)),
            "claim_end": rfc3339(now + timedelta(days=1)),
            "validity": {"mode": "relative", "days": 7},
            **fields,
        }
    )
    template_id = int(create_template(world.services, body).template_id)
    publish_template(world.services, template_id)
    return Sale(world, template_id)
