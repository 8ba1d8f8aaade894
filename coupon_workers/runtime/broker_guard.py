"""Middleware that keeps one bad message from hurting the others, and a failed one from getting lost."""

from __future__ import annotations

import time
from typing import Any

import dramatiq
import redis
from dramatiq.broker import MessageProxy
from dramatiq.middleware import AgeLimit, Middleware, Retries, SkipMessage
from redis.exceptions import RedisError

from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

MAX_DELIVERIES = 3
"""A message that was begun so often and never ended has killed its workers: it is set aside."""

_BEGUN_TTL_S = 86_400


class DeadLetteringRetries(Retries):
    """Retries that dead-letter a message whose retry cannot be enqueued; as shipped it is acknowledged and lost.

    So is one whose options make the retry itself fail.
    """

    def after_process_message(
        self,
        broker: dramatiq.Broker,
        message: MessageProxy,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """Retry a failed message with back-off, or mark it failed."""
        try:
            super().after_process_message(  # type: ignore[no-untyped-call]  # dramatiq has no types for it
                broker, message, result=result, exception=exception
            )
        except Exception as error:  # noqa: BLE001 - whatever it was, the message is not to be lost by it
            log.error("retry not enqueued, dead-lettered", message_id=message.message_id, error=str(error))
            message.fail()


class DropOld(AgeLimit):
    """An age limit that drops a message and says so in the log; as shipped it is dead-lettered, as if somebody had to
    look at it.

    The sender's clock dates a message, and the worker's reads its age: a warning at each drop, though the queue is
    short, means that they differ.
    """

    def before_process_message(self, broker: dramatiq.Broker, message: MessageProxy) -> None:
        """Skip a message older than its actor's ``max_age``, in milliseconds."""
        max_age = broker.get_actor(message.actor_name).options.get("max_age", self.max_age)
        age_ms = round(time.time() * 1000) - message.message_timestamp
        if max_age and age_ms >= max_age:
            log.warning("too old, dropped", message_id=message.message_id, actor=message.actor_name, age_ms=age_ms)
            raise SkipMessage("too old to matter")


class DeliveryCap(Middleware):
    """Counts how often a message was begun; what was begun ``MAX_DELIVERIES`` times and never ended is dead-lettered.

    The count lives beside the queues, one key a message for as long as it is at work.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def before_process_message(self, broker: dramatiq.Broker, message: MessageProxy) -> None:
        """Count the delivery; skip and fail the message when it is one too many."""
        key = _begun_key(message)
        try:
            pipeline = self._client.pipeline(transaction=False)
            pipeline.incr(key)
            pipeline.expire(key, _BEGUN_TTL_S)
            begun, _ = pipeline.execute()
        except RedisError:
            return  # the broker is away: the message comes again and is counted then
        if begun > MAX_DELIVERIES:
            log.error("begun too often, dead-lettered", message_id=message.message_id, actor=message.actor_name)
            message.fail()
            raise SkipMessage(f"begun {begun} times and never ended")

    def after_process_message(
        self,
        broker: dramatiq.Broker,
        message: MessageProxy,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """The worker outlived the message: forget the count."""
        try:
            self._client.delete(_begun_key(message))
        except RedisError:
            return

    after_skip_message = after_process_message


def _begun_key(message: MessageProxy) -> str:
    return f"cw:begun:{message.options.get('redis_message_id', message.message_id)}"
