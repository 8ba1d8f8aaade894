"""A host that has no thread left for a moment costs that moment: whoever wanted one asks again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime

import pytest
import redis
from sqlalchemy import Engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.database_clock import DatabaseClock
from coupon_workers.runtime.health import HealthCheck
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task, settle_claims
from coupon_workers.runtime.timed_post import SENDERS, TimedPost
from coupon_workers.runtime.worker_number import LeasedIds

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)

Exhausted = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def exhausted(monkeypatch: pytest.MonkeyPatch) -> Exhausted:
    """No thread can be started meanwhile, as where a container's limit is met."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    @contextmanager
    def without_threads() -> Iterator[None]:
        with monkeypatch.context() as host:
            host.setattr(threading.Thread, "start", refuse)
            yield

    return without_threads


def test_a_probe_that_got_no_thread_is_made_again(services: Services, exhausted: Exhausted) -> None:
    """A balancer must not keep a front away that is well again."""
    check = HealthCheck(services, BrokerQueues(services.settings))
    with exhausted(), suppress(RuntimeError):
        check.check()

    health = check.check()

    assert "ok" == health.status
    assert "ok" == health.parts["redis"].state


def test_the_clock_goes_on_and_asks_again(engine: Engine, exhausted: Exhausted) -> None:
    """By the machine's clock for so long; it raises nothing."""
    clock = DatabaseClock(engine, fallback=lambda: LONG_AGO)
    with exhausted():
        assert LONG_AGO == clock()

    assert LONG_AGO < clock()


def test_a_post_that_got_no_thread_has_all_its_senders_afterwards(exhausted: Exhausted) -> None:
    """Whoever sends meanwhile is told that the broker cannot be reached."""
    sent: list[Task] = []

    class Broker:
        """Takes everything."""

        def send(self, task: Task) -> None:
            """Keep it."""
            sent.append(task)

    post = TimedPost(Broker())
    for number in range(SENDERS):
        with exhausted(), pytest.raises(StoreUnavailable, match="no thread"):
            post.send(settle_claims(number, 0))

    post.send(settle_claims(99, 0))

    assert [settle_claims(99, 0)] == sent


def test_a_process_that_got_no_thread_leases_its_number_later(redis_client: redis.Redis, exhausted: Exhausted) -> None:
    """And is closed as any other."""
    ids = LeasedIds(redis_client)
    with exhausted(), pytest.raises(RuntimeError):
        ids.next_id()

    assert 0 < ids.next_id()
    ids.close()
