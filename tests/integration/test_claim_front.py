"""The claim desk of a process: bells, answers for templates that are not warm, and what it remembers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import event

from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.clock import to_ms
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.snowflake import route_in, route_of
from coupon_workers.runtime.task import Task, settle_claims
from tests.conftest import PostBox
from tests.support.sale import Sale, open_sale
from tests.support.template import TEMPLATE_ID, insert_template

ANN = ClaimRequest(TEMPLATE_ID, "ann", "r1")


class DeadPost:
    """A broker that is away."""

    def send(self, task: Task) -> None:
        """Take nothing."""
        raise StoreUnavailable("broker", f"{task.name} was not taken")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units."""
    return open_sale(services)


def test_the_first_claim_rings_and_the_others_leave_it_at_that(sale: Sale, post: PostBox) -> None:
    """One message wakes a drain for all of them."""
    front = ClaimFront(sale.services)

    for user in ("ann", "bob", "cat"):
        assert ClaimOutcome.ACCEPTED == front.claim(ANN._replace(user_id=user)).outcome

    assert [settle_claims(TEMPLATE_ID, 0)] == post.sent


def test_many_claims_ring_once_for_each_template(sale: Sale, post: PostBox) -> None:
    """And a refusal rings for nothing."""
    other = open_sale(sale.services, template_id=7_002).template_id
    front = ClaimFront(sale.services)
    requests = [ANN, ANN._replace(user_id="bob"), ANN._replace(template_id=other), ANN._replace(template_id=7_003)]

    outcomes = [decision.outcome.value for decision in front.claim_many(requests)]

    assert ["ACCEPTED", "ACCEPTED", "ACCEPTED", "TEMPLATE_NOT_FOUND"] == outcomes
    assert [settle_claims(TEMPLATE_ID, 0), settle_claims(other, 0)] == post.sent


def test_a_claim_is_accepted_though_the_bell_cannot_be_sent(sale: Sale) -> None:
    """It is safe in the stream; the sweep rings again."""
    front = ClaimFront(replace(sale.services, post=DeadPost()))

    assert ClaimOutcome.ACCEPTED == front.claim(ANN).outcome
    assert 1 == sale.queued


def test_a_claim_id_tells_where_its_claim_is_kept(sale: Sale) -> None:
    """It carries the template's route, so that a status is asked of few keys."""
    claim_id = ClaimFront(sale.services).claim(ANN).claim_id

    assert route_of(TEMPLATE_ID) == route_in(claim_id)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("active", ClaimOutcome.NOT_WARMED),
        ("scheduled", ClaimOutcome.NOT_WARMED),
        ("paused", ClaimOutcome.NOT_WARMED),
        ("draft", ClaimOutcome.NOT_STARTED),
        ("pending_approval", ClaimOutcome.NOT_STARTED),
        ("offline", ClaimOutcome.ENDED),
        ("archived", ClaimOutcome.ENDED),
    ],
)
def test_a_template_that_is_not_warm_is_explained_by_its_row(
    services: Services, status: str, expected: ClaimOutcome
) -> None:
    """Only a published one is about to be warm."""
    insert_template(services.engine, status=status)

    assert expected == ClaimFront(services).claim(ANN).outcome


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_template_taken_offline_before_its_start_is_over(services: Services, is_warm: bool) -> None:
    """It never opens: no start is named to come back at."""
    start = services.clock() + timedelta(hours=5)
    sale = open_sale(services, claim_start=start, status="offline")
    if not is_warm:
        services.redis.delete(sale.keys.generation)

    assert Decision(ClaimOutcome.ENDED) == ClaimFront(services).claim(ANN)


def test_a_draft_answers_when_it_would_start(services: Services) -> None:
    """As its window says now."""
    start = services.clock() + timedelta(hours=5)
    insert_template(services.engine, status="draft", claim_start=start)

    assert Decision(ClaimOutcome.NOT_STARTED, start_ms=to_ms(start)) == ClaimFront(services).claim(ANN)


def test_a_draft_whose_window_has_begun_names_no_start(services: Services) -> None:
    """A start in the past would tell a caller to ask again at once, for ever."""
    insert_template(services.engine, status="draft", claim_start=services.clock() - timedelta(hours=5))

    assert Decision(ClaimOutcome.NOT_STARTED) == ClaimFront(services).claim(ANN)


