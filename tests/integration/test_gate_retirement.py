"""Templates that nobody claims from any more leave Redis; nothing else does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import claim_status
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.gate_retirement import retire_gates
from coupon_workers.claiming.key import WARM_TEMPLATES
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.claiming.settlement import drain
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.redis_client import make_redis
from coupon_workers.runtime.services import Services
from tests.support.redis_proxy import Fault, proxied
from tests.support.sale import Sale, open_sale
from tests.support.template import insert_template

QUESTIONS = 8
"""More than a retirement asks Redis, greetings of its connection included."""


def _end_long_ago(services: Services, template_id: int) -> None:
    with services.engine.begin() as connection:
        connection.execute(
            text("UPDATE coupon_template SET claim_start = :start, claim_end = :end WHERE template_id = :id"),
            {"start": utc_now() - timedelta(days=30), "end": utc_now() - timedelta(days=8), "id": template_id},
        )


def _retire_and_die(services: Services, number: int, fault: Fault) -> None:
    """A retirement that Redis does not hear any more, or that does not hear Redis, from one of its questions on."""
    with proxied(services.settings) as (proxy, settings):
        proxy.plan(*[Fault.NONE] * number, *[fault] * QUESTIONS)
        with suppress(StoreUnavailable):
            retire_gates(replace(services, redis=make_redis(settings)))


def _ended_sale(services: Services, template_id: int) -> Sale:
    sale = open_sale(services, template_id=template_id)
    _end_long_ago(services, template_id)
    return sale


@pytest.mark.parametrize("fault", [Fault.LOSE_QUESTION, Fault.LOSE_ANSWER])
@pytest.mark.parametrize("number", range(QUESTIONS))
def test_what_a_retirement_that_died_has_left_is_taken_by_the_next(
    services: Services, number: int, fault: Fault
) -> None:
    """No value is kept for ever, wherever it died."""
    sale = _ended_sale(services, 5)

    _retire_and_die(services, number, fault)
    retire_gates(services)

    assert [] == services.redis.keys(f"{sale.keys.meta.rpartition(':')[0]}:*")
    assert 0 == services.redis.scard(WARM_TEMPLATES)


@pytest.mark.parametrize("fault", [Fault.LOSE_QUESTION, Fault.LOSE_ANSWER])
@pytest.mark.parametrize("number", range(QUESTIONS))
def test_a_queued_claim_is_found_wherever_a_retirement_died(services: Services, number: int, fault: Fault) -> None:
    """Whoever was told 202 is told how it stands (DESIGN 3.2)."""
    sale = open_sale(services, template_id=5)
    claim_id = sale.claim("u1").claim_id
    _end_long_ago(services, 5)

    _retire_and_die(services, number, fault)

    found = claim_status(services, claim_id)
    assert found is not None
    assert "queued" == found.status


def test_a_gate_that_is_being_preheated_is_not_retired(services: Services) -> None:
    """Its preheat lists it, and would find it taken off the list."""
    sale = _ended_sale(services, 5)

    with services.engine.begin() as connection:
        assert connection.scalar(text("SELECT pg_try_advisory_xact_lock(~CAST(5 AS bigint))"))
        assert 0 == retire_gates(services)

    assert 1 == services.redis.exists(sale.keys.generation)
    assert 1 == retire_gates(services)


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
