"""The checker under traffic and between the stores: what is only on its way is no breach, and what is lost is one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from coupon_workers.checking.report import Report, check_all
from coupon_workers.checking.told_claim import ToldClaim, told_claims_ended
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate import ClaimGate
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.load.settled import NotSettled, queued_claims_left, wait_until_settled
from coupon_workers.runtime.services import Services

HOT, QUIET = 7_101, 7_102
INSERT_TEMPLATES = text("""
    INSERT INTO coupon_template (template_id, template_no, name, type, currency, amount_minor, threshold_minor,
        total_quantity, per_user_limit, claim_start, claim_end, validity, timezone, scope, stacking, refund,
        transferable, restock_on_revoke, notify, channels_claim, status)
    SELECT template_id, 'TPL-' || template_id, 'busy', 'cash', 'CNY', 2000, 0, 1000000, 3,
        now() - interval '1 hour', now() + interval '1 day',
        '{"mode": "relative", "days": 7, "start_after_days": 0, "until_end_of_day": false}', 'Asia/Shanghai', '{}',
        '{}', '{}', false, false, true, '[]', 'active'
      FROM unnest(ARRAY[7101, 7102]) AS t(template_id)
""")


@pytest.fixture
def gate(services: Services) -> ClaimGate:
    """The gate of two warm templates of a million units, three a user."""
    with services.engine.begin() as connection:
        connection.execute(INSERT_TEMPLATES)
    for template_id in (HOT, QUIET):
        preheat_template(services, template_id)
    return ClaimGate(services.settings, services.next_id)


@contextmanager
def traffic(services: Services, gate: ClaimGate, template_id: int) -> Iterator[None]:
    """Claims and settling of a template, some two thousand a second; the checker shares the interpreter with them."""
    stop = threading.Event()

    def claim() -> None:
        number = 0
        while not stop.wait(0.01):
            gate.claim_many([ClaimRequest(template_id, f"u{number + n}", "r") for n in range(40)])
            number += 20  # each user claims twice, the second time as a replay

    def settle() -> None:
        while not stop.wait(0.03):
            drain(services, template_id, 0)

    threads = [threading.Thread(target=work) for work in (claim, settle)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_claims_on_their_way_are_no_breach(services: Services, gate: ClaimGate) -> None:
    """The checker runs again and again while 2,000 claims are accepted and settled, and finds nothing."""
    reports: list[Report] = []

    with traffic(services, gate, HOT):
        while len(reports) < 3 or reports[-1].facts["coupons"] < 2_000:
            reports.append(check_all(services, patience_s=1.0))

    assert all(report.holds for report in reports), [report.breaches for report in reports]


def test_a_breach_of_a_quiet_template_is_seen_under_traffic_on_another(services: Services, gate: ClaimGate) -> None:
    """A unit lost where nothing moves is reported while the neighbour sells."""
    services.redis.decr(BucketKeys(QUIET).stock)

    with traffic(services, gate, HOT):
        report = check_all(services, patience_s=1.0)

    assert [("conservation", f"template {QUIET}")] == [(breach.invariant, breach.subject) for breach in report.breaches]


def test_a_claim_that_was_told_and_lost_is_seen(services: Services, gate: ClaimGate) -> None:
    """Each client's claim ended as his own; one that nobody knows, or that is another's, is reported."""
    mine = gate.claim(ClaimRequest(HOT, "ann", "r")).claim_id
    other = gate.claim(ClaimRequest(HOT, "bob", "r")).claim_id
    drain(services, HOT, 0)
    sound = ToldClaim(mine, HOT, "ann", "r")

    found = told_claims_ended(services, [sound, ToldClaim(4711, HOT, "ann", "s"), ToldClaim(other, HOT, "ann", "t")])

    assert not told_claims_ended(services, [sound])
    assert ["claim 4711", f"claim {other}"] == [breach.subject for breach in found]


def test_waiting_ends_when_every_claim_is_settled(services: Services, gate: ClaimGate) -> None:
    """The queue is watched until it is empty; what is left is told on the way."""
    for number in range(50):
        gate.claim(ClaimRequest(HOT, f"u{number}", "r"))
    seen: list[int] = []
    worker = threading.Timer(0.3, drain, (services, HOT, 0))
    worker.start()

    wait_until_settled(services, left=seen.append)
    worker.join()

    assert seen[0] == max(seen) > 0
    assert queued_claims_left(services) == 0


def test_waiting_for_a_queue_that_nobody_drains_ends_in_time(services: Services, gate: ClaimGate) -> None:
    """Nothing moves: the wait says so instead of lasting for ever. Other templates' queues do not matter."""
    gate.claim(ClaimRequest(HOT, "ann", "r"))

    wait_until_settled(services, frozenset({QUIET}), stalled_after_s=0.3)
    with pytest.raises(NotSettled, match="1 claims"):
        wait_until_settled(services, stalled_after_s=0.3)
