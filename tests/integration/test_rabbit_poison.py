"""Messages from RabbitMQ that would end the thread which takes them up: set aside, as from Redis (FAULTS 13).

The server is played, with pika's own types: what it would be told is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dramatiq.brokers.rabbitmq import _RabbitmqConsumer
from pika.spec import Basic, BasicProperties
from pydantic import SecretStr

from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.settings import Settings

QUEUE = "settle"
TAG = 7


class Server:
    """Channel and connection of a consumer: what they are told is carried out at once and kept."""

    def __init__(self) -> None:
        self.rejected: list[tuple[int, bool]] = []
        self.acknowledged: list[int] = []

    def add_callback_threadsafe(self, callback: Callable[[], object]) -> None:
        """As pika does, but now."""
        callback()

    def basic_nack(self, tag: int, *, requeue: bool) -> None:
        """Without ``requeue`` RabbitMQ moves it to the dead letters."""
        self.rejected.append((tag, requeue))

    def basic_ack(self, tag: int) -> None:
        """Done."""
        self.acknowledged.append(tag)


def deliver(settings: Settings, content: bytes, queue_name: str = QUEUE) -> tuple[Any, Server]:
    """What a consumer of a worker hands on of a delivery, and what the server is told of it."""
    rabbit = settings.model_copy(update={"broker_url": SecretStr("amqp://guest:guest@127.0.0.1:5672")})
    kind = make_broker(rabbit, for_workers=True).consumer_class  # type: ignore[attr-defined]  # of RabbitMQ's broker
    consumer: _RabbitmqConsumer = kind.__new__(kind)
    server = Server()
    vars(consumer).update(
        queue_name=queue_name,
        connection=server,
        channel=server,
        known_tags=set(),
        iterator=iter([(Basic.Deliver(delivery_tag=TAG, redelivered=False), BasicProperties(), content)]),
    )
    return next(consumer), server


def message(**changed: Any) -> bytes:
    """A message as a front sends it, with ``changed`` fields."""
    fields = {"queue_name": QUEUE, "actor_name": "settle_claims", "args": [1, 0], "kwargs": {}, "options": {}}
    return json.dumps(fields | {"message_id": "m", "message_timestamp": 1_800_000_000_000} | changed).encode()


@pytest.mark.parametrize(
    "changed",
    [
        {"queue_name": "elsewhere"},
        {"queue_name": 7},
        {"options": None},
        {"options": {"throws": "abc"}},
        {"kwargs": [1]},
        {"actor_name": 7},
        {"message_timestamp": "soon"},
    ],
)
def test_a_message_no_thread_would_survive_is_set_aside(settings: Settings, changed: dict[str, Any]) -> None:
    """Nobody is given it; RabbitMQ keeps it among the dead letters."""
    handed_on, server = deliver(settings, message(**changed))

    assert handed_on is None
    assert [(TAG, False)] == server.rejected


@pytest.mark.parametrize("queue_name", [QUEUE, f"{QUEUE}.DQ"])
def test_a_message_of_ours_is_handed_on(settings: Settings, queue_name: str) -> None:
    """Also one that waits for its time; it is acknowledged as ever."""
    handed_on, server = deliver(settings, message(queue_name=queue_name, options={"eta": 1}), queue_name)

    assert [1, 0] == list(handed_on.args)
    assert ([], []) == (server.rejected, server.acknowledged)
