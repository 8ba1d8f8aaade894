"""Everybody at once: stock and limits hold under any concurrency (DESIGN 3.1 and 3.4)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from tests.support.sale import Sale, assert_sound, open_sale

THREADS = 20


def at_once(jobs: list[Callable[[], Decision]]) -> list[Decision]:
    """Run jobs on twenty threads that start together."""
    start = threading.Barrier(THREADS)

    def run(share: list[Callable[[], Decision]]) -> list[Decision]:
        start.wait()
        return [job() for job in share]

    with ThreadPoolExecutor(THREADS) as threads:
        shares = list(threads.map(run, [jobs[at::THREADS] for at in range(THREADS)]))
    return [decision for share in shares for decision in share]


def outcomes(decisions: list[Decision]) -> dict[str, int]:
    """How often each outcome was answered."""
    return dict(Counter(decision.outcome.value for decision in decisions))


def claims(sale: Sale, users: int) -> list[Callable[[], Decision]]:
    """A claim of each of ``users`` users."""
    return [lambda user=f"u{number}": sale.claim(user) for number in range(users)]  # type: ignore[misc]


@pytest.mark.parametrize(("total", "users"), [(1, 40), (2, 40), (4, 40), (1_000, 1_500)])
def test_of_more_users_than_units_as_many_are_accepted_as_there_are_units(
    services: Services, total: int, users: int
) -> None:
    """The others hear SOLD_OUT; as many rows; stock zero."""
    sale = open_sale(services, total_quantity=total, per_user_limit=1)

    decisions = at_once(claims(sale, users))
    sale.drain()

    accepted = {decision.claim_id for decision in decisions if decision.outcome is ClaimOutcome.ACCEPTED}
    assert {"ACCEPTED": total, "SOLD_OUT": users - total} == outcomes(decisions)
    assert accepted == sale.coupons().keys()
    assert (0, 0, total) == (sale.stock, sale.queued, sale.books["issued_quantity"])
    assert_sound(services)


def test_settling_amid_the_rush_changes_nothing_of_it(services: Services) -> None:
    """Two drains run all the while, as two workers would."""
    sale = open_sale(services, total_quantity=300, per_user_limit=1)
    over = threading.Event()

    def keep_draining() -> None:
        while not over.is_set():
            sale.drain()

    with ThreadPoolExecutor(2) as workers:
        drains = [workers.submit(keep_draining) for _ in range(2)]
        decisions = at_once(claims(sale, 400))
        over.set()
        for drained in drains:
            drained.result()
    sale.drain()

    assert {"ACCEPTED": 300, "SOLD_OUT": 100} == outcomes(decisions)
    assert (300, {}) == (len(sale.coupons()), sale.rejections())
    assert_sound(services)


def test_a_user_who_claims_five_times_at_once_gets_his_limit(services: Services) -> None:
    """Stock ten, limit one, five request ids: one accepted, nine units remain."""
    sale = open_sale(services, total_quantity=10, per_user_limit=1)

    decisions = at_once([lambda n=n: sale.claim("ann", f"r{n}") for n in range(5)])  # type: ignore[misc]

    assert {"ACCEPTED": 1, "LIMIT_REACHED": 4} == outcomes(decisions)
    assert 9 == sale.stock


def test_a_user_who_claims_five_times_at_once_gets_his_daily_limit(services: Services) -> None:
    """Two a day."""
    sale = open_sale(services, total_quantity=10, per_user_daily_limit=2)

    decisions = at_once([lambda n=n: sale.claim("ann", f"r{n}") for n in range(5)])  # type: ignore[misc]
    sale.drain()

    assert {"ACCEPTED": 2, "DAILY_LIMIT_REACHED": 3} == outcomes(decisions)
    assert (8, 2) == (sale.stock, len(sale.coupons()))
    assert_sound(services)


def test_one_request_sent_twenty_times_at_once_is_one_claim(services: Services) -> None:
    """All answers name it, and only one calls it new."""
    sale = open_sale(services)

    decisions = at_once([lambda: sale.claim("ann", "r1")] * 20)

    assert {"ACCEPTED": 1, "REPLAYED": 19} == outcomes(decisions)
    assert 1 == len({decision.claim_id for decision in decisions})
    assert (9, 1) == (sale.stock, sale.queued)


def test_a_request_id_of_another_user_is_another_request(services: Services) -> None:
    """It takes a unit of its own, and the first user's claim stays his (CASES 9)."""
    sale = open_sale(services)

    ann, bob = sale.claim("ann", "form-1"), sale.claim("bob", "form-1")
    again = sale.claim("ann", "form-1")
    sale.drain()

    assert (ClaimOutcome.ACCEPTED, ClaimOutcome.ACCEPTED) == (ann.outcome, bob.outcome)
    assert (ClaimOutcome.REPLAYED, ann.claim_id) == (again.outcome, again.claim_id)
    assert {ann.claim_id: "ann", bob.claim_id: "bob"} == sale.coupons()


def test_a_request_id_of_another_template_is_another_request(services: Services) -> None:
    """Templates share nothing."""
    first, second = open_sale(services), open_sale(services, template_id=7_002)

    decisions = [first.claim("ann"), second.claim("ann")]

    assert {"ACCEPTED": 2} == outcomes(decisions)
    assert (9, 9) == (first.stock, second.stock)
