"""Send what is due to one target."""

from __future__ import annotations

import dramatiq

from actors.process_services import services
from coupon_workers.errors import StoreUnavailable
from coupon_workers.notify.delivery import deliver
from coupon_workers.notify.turn import Turns
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.structured_log import get_logger
from coupon_workers.runtime.task import Queue

log = get_logger(__name__)

MAX_AGE_MS = 900_000
"""The relay wakes whatever is still due. Not shorter: the age is read off two hosts' clocks."""

AFTER_OTHERS = 10
"""Dramatiq's priority, 0 being the first: settling and the relay come before."""

TURNS = Turns(max(1, settings().worker_threads // 2))
"""Half of the threads may wait for endpoints; the others go on settling."""


@dramatiq.actor(queue_name=Queue.NOTIFY.value, max_retries=0, max_age=MAX_AGE_MS, priority=AFTER_OTHERS)
def deliver_messages(target: str) -> None:
    """One turn of the target, if this process has a place for it. Not retried: what is due is woken again."""
    with TURNS.take(target) as mine:
        if not mine:
            return
        try:
            deliver(services(), target)
        except StoreUnavailable as error:
            log.warning("delivery given up", target=target, error=str(error))
