"""How a claim stands: queued, issued or rejected, readable for ever."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import claim_status, find_claims_of_requests
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.redis_client import client_without_retries, make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.templates.template_desk import pause_template
from tests.support.crash import dies_at
from tests.support.redis_dump import restore, snapshot
from tests.support.redis_proxy import Fault, proxied
from tests.support.sale import Sale, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units."""
    return open_sale(services)


def told(services: Services, claim_id: int) -> tuple[str, str | None, bool]:
    """Status, reason, and whether it is settled."""
    status = claim_status(services, claim_id)
    assert status is not None
    assert claim_id == status.claim_id
    return status.status, status.reason, status.settled_at is not None


def test_a_claim_is_queued_and_then_issued(sale: Sale) -> None:
    """Dated by the gate's clock all the time, and settled after that."""
    claim_id = sale.claim("ann").claim_id
    queued = claim_status(sale.services, claim_id)
    sale.drain()
    issued = claim_status(sale.services, claim_id)

    assert queued is not None and issued is not None
    assert ("queued", None, None) == (queued.status, queued.reason, queued.settled_at)
    assert ("issued", None, queued.queued_at) == (issued.status, issued.reason, issued.queued_at)
    assert issued.settled_at is not None
    assert (sale.template_id, sale.template_id) == (queued.template_id, issued.template_id)
    assert (None, "ann") == (queued.user_id, issued.user_id)


def test_a_rejected_claim_tells_its_reason(sale: Sale) -> None:
    """In the words of the contract."""
    claim_id = sale.claim("ann").claim_id
    pause_template(sale.services, sale.template_id)
    sale.drain()

    assert ("rejected", "PAUSED", True) == told(sale.services, claim_id)
    status = claim_status(sale.services, claim_id)
    assert status is not None and (sale.template_id, "ann") == (status.template_id, status.user_id)


def test_a_claim_nobody_made_is_none(sale: Sale) -> None:
    """Also one whose number carries the route of no template."""
    claim_id = sale.claim("ann").claim_id

    assert [None] * 3 == [claim_status(sale.services, wrong) for wrong in (1, claim_id + 1, claim_id ^ (0xFF << 14))]


def test_what_ended_is_told_though_redis_has_lost_it(sale: Sale) -> None:
    """The database keeps it."""
    claim_id = sale.claim("ann").claim_id
    sale.drain()
    sale.services.redis.flushdb()

    assert ("issued", None, True) == told(sale.services, claim_id)


def test_a_claim_is_queued_until_it_is_acknowledged(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between commit and acknowledgement the older word is still true enough, and it never goes back."""
    claim_id = sale.claim("ann").claim_id
    with dies_at(monkeypatch, "settle.after_commit"):
        sale.drain()
    before = told(sale.services, claim_id)
    sale.drain()

    assert (("queued", None, False), ("issued", None, True)) == (before, told(sale.services, claim_id))


def test_a_queued_claim_is_still_found_after_a_rebuild(sale: Sale) -> None:
    """The preheat brings back what the stream holds."""
    claim_id = sale.claim("ann").claim_id
    sale.services.redis.delete(sale.keys.claims)

    preheat_template(sale.services, sale.template_id)

    assert ("queued", None, False) == told(sale.services, claim_id)


def test_waiting_ends_when_the_claim_is_settled(sale: Sale) -> None:
    """Long before the time is over."""
    claim_id = sale.claim("ann").claim_id
    worker = threading.Timer(0.15, sale.drain)
    worker.start()
    started = time.monotonic()

    status = claim_status(sale.services, claim_id, wait_s=10)

    worker.join()
    assert status is not None
    assert "issued" == status.status
    assert 0.1 < time.monotonic() - started < 5


def test_waiting_ends_with_its_time(sale: Sale) -> None:
    """The claim is then still queued."""
    claim_id = sale.claim("ann").claim_id
    started = time.monotonic()

    status = claim_status(sale.services, claim_id, wait_s=0.2)

    assert status is not None
    assert "queued" == status.status
    assert 0.2 <= time.monotonic() - started < 2


def test_nothing_is_waited_for_that_is_settled_or_unknown(sale: Sale) -> None:
    """The answer will not change."""
    claim_id = sale.claim("ann").claim_id
    sale.drain()
    started = time.monotonic()

    claim_status(sale.services, claim_id, wait_s=10)
    claim_status(sale.services, 1, wait_s=10)

    assert time.monotonic() - started < 5


def test_a_redis_that_does_not_answer_is_unavailable(sale: Sale) -> None:
    """Whether the claim is queued is then not known."""
    claim_id = sale.claim("ann").claim_id
    nobody = client_without_retries("unix:///nonexistent/valkey.sock", 100)
    services = replace(sale.services, redis=nobody)

    with pytest.raises(StoreUnavailable):
        claim_status(services, claim_id)


def test_a_settled_claim_is_told_though_redis_does_not_answer(sale: Sale) -> None:
    """The database knows it, for ever readable."""
    claim_id = sale.claim("ann").claim_id
    sale.drain()
    away = client_without_retries("unix:///nowhere/valkey.sock", 100)

    assert ("issued", None, True) == told(replace(sale.services, redis=away), claim_id)


@pytest.mark.parametrize("committed", [True, False])
def test_of_a_redis_that_goes_away_amid_the_wait_the_database_is_asked(
    sale: Sale, settings: Settings, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """It may have the claim already; if not, nothing is known of it."""
    claim_id = sale.claim("ann").claim_id
    with dies_at(monkeypatch, "settle.after_commit" if committed else "settle.before_insert"):
        sale.drain()

    with proxied(settings) as (proxy, through):
        services = replace(sale.services, redis=make_redis(through))
        assert ("queued", None, False) == told(services, claim_id)
        # Which templates are warm, and which of them has it; then the first look of the wait.
        proxy.plan(Fault.NONE, Fault.NONE, Fault.LOSE_QUESTION)
        if committed:
            status = claim_status(services, claim_id, wait_s=10)
            assert status is not None and "issued" == status.status
        else:
            with pytest.raises(StoreUnavailable):
                claim_status(services, claim_id, wait_s=10)


def test_a_request_is_answered_by_its_first_claim(sale: Sale) -> None:
    """Redis forgot it and took it again: the second was rejected as its duplicate."""
    before = snapshot(sale.services.redis)
    first = sale.claim("ann").claim_id
    sale.drain()
    restore(sale.services.redis, before)
    second = sale.claim("ann").claim_id
    sale.drain()

    ann = ClaimRequest(sale.template_id, "ann", "r1")
    found = find_claims_of_requests(sale.services, [ann, ann._replace(user_id="bob")])

    assert {ann: (first, "issued")} == {request: (claim.claim_id, claim.state) for request, claim in found.items()}
    assert ("rejected", "DUPLICATE", True) == told(sale.services, second)
