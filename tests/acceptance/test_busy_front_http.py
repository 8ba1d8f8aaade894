"""A front that has much to wait for: whoever waits holds nobody else up, and nothing of it is a 500."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coupon_workers.errors import ClockWentBack, CouponWorkersError, WorkerNumbersExhausted
from coupon_workers.runtime.services import Services
from tests.support.http_shop import Shop
from web.context import MOST_WAITS, web_of


def test_too_many_waits_are_answered_at_once(services: Services) -> None:
    """With the present status; those who wait already get the last word."""
    shop = Shop(services, claim_rate=0)
    template_id = shop.desk.open()
    claim_id = shop.front.claimed(template_id, "ann")
    waits = web_of(shop.app).waits

    with ThreadPoolExecutor(MOST_WAITS) as threads:
        waiting = [threads.submit(shop.caller("storefront").read_claim, claim_id, 10) for _ in range(MOST_WAITS)]
        while waits.acquire(blocking=False):
            waits.release()
            time.sleep(0.01)
        started_s = time.monotonic()
        present = shop.front.read_claim(claim_id, 10).ok()["status"]
        took_s = time.monotonic() - started_s
        shop.settle(template_id)
        last = {future.result().ok()["status"] for future in waiting}

    assert ("queued", {"issued"}) == (present, last)
    assert took_s < 5


@pytest.mark.parametrize("error", [ClockWentBack(), WorkerNumbersExhausted()])
def test_without_an_identity_a_claim_is_to_be_asked_again(services: Services, error: CouponWorkersError) -> None:
    """503 with Retry-After: another number is leased in a moment."""
    shop = Shop(services, claim_rate=0)
    template_id = shop.desk.open()

    def refuse(route: int) -> int:
        raise error

    without = Shop(replace(services, next_id=refuse), claim_rate=0)

    without.front.claim(template_id, "ann").problem(503, "NO_IDENTITY")
