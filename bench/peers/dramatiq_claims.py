"""One Dramatiq message a claim.

    python -m dramatiq bench.peers.dramatiq_claims --processes P --threads T

Dramatiq as it is shipped: its own Redis broker and middleware, nothing of our guards, which cost a little.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.claim_message import ClaimMessage, settle_one

QUEUE = "bench_claims"


def make_broker(url: str) -> dramatiq.Broker:
    """The shipped broker on ``url``."""
    return RedisBroker(url=url)


dramatiq.set_broker(make_broker(os.environ.get("COUPON_BROKER_URL", "redis://127.0.0.1")))


@dramatiq.actor(queue_name=QUEUE)
def settle_claim(claim: ClaimMessage) -> None:
    """Message → transaction → acknowledgement."""
    settle_one(claim)


def send_all(url: str, claims: Iterable[ClaimMessage]) -> None:
    """Enqueue a message for each claim on the broker at ``url``."""
    broker = make_broker(url)
    for claim in claims:
        broker.enqueue(settle_claim.message(claim))
