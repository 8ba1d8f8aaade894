"""Templates that nobody claims from any more leave Redis; nothing else does."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.claiming.key import WARM_TEMPLATES
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.template import insert_template


def _end_long_ago(services: Services, template_id: int) -> None:
    with services.engine.begin() as connection:
        connection.execute(
            text("UPDATE coupon_template SET claim_start = :start, claim_end = :end WHERE template_id = :id"),
            {"start": utc_now() - timedelta(days=30), "end": utc_now() - timedelta(days=8), "id": template_id},
        )


def test_a_template_that_ended_long_ago_leaves_no_key_and_its_requests_are_still_answered(services: Services) -> None:
    """The replay of a request finds its coupon in the database (DESIGN 3.3)."""
    insert_template(services.engine, template_id=5)
    preheat_template(services, 5)
    request = ClaimRequest(5, "u1", "r1")
    accepted = ClaimFront(services).claim(request)
    drain(services, 5, 0)
    _end_long_ago(services, 5)

    retired = retire_gates(services)

    assert 1 == retired
    assert [] == [key for key in services.redis.keys("cw:{t5.0}:*") if b"rate" not in key]
    assert 0 == services.redis.scard(WARM_TEMPLATES)
    replayed = ClaimFront(services).claim(request)
    assert (ClaimOutcome.REPLAYED, accepted.claim_id, "issued") == (replayed.outcome, replayed.claim_id, replayed.state)
    assert ClaimOutcome.ENDED is ClaimFront(services).claim(ClaimRequest(5, "u2", "r1")).outcome


def test_a_template_with_queued_claims_is_not_retired(services: Services) -> None:
    """An accepted claim is never lost, however late it is settled."""
    insert_template(services.engine, template_id=5)
    preheat_template(services, 5)
    ClaimFront(services).claim(ClaimRequest(5, "u1", "r1"))
    _end_long_ago(services, 5)

    retired = retire_gates(services)

    assert 0 == retired
    assert 1 == drain(services, 5, 0)


def test_a_template_in_use_stays_warm(services: Services) -> None:
    """Only what the sweep would not warm again is taken out."""
    insert_template(services.engine, template_id=5)
    preheat_template(services, 5)

    retired = retire_gates(services)

    assert 0 == retired
    assert 1 == services.redis.scard(WARM_TEMPLATES)
