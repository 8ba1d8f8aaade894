"""Rebuild a lottery's keys in Redis."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import NotFound
from coupon_workers.lottery.lottery_preheat import preheat_lottery as preheat
from coupon_workers.runtime.task import Queue


@dramatiq.actor(queue_name=Queue.CARE.value, max_retries=1, notify_shutdown=True, throws=(NotFound,))
def preheat_lottery(lottery_id: int) -> None:
    """Preheat; while another one is at work it is left to that."""
    preheat(services(), lottery_id, wait=False)
