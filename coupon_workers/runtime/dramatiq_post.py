"""The post: tasks go to the workers as Dramatiq messages, by name."""

from __future__ import annotations

from dramatiq import Broker
from dramatiq.errors import BrokerConnectionError
from dramatiq.message import Message
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.task import Task


class DramatiqPost:
    """Sends tasks over a broker; its connections are made at first use, so make the broker after a fork."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def send(self, task: Task) -> None:
        """Enqueue ``task``. Raises ``StoreUnavailable`` when the broker did not take it."""
        message: Message[object] = Message(
            queue_name=task.queue.value, actor_name=task.name, args=task.args, kwargs={}, options={}
        )
        try:
            self._broker.enqueue(message, delay=task.delay_ms or None)
        except (BrokerConnectionError, RedisError, OSError) as error:
            raise StoreUnavailable("broker", str(error)) from error
