"""Claims answered, by template, second and outcome, for whoever watches a campaign: kept in Redis for ten minutes.

Each process of a front tells once a second what its hot path has left behind (``runtime/metrics.py``), so that all
fronts on all hosts add up. What is lost with a process or with Redis is a second of a picture, and nothing else.
"""

from __future__ import annotations

import time
from collections import Counter
from threading import Thread

from redis.exceptions import RedisError

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.metrics import FLUSH_S, take_claims
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)

KEPT_S = 600

SLICE_S = 60
"""Seconds in a key: few keys to read, and each goes as a whole."""

MOST_FIELDS = 2_000
"""Pairs of a template and an outcome told by a process in a second: what asks for made-up templates fills no Redis."""


def live_key(template_id: int, second: int) -> str:
    """Hash ``<second of the epoch>:<outcome>`` → claims, of the slice in which ``second`` lies."""
    return f"cw:{{live{template_id}}}:{second - second % SLICE_S}"


def tell_live(services: Services) -> None:
    """Add what this process has answered since it was last asked. Raises nothing: a picture may lack a second."""
    claims: Counter[tuple[int, str]] = take_claims()
    if not claims:
        return
    second = to_ms(services.clock()) // 1000
    pipeline = services.redis.pipeline(transaction=False)
    for (template_id, outcome), number in claims.most_common(MOST_FIELDS):
        if outcome != ClaimOutcome.TEMPLATE_NOT_FOUND:
            key = live_key(template_id, second)
            pipeline.hincrby(key, f"{second}:{ClaimOutcome(outcome).value}", number)
            pipeline.expire(key, KEPT_S + SLICE_S)
    try:
        pipeline.execute()
    except RedisError as error:
        log.debug("a second of the live view is lost", error=str(error))


def tell_live_for_ever(services: Services) -> None:
    """Tell once a second, in a thread that ends with the process. Start it after a fork."""

    def run() -> None:
        while True:
            time.sleep(FLUSH_S)
            tell_live(services)

    Thread(target=run, name="live-tally", daemon=True).start()
