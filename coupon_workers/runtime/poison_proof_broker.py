"""A Redis broker whose consumers set an unreadable message aside and go on.

As shipped, a message that cannot be decoded ends the consumer, and everything fetched with it stays claimed by a
worker that goes on living.
"""

from __future__ import annotations

from typing import Any

from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.errors import ConnectionClosed
from dramatiq.message import Message
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)


class PoisonProofRedisBroker(RedisBroker):
    """``RedisBroker`` whose consumers survive any bytes in a queue."""

    @property
    def consumer_class(self) -> type[_RedisConsumer]:
        """The consumer that sets poison aside."""
        return _PoisonProofConsumer

    def do_fetch(self, queue_name: str, count: int) -> list[bytes]:
        """Fetch up to ``count`` messages; those that cannot be read go to the dead letters instead."""
        fetched: list[bytes | None] = self._dispatch("fetch")(  # type: ignore[no-untyped-call]  # dramatiq has no types for it
            queue_name, count
        )
        readable = []
        for data in fetched:
            if data is not None and _is_readable(data, queue_name):
                readable.append(data)
            elif data is not None:
                self._set_aside(queue_name, data)
        return readable

    def _set_aside(self, queue_name: str, data: bytes) -> None:
        log.error("unreadable message dead-lettered", queue=queue_name, bytes=len(data))
        queue = f"{self.namespace}:{queue_name}"
        dead = f"{self.namespace}:{queue_name.removesuffix('.DQ')}.XQ"
        lua_script("set_message_aside")(
            self.client,
            [f"{self.namespace}:__acks__.{self.broker_id}.{queue_name}", f"{queue}.msgs", dead, f"{dead}.msgs"],
            [data],
        )


class _PoisonProofConsumer(_RedisConsumer):
    def __next__(self) -> Any:
        try:
            return super().__next__()  # type: ignore[no-untyped-call]  # dramatiq has no types for it
        except (StoreUnavailable, RedisError) as error:
            # A time-out is a lost connection too: as shipped it is an unexpected error with a stack trace.
            raise ConnectionClosed(error) from None


def _is_readable(data: bytes, queue_name: str) -> bool:
    try:
        message = Message.decode(data)
    except Exception:  # noqa: BLE001 - whatever is wrong with foreign bytes, they are not a message of ours
        return False
    return (
        # A worker thread looks for the consumer by this name, and dies when there is none.
        message.queue_name == queue_name
        and isinstance(message.actor_name, str)
        and isinstance(message.message_id, str)
        and isinstance(message.args, list | tuple)
        and isinstance(message.kwargs, dict)
        and isinstance(message.options, dict)
        and isinstance(message.options.get("redis_message_id"), str)
        # Exception classes, which no message can carry: a text in their place kills the thread too.
        and "throws" not in message.options
    )