def test_a_start_that_is_remembered_is_not_told_once_it_is_past(services: Services) -> None:
    """What is known of a template that is not warm is kept for a second."""
    start = services.clock() + timedelta(hours=5)
    insert_template(services.engine, status="draft", claim_start=start)
    now = [services.clock()]
    front = ClaimFront(replace(services, clock=lambda: now[0]))

    before = front.claim(ANN).start_ms
    now[0] = start
    after = front.claim(ANN).start_ms

    assert (to_ms(start), 0) == (before, after)


def test_a_template_that_ended_long_ago_is_ended(services: Services) -> None:
    """It is not kept warm for ever."""
    now = services.clock()
    insert_template(services.engine, claim_start=now - timedelta(days=30), claim_end=now - timedelta(days=20))

    assert ClaimOutcome.ENDED == ClaimFront(services).claim(ANN).outcome


def test_a_template_nobody_made_is_not_found(services: Services) -> None:
    """And is asked of the database once a second at most."""
    front = ClaimFront(services)

    first = front.claim(ANN).outcome
    insert_template(services.engine)
    remembered = front.claim(ANN).outcome

    assert [ClaimOutcome.TEMPLATE_NOT_FOUND] * 2 == [first, remembered]
    assert ClaimOutcome.NOT_WARMED == ClaimFront(services).claim(ANN).outcome


@pytest.mark.parametrize("issued", [True, False])
def test_a_request_is_replayed_from_the_database_when_its_template_is_over_and_cold(sale: Sale, issued: bool) -> None:
    """For good, whatever Redis still knows (DESIGN 3.3)."""
    engine = sale.services.engine
    first = sale.claim("ann").claim_id
    if not issued:
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE coupon_template SET pause_epoch = 1")
    sale.drain()
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE coupon_template SET status = 'archived'")
    sale.services.redis.flushdb()
    front = ClaimFront(sale.services)

    replayed, other = front.claim(ANN), front.claim(ANN._replace(request_id="r2"))

    state = "issued" if issued else "PAUSED"
    assert Decision(ClaimOutcome.REPLAYED, first, state) == replayed
    assert ClaimOutcome.ENDED == other.outcome


def test_many_cold_templates_are_looked_up_at_once(services: Services) -> None:
    """Two queries for the batch: one for the templates, one for what was claimed of those that are over."""
    now = services.clock()
    insert_template(services.engine, status="draft", claim_start=now + timedelta(hours=5))
    for template_id in range(8_000, 8_100):
        insert_template(services.engine, template_id=template_id, status="archived")
    requests = [ANN._replace(template_id=template_id) for template_id in (TEMPLATE_ID, *range(8_000, 8_200))]
    queries: list[str] = []
    front = ClaimFront(services)

    def note(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        queries.append(statement)

    event.listen(services.engine, "before_cursor_execute", note)
    try:
        outcomes = Counter(decision.outcome for decision in front.claim_many(requests))
    finally:
        event.remove(services.engine, "before_cursor_execute", note)

    assert {
        ClaimOutcome.NOT_STARTED: 1,
        ClaimOutcome.ENDED: 100,
        ClaimOutcome.TEMPLATE_NOT_FOUND: 100,
    } == outcomes
    assert 2 == len(queries)


def test_a_batch_is_answered_though_the_database_is_away(sale: Sale) -> None:
    """Claims of templates that are over are to be asked again; the others were accepted."""
    ended = ANN._replace(template_id=7_002)
    insert_template(sale.services.engine, template_id=ended.template_id, status="archived")
    front = ClaimFront(sale.services)
    first = front.claim(ended).outcome
    away = sale.services.settings.model_copy(update={"database_url": SecretStr("postgresql://127.0.0.1:1/x")})
    front._services = replace(sale.services, engine=make_engine(away))

    outcomes = [decision.outcome for decision in front.claim_many([ANN, ended, ANN._replace(template_id=7_003)])]

    assert ClaimOutcome.ENDED == first
    assert [ClaimOutcome.ACCEPTED, ClaimOutcome.NOT_WARMED, ClaimOutcome.NOT_WARMED] == outcomes
