"""The services of a worker process, made at the first message, after the fork."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

import dramatiq

from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import settings
from coupon_workers.runtime.task import Queue

# A cache alone would let threads that begin at once make a set each.
_making = Lock()


@lru_cache(maxsize=1)
def _made_queues() -> BrokerQueues:
    return BrokerQueues(settings())


@lru_cache(maxsize=1)
def _made_services() -> Services:
    return make_services(settings(), broker=dramatiq.get_broker())


def waiting_bells() -> int:
    """Messages that wait in the queue of settling. Raises ``StoreUnavailable``."""
    with _making:
        queues = _made_queues()
    return sum(queue.depth for queue in queues.depths() if queue.name == Queue.SETTLE)


def services() -> Services:
    """One set for all threads of this process."""
    with _making:
        return _made_services()
