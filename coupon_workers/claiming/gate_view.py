"""What the gate holds of templates at this moment: stock and queue, for answers and sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import RedisError

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services


@dataclass(frozen=True, slots=True)
class GateStock:
    """``remaining`` units may still be taken, ``queued`` are taken and not yet settled. Both 0 when not warmed."""

    warmed: bool
    remaining: int
    queued: int


def stock_of(services: Services, template_ids: Sequence[int]) -> dict[int, GateStock]:
    """The gate's stock of each template, in one round trip. Raises ``StoreUnavailable``."""
    pipeline = services.redis.pipeline(transaction=False)
    for template_id in template_ids:
        keys = BucketKeys(template_id)
        pipeline.exists(keys.generation)
        pipeline.get(keys.stock)
        pipeline.xlen(keys.pending)
    try:
        replies = pipeline.execute()
    except RedisError as error:
        raise StoreUnavailable("Redis", str(error)) from error
    return {
        template_id: GateStock(bool(warm), max(0, int(stock or 0)), int(queued))
        for template_id, warm, stock, queued in zip(
            template_ids, replies[0::3], replies[1::3], replies[2::3], strict=True
        )
    }
