"""Claims and drains of a sale from several threads, while something else is done to it again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from coupon_workers.claiming.outcome import ClaimOutcome
from tests.support.sale import Sale, assert_sound

CLAIMERS = 3
EACH = 120


def amid_traffic(sale: Sale, disturb: Callable[[], object]) -> list[tuple[int, ClaimOutcome]]:
    """Claim with three threads and settle with two, while ``disturb`` is done again and again; every answer."""
    over = threading.Event()

    def again_and_again(work: Callable[[], object]) -> int:
        times = 0
        while not over.is_set():
            work()
            times += 1
        return times

    def claim_all(number: int) -> list[tuple[int, ClaimOutcome]]:
        answers = [sale.claim(f"u{number}-{at % 40}", f"r{at}") for at in range(EACH)]
        return [(answer.claim_id, answer.outcome) for answer in answers]

    with ThreadPoolExecutor(CLAIMERS + 3) as threads:
        background = [threads.submit(again_and_again, work) for work in (sale.drain, sale.drain, disturb)]
        try:
            answers = [answer for part in threads.map(claim_all, range(CLAIMERS)) for answer in part]
        finally:
            over.set()
        disturbed = background[-1].result()
        for job in background[:-1]:
            job.result()
    assert disturbed > 0
    sale.drain()
    return answers


def assert_every_accepted_claim_ended(sale: Sale, answers: list[tuple[int, ClaimOutcome]]) -> None:
    """Issued or rejected, and none beside them."""
    accepted = {claim_id for claim_id, outcome in answers if outcome is ClaimOutcome.ACCEPTED}
    assert accepted == sale.coupons().keys() | sale.rejections().keys()
    assert (0, 0) == (sale.queued, sale.services.redis.hlen(sale.keys.claims))
    assert_sound(sale.services)
