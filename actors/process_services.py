"""The services of a worker process, made at the first message, after the fork."""

from __future__ import annotations

from functools import lru_cache

import dramatiq

from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.task import Queue


@lru_cache(maxsize=1)
def _queues() -> BrokerQueues:
    return BrokerQueues(settings())


def waiting_bells() -> int:
    """Messages that wait in the queue of settling. Raises ``StoreUnavailable``."""
    return sum(queue.depth for queue in _queues().depths() if queue.name == Queue.SETTLE)


@lru_cache(maxsize=1)
def services() -> Services:
    """One set for all threads of this process."""
    return make_services(settings(), broker=dramatiq.get_broker())
