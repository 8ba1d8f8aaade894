"""How soon the next step of a shard comes: while claims come, steps of all batches keep to a common pace."""

from __future__ import annotations

from coupon_workers.runtime.pace import Lane, reserve
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task, issue_shard

CHUNK_BESIDE_CLAIMS = 1_000
"""Users in a transaction while claims come: half the time in which the step has a core."""


def paced_step(services: Services, batch_id: int, shard: int, cursor: int, left: int) -> Task:
    """The message for the next step of a shard with ``left`` users; it waits in the broker, and holds no worker up."""
    return issue_shard(batch_id, shard, cursor, reserve(services, Lane.CAMPAIGN, min(left, CHUNK_BESIDE_CLAIMS)))
