"""A Redis broker whose consumers set an unreadable message aside, and give back what a lost connection left undone.

As shipped, a message that cannot be decoded ends the consumer, and everything fetched with it stays claimed by a
worker that goes on living. So do, when the broker goes away for a moment, retries that wait for their time (they are
forgotten), and messages whose fetch was carried out and never answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dramatiq.broker import MessageProxy
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.errors import ConnectionClosed
from dramatiq.message import Message
from redis.exceptions import RedisError

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lua_script import lua_script
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)


class PoisonProofRedisBroker(RedisBroker):
    """``RedisBroker`` whose consumers survive any bytes in a queue and any loss of the connection."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]  # dramatiq has no types for it
        self.in_hand: defaultdict[str, set[str]] = defaultdict(set)
        """Queue → Redis ids of the messages that were handed out here and not yet acknowledged or rejected."""

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

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Enqueue ``message``. Raises ``ConnectionClosed``: a consumer dies of any other error when a retry is due."""
        with _lost_connection():
            return super().enqueue(message, delay=delay)

    def give_back_forgotten(self, queue_name: str) -> None:
        """Back to its queue with everything that this worker has fetched and nobody here works on."""
        acks = f"{self.namespace}:__acks__.{self.broker_id}.{queue_name}"
        fetched: Any = self.client.smembers(acks)
        forgotten = {message_id.decode() for message_id in fetched} - self.in_hand[queue_name].copy()
        if forgotten:
            log.warning("forgotten messages given back", queue=queue_name, count=len(forgotten))
            self.do_requeue(queue_name, *forgotten)

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
    """Made anew after each loss of the connection; the first thing it does is to give back what the last one forgot.

    A time-out is a lost connection too: as shipped it is an unexpected error with a stack trace, and an acknowledgement
    that met it is never sent again.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]  # dramatiq has no types for it
        self._is_new = True

    def __next__(self) -> Any:
        with _lost_connection():
            if self._is_new:
                self.broker.give_back_forgotten(self.queue_name)
                self._is_new = False
            message = super().__next__()  # type: ignore[no-untyped-call]  # likewise
        # A consumer of delayed messages forgets them all when its connection is lost: none is ever in hand.
        if message is not None and not self.queue_name.endswith(".DQ"):
            self._in_hand.add(message.options["redis_message_id"])
        return message

    def ack(self, message: MessageProxy) -> None:
        with _lost_connection():
            super().ack(message)  # type: ignore[no-untyped-call]  # likewise
        self._in_hand.discard(message.options["redis_message_id"])

    def nack(self, message: MessageProxy) -> None:
        with _lost_connection():
            super().nack(message)  # type: ignore[no-untyped-call]  # likewise
        self._in_hand.discard(message.options["redis_message_id"])

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        with _lost_connection():
            super().requeue(messages)  # type: ignore[no-untyped-call]  # likewise

    @property
    def _in_hand(self) -> set[str]:
        in_hand: set[str] = self.broker.in_hand[self.queue_name]
        return in_hand


@contextmanager
def _lost_connection() -> Iterator[None]:
    """Turn whatever a Redis that is away raises into the one error that dramatiq takes for a lost connection."""
    try:
        yield
    except (StoreUnavailable, RedisError) as error:
        raise ConnectionClosed(error) from None


def _is_readable(data: bytes, queue_name: str) -> bool:
    try:
        message = Message.decode(data)
    except Exception:  # noqa: BLE001 - whatever is wrong with foreign bytes, they are not a message of ours
        return False
    return is_well_formed(message, queue_name) and isinstance(message.options.get("redis_message_id"), str)


def is_well_formed(message: Message[Any] | MessageProxy, queue_name: str) -> bool:
    """Whether a message fetched from ``queue_name`` is one that no thread of a worker dies of."""
    return (
        # A worker thread looks for the consumer by this name, and dies when there is none.
        message.queue_name == queue_name
        and isinstance(message.actor_name, str)
        and isinstance(message.message_id, str)
        and isinstance(message.args, list | tuple)
        and isinstance(message.kwargs, dict)
        and isinstance(message.options, dict)
        and _is_instant(message.message_timestamp)
        and _is_instant(message.options.get("requeue_timestamp", 0))
        # Exception classes, which no message can carry: a text in their place kills the thread too.
        and "throws" not in message.options
    )


def _is_instant(value: object) -> bool:
    # Of another one the wait would be so long that Redis could not add it up, and no wait could be told any more.
    return type(value) is int and 0 <= value < 2**53
