"""Messages that were given up, written by Dramatiq's own broker."""

from __future__ import annotations

from dramatiq import Message

from coupon_workers.runtime.broker import make_broker
from coupon_workers.runtime.task import Queue
from tests.support.http_shop import Shop

FAILED = {"retries": 4, "traceback": "Traceback …\n  File x\npsycopg2.errors.Boom: user u-1 exists\n"}


def bury(shop: Shop, *args: int, queue: Queue = Queue.SETTLE) -> str:
    """Send ``settle_claims`` and give it up, as a worker does that has tried it for the last time; the id that
    the broker gave it."""
    broker = make_broker(shop.services.settings, for_workers=True)
    broker.declare_queue(queue.value)
    sent = Message(
        queue_name=queue.value,
        actor_name="settle_claims",
        args=args or (653247040368672768, 0),
        kwargs={},
        options=dict(FAILED),
    )
    broker.enqueue(sent)
    consumer = broker.consume(queue.value, prefetch=100, timeout=100)
    message_id = ""
    while (message := next(consumer)) is not None:
        message_id = str(message.options["redis_message_id"])
        consumer.nack(message)
    consumer.close()
    broker.close()
    return message_id
