"""What the coupons of a batch may cost at worst: what a second person is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from coupon_workers.approval.budget import worst_cost_of
from coupon_workers.campaigns.batch import read_batch
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_store import read_template


@dataclass(frozen=True, slots=True)
class BatchCost:
    """``users`` are known once it is staged. ``cost`` in minor units of ``currency``; None: without a bound."""

    users: int
    cost: int | None
    currency: str


def read_cost(services: Services, batch_id: int) -> BatchCost:
    """The cost if every user of the audience gets one and uses it to the full.

    Raises ``NotFound`` ``BATCH_NOT_FOUND``, ``StoreUnavailable``.
    """
    with transaction(services.engine) as connection:
        batch = read_batch(connection, batch_id)
        template = read_template(connection, batch["template_id"])
    users = batch["audience_count"]
    return BatchCost(users, worst_cost_of(template, users), template["currency"])
