"""Dramatiq's broker, made from the settings, as DESIGN 6 says it must be run."""

from __future__ import annotations

from typing import Any

import dramatiq
import redis
from dramatiq.broker import MessageProxy
from dramatiq.brokers.rabbitmq import RabbitmqBroker, _RabbitmqConsumer
from dramatiq.middleware import Middleware, ShutdownNotifications, TimeLimit

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.broker_guard import MAX_DELIVERIES, DeadLetteringRetries, DeliveryCap, DropOld
from coupon_workers.runtime.message_meter import MessageMeter
from coupon_workers.runtime.poison_proof_broker import PoisonProofRedisBroker, is_well_formed
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.structured_log import get_logger

_log = get_logger(__name__)

HEARTBEAT_MS = 15_000
"""A worker not heard of for this long is dead: its messages go back to their queues."""

ALWAYS = 1_000_000
"""Of a million: every fetch looks for dead workers. By chance (as shipped) an idle queue would wait many minutes."""

PUBLISH_TIMEOUT_MS = 1_000
"""A front does not hold a customer's answer up for a doorbell."""

RABBIT_HEARTBEAT_S = 15
"""A RabbitMQ not heard of for this long, and pika's five seconds more, is lost."""

WORKER_TIMEOUT_MS = 5_000
TIME_LIMIT_MS = 600_000


def make_broker(settings: Settings, *, for_workers: bool) -> dramatiq.Broker:
    """The broker of ``settings.broker_url``; a front's gives up sooner than a worker's.

    Raises ``StoreUnavailable`` when no URL is set.
    """
    if settings.broker_url is None:
        raise StoreUnavailable("broker", "COUPON_BROKER_URL is not set and no embedded server runs")
    url = settings.broker_url.get_secret_value()
    timeout_ms = WORKER_TIMEOUT_MS if for_workers else PUBLISH_TIMEOUT_MS
    if url.startswith("amqp"):
        # Confirms are off as shipped, and a kill then loses every message that was still on its way.
        rabbit = QuorumBroker(url=url, confirm_delivery=True, middleware=_middleware(None, settings))
        rabbit.limit_waiting(timeout_ms)
        return rabbit
    client = client_without_retries(url, timeout_ms)
    return PoisonProofRedisBroker(
        client=client,
        middleware=_middleware(client, settings),
        heartbeat_timeout=HEARTBEAT_MS,
        maintenance_chance=ALWAYS,
    )


def _middleware(client: redis.Redis | None, settings: Settings) -> list[Middleware]:
    guards: list[Middleware] = [
        DropOld(),
        TimeLimit(time_limit=TIME_LIMIT_MS),
        # Only actors that ask for it: a drain ends its turn by itself, and an interruption would dead-letter it.
        ShutdownNotifications(),
        DeadLetteringRetries(max_retries=3, min_backoff=500, max_backoff=5_000),
    ]
    if client is not None:
        guards.append(DeliveryCap(client))
    # The last: what a guard drops was not begun, and is not counted.
    return [*guards, MessageMeter(settings)]


class QuorumBroker(RabbitmqBroker):
    """RabbitMQ with quorum queues: replicated, and with a cap on deliveries of their own."""

    def limit_waiting(self, timeout_ms: int) -> None:
        """Wait for a connection, and for one that the server holds up, no longer than this.

        For a confirmation pika waits as long as the server is heard of: see ``runtime/timed_post.py``.
        """
        for server in self.parameters if isinstance(self.parameters, list) else [self.parameters]:
            server.socket_timeout = server.stack_timeout = server.blocked_connection_timeout = timeout_ms / 1000
            server.connection_attempts = 1
            server.heartbeat = RABBIT_HEARTBEAT_S

    @property
    def consumer_class(self) -> type[_RabbitmqConsumer]:
        """The consumer that sets poison aside."""
        return _PoisonProofConsumer

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        arguments: dict[str, Any] = super()._build_queue_arguments(  # type: ignore[no-untyped-call]  # likewise
            queue_name
        )
        return arguments | {"x-queue-type": "quorum", "x-delivery-limit": MAX_DELIVERIES}


class _PoisonProofConsumer(_RabbitmqConsumer):
    """Gives no thread a message that it would die of; what cannot be decoded is set aside as shipped."""

    def __next__(self) -> MessageProxy | None:
        message: MessageProxy | None = super().__next__()  # type: ignore[no-untyped-call]  # dramatiq has no types for it
        if message is None or is_well_formed(message, self.queue_name):
            return message
        _log.error("unreadable message dead-lettered", queue=self.queue_name)
        self.nack(message)  # type: ignore[no-untyped-call]  # likewise
        return None
