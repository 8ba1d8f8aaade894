"""One Celery task a claim.

    python -m celery -A bench.peers.celery_claims worker --pool prefork --concurrency N

Celery in its usual form, a pool of processes, and without what this work does not need: results, events, gossip. A task
is acknowledged when it is done, as Dramatiq does it: acknowledged at its start, a claim would be lost with its worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from celery import Celery  # type: ignore[import-untyped]  # it ships no types

from bench.peers.claim_message import ClaimMessage, settle_one

TASK = "bench.settle_claim"


def celery_url(url: str) -> str:
    """A ``unix://PATH?db=N`` of redis-py as Celery spells it; other addresses are the same for both."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={database}"


def make_app(url: str) -> Celery:
    """A Celery application on the broker at ``url``."""
    made = Celery("bench", broker=celery_url(url))
    made.conf.update(task_ignore_result=True, task_acks_late=True, broker_connection_retry_on_startup=True)
    return made


app = make_app(os.environ.get("COUPON_BROKER_URL", "redis://127.0.0.1"))


@app.task(name=TASK)  # type: ignore[untyped-decorator]  # likewise
def settle_claim(claim: ClaimMessage) -> None:
    """Task → transaction → acknowledgement."""
    settle_one(claim)


def send_all(url: str, claims: Iterable[ClaimMessage]) -> None:
    """Enqueue a task for each claim on the broker at ``url``, over one connection."""
    sender = make_app(url)
    with sender.connection_for_write() as connection, sender.amqp.Producer(connection) as producer:
        for claim in claims:
            sender.send_task(TASK, args=[claim], producer=producer)
