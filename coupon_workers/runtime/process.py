"""The services of one process, made from its settings, after it has forked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.database_clock import DatabaseClock
from coupon_workers.runtime.dramatiq_post import DramatiqPost
from coupon_workers.runtime.lean_redis import lean_threads
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.timed_post import TimedPost
from coupon_workers.runtime.worker_number import LeasedIds

if TYPE_CHECKING:
    from dramatiq import Broker


def make_services(settings: Settings, *, broker: Broker | None = None) -> Services:
    """Connections, identities and clock of this process. ``broker``: the one its actors belong to, if it has any.

    Raises ``StoreUnavailable`` when an address is missing; that a server does not answer shows at first use.
    """
    client = make_redis(settings)
    engine = make_engine(settings, for_front=broker is None)
    return Services(
        settings=settings,
        engine=engine,
        redis=client,
        post=DramatiqPost(broker) if broker else TimedPost(DramatiqPost(make_broker(settings, for_workers=False))),
        next_id=LeasedIds(client).next_id,
        clock=DatabaseClock(engine),
        lean=lean_threads(settings),
    )
