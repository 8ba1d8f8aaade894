"""Dramatiq at work in this process, on the real broker: a worker with actors of the test, and a look at its queues."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dramatiq
import redis
from dramatiq import Broker, Worker
from dramatiq.brokers.redis import RedisBroker

from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Queue

SETTLE = Queue.SETTLE.value
LONG_S = 20.0
"""What is waited for comes in a fraction of this."""


def eventually(holds: Callable[[], object], timeout_s: float = LONG_S) -> bool:
    """Whether ``holds`` becomes true in time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Workshop:
    """A broker for workers, and the raw client of its server. What actors were given lies in ``done``."""

    def __init__(self, settings: Settings) -> None:
        assert settings.broker_url is not None
        broker = make_broker(settings, for_workers=True)
        assert isinstance(broker, RedisBroker)
        self.broker = broker
        self.client: redis.Redis = client_without_retries(settings.broker_url.get_secret_value(), 5_000)
        self.done: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def actor(
        self, name: str, work: Callable[..., object] | None = None, queue_name: str = SETTLE, **options: Any
    ) -> dramatiq.Actor[..., Any]:
        """Declare an actor that does ``work`` and then notes its arguments."""

        def run(*args: Any) -> None:
            if work is not None:
                work(*args)
            self.done.put((name, *args))

        declare = dramatiq.actor(actor_name=name, queue_name=queue_name, broker=self.broker, **options)
        return declare(run)

    @contextmanager
    def working(self, threads: int = 2) -> Iterator[Worker]:
        """A worker runs meanwhile."""
        worker = Worker(self.broker, worker_timeout=50, worker_threads=threads)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop(timeout=5_000)

    def next_done(self) -> tuple[Any, ...]:
        """What an actor has done next. Raises ``queue.Empty`` when none does anything for long."""
        return self.done.get(timeout=LONG_S)

    def push(self, message_id: str, content: bytes, queue_name: str = SETTLE) -> None:
        """Put bytes into a queue, as whoever reaches the server can."""
        self.client.hset(f"dramatiq:{queue_name}.msgs", message_id, content)
        self.client.rpush(f"dramatiq:{queue_name}", message_id)

    def dead(self, queue_name: str = SETTLE) -> dict[str, bytes]:
        """The dead letters: id → content."""
        with self.client.pipeline(transaction=True) as pipeline:
            pipeline.hgetall(f"dramatiq:{queue_name}.XQ.msgs")
            pipeline.zrange(f"dramatiq:{queue_name}.XQ", 0, -1)
            letters, ids = pipeline.execute()
        assert set(ids) == set(letters)
        return {message_id.decode(): content for message_id, content in letters.items()}

    def left(self, queue_name: str = SETTLE) -> int:
        """Messages that wait, are delayed or at work."""
        with self.client.pipeline(transaction=True) as pipeline:
            pipeline.hlen(f"dramatiq:{queue_name}.msgs")
            pipeline.hlen(f"dramatiq:{queue_name}.DQ.msgs")
            return sum(pipeline.execute())


def abandon_next(broker: Broker, queue_name: str = SETTLE) -> Any:
    """Fetch a message, begin it and die: nothing is heard of this broker any more."""
    consumer = broker.consume(queue_name, prefetch=1, timeout=20)
    messages: list[Any] = []

    def fetch() -> bool:
        messages.append(next(consumer))
        return messages[-1] is not None

    assert eventually(fetch)
    broker.emit_before("process_message", messages[-1])
    return messages[-1]
