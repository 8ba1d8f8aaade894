"""Claims that are held for review: never lost, never twice, whatever dies meanwhile (docs/risk.md)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from coupon_workers.claiming import turn
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.claim_status import claim_status
from coupon_workers.claiming.front import ClaimFront
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.reconciliation.batch_differences import batch_differences
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.risk import review_desk
from coupon_workers.risk.review_reading import read_reviews
from coupon_workers.risk.sweep import sweep_risk
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import settle_claims
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.conftest import PostBox
from tests.support.crash import dies_at
from tests.support.risk import claim_from, risky_sale, rule
from tests.support.sale import Sale, assert_sound
from tests.support.template import change_template

HELD_BY = rule("look", threshold=0, verdict="review")


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, one a user; a claim from a device is held."""
    return risky_sale(services, HELD_BY, per_user_limit=1, per_user_daily_limit=1)


def held(sale: Sale, user: str = "ann", request: str = "r1") -> int:
    """A claim that is held."""
    claim_id = claim_from(sale, user, request=request, device="d1").claim_id
    sale.drain()
    return claim_id


def later(services: Services, **delta: int) -> Services:
    """The same, with a clock ahead."""
    return replace(services, clock=lambda: services.clock() + timedelta(**delta))


def assert_agreed(services: Services) -> None:
    """Neither the checker nor the reconciliation finds anything."""
    assert_sound(services)
    now = services.clock()
    assert [] == stock_differences(services, now, None, patience_s=0).differences
    assert [] == batch_differences(services, now, None).differences


def test_a_held_claim_keeps_its_unit_and_its_caller_is_told_queued(services: Services, sale: Sale) -> None:
    """It is in no stream any more, but in the books."""
    claim_id = held(sale)

    status = claim_status(services, claim_id)
    replayed = claim_from(sale, "ann", device="d1")

    assert status is not None
    assert ("queued", None, None) == (status.status, status.reason, status.settled_at)
    assert (claim_id, "queued") == (replayed.claim_id, replayed.state)
    assert f"{claim_id} held" == sale.answer("ann")
    assert (9, 0, {}, {}) == (sale.stock, sale.queued, sale.coupons(), sale.rejections())
    assert (1, 1) == (sale.books["held_quantity"], sale.books["reserved_quantity"])
    assert ClaimOutcome.LIMIT_REACHED == claim_from(sale, "ann", request="r2").outcome
    assert_agreed(services)


def test_an_approved_claim_is_issued_once(services: Services, sale: Sale) -> None:
    """Asked again by the same key, it is as it was; by another, it is decided."""
    claim_id = held(sale)

    first = review_desk.approve(services, claim_id, "key-1", "known to us")
    again = review_desk.approve(services, claim_id, "key-1")

    assert ("approved", None) == (first["state"], first["reason"])
    assert first["decided_at"] == again["decided_at"]
    assert {claim_id: "ann"} == sale.coupons()
    assert f"{claim_id} issued" == sale.answer("ann")
    assert (9, 1, 0, 0) == (
        sale.stock,
        *(sale.books[name] for name in ("issued_quantity", "reserved_quantity", "held_quantity")),
    )
    with pytest.raises(Conflict, match="approved"):
        review_desk.reject(services, claim_id, "key-1", "no")
    assert_agreed(services)


def test_a_rejected_claim_gives_back_once(services: Services, sale: Sale) -> None:
    """Stock, allowance and the day's; the user may claim again."""
    claim_id = held(sale)

    review_desk.reject(services, claim_id, "key-1", "a farm")
    review_desk.reject(services, claim_id, "key-1", "a farm")

    status = claim_status(services, claim_id)
    assert status is not None
    assert ("rejected", "RISK_REJECTED") == (status.status, status.reason)
    assert (10, f"{claim_id} RISK_REJECTED") == (sale.stock, sale.answer("ann"))
    assert ClaimOutcome.ACCEPTED == claim_from(sale, "ann", request="r2").outcome
    sale.drain()
    assert_agreed(services)


def test_at_its_deadline_a_claim_is_rejected_by_itself(services: Services, sale: Sale) -> None:
    """Not before."""
    claim_id = held(sale)

    early = sweep_risk(later(services, hours=23))
    late = sweep_risk(later(services, hours=25))

    assert (0, 1) == (early["expired"], late["expired"])
    assert {claim_id: "RISK_REJECTED"} == sale.rejections()
    assert 10 == sale.stock
    assert ["expired"] == [review.state for review in read_reviews(services, limit=9)]
    assert_agreed(services)


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_a_review_outlives_the_memory_of_redis(services: Services, sale: Sale, how: str) -> None:
    """Flushed and rebuilt before the decision, the gate knows of it; the end is told once."""
    claim_id = held(sale)
    services.redis.flushall()
    cold = ClaimFront(services).claim(ClaimRequest(sale.template_id, "ann", "r1", "", "d1"))
    sale.preheat()
    known = sale.answer("ann")

    if how == "approve":
        review_desk.approve(services, claim_id, "key-1")
    else:
        review_desk.reject(services, claim_id, "key-1", "no")

    assert ClaimOutcome.NOT_WARMED == cold.outcome
    assert f"{claim_id} held" == known
    assert (9 if how == "approve" else 10) == sale.stock
    assert_agreed(services)


@pytest.mark.parametrize("how", ["approve", "reject"])
@pytest.mark.parametrize("flushed", [False, True])
def test_a_gate_that_was_away_when_it_ended_hears_of_it_later(
    services: Services, sale: Sale, how: str, flushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that died right after the commit; a rebuild may come before the sweep."""
    claim_id = held(sale)
    with dies_at(monkeypatch, "review.after_commit"):
        if how == "approve":
            review_desk.approve(services, claim_id, "key-1")
        else:
            review_desk.reject(services, claim_id, "key-1", "no")
    if flushed:
        services.redis.flushall()
        sale.preheat()

    told = [sweep_risk(services)["told"], sweep_risk(services)["told"]]

    assert [1, 0] == told
    assert (9 if how == "approve" else 10) == sale.stock
    assert f"{claim_id} {'issued' if how == 'approve' else 'RISK_REJECTED'}" == sale.answer("ann")
    assert_agreed(services)


@pytest.mark.parametrize("point", ["settle.before_insert", "settle.after_insert", "settle.after_commit"])
@pytest.mark.parametrize("decided", [None, "approve", "reject"])
def test_a_settling_that_dies_as_it_holds_is_done_again(
    services: Services, sale: Sale, point: str, decided: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may even have decided before the claim is taken off the stream."""
    claim_id = claim_from(sale, "ann", device="d1").claim_id
    with dies_at(monkeypatch, point):
        sale.drain()
    if point == "settle.after_commit" and decided == "approve":
        review_desk.approve(services, claim_id, "key-1")
    if point == "settle.after_commit" and decided == "reject":
        review_desk.reject(services, claim_id, "key-1", "no")

    sale.drain()
    sweep_risk(services)

    expected = {"approve": "issued", "reject": "RISK_REJECTED"}.get(decided or "", "held")
    expected = expected if point == "settle.after_commit" else "held"
    assert f"{claim_id} {expected}" == sale.answer("ann")
    assert (10 if expected == "RISK_REJECTED" else 9, 0) == (sale.stock, sale.queued)
    assert_agreed(services)


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_a_decision_that_dies_before_its_commit_has_not_been_made(
    services: Services, sale: Sale, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is held as before, and decided the next time; told twice it is told once."""
    claim_id = held(sale)

    def decide() -> None:
        if how == "approve":
            review_desk.approve(services, claim_id, "key-1")
        else:
            review_desk.reject(services, claim_id, "key-1", "no")

    with dies_at(monkeypatch, "review.before_commit"):
        decide()
    before = (sale.stock, sale.answer("ann"), sale.books["held_quantity"])
    with dies_at(monkeypatch, "review.after_tell"):
        decide()
    sweep_risk(services)

    assert (9, f"{claim_id} held", 1) == before
    assert (9 if how == "approve" else 10) == sale.stock
    assert_agreed(services)


def test_of_many_who_decide_at_once_one_does(services: Services, sale: Sale) -> None:
    """With the deadline among them."""
    claim_ids = [held(sale, f"u{number}") for number in range(4)]

    def decide(number: int) -> None:
        for claim_id in claim_ids:
            try:
                if number % 2:
                    review_desk.approve(services, claim_id, f"key-{number}")
                else:
                    review_desk.reject(services, claim_id, f"key-{number}", "no")
            except Conflict:
                pass

    with ThreadPoolExecutor(4) as pool:
        deciding = [pool.submit(decide, number) for number in range(3)]
        deciding.append(pool.submit(lambda: sweep_risk(later(services, days=2)) and None))
        for each in deciding:
            each.result()
    sweep_risk(later(services, days=2))

    assert 4 == len(sale.coupons()) + len(sale.rejections())
    assert 10 - len(sale.coupons()) == sale.stock
    assert_agreed(services)


def test_what_was_held_before_a_pause_is_rejected_though_it_is_approved(services: Services, sale: Sale) -> None:
    """As is whatever was queued then (API.md, Templates); the review says so."""
    claim_id = held(sale)
    pause_template(services, sale.template_id)
    resume_template(services, sale.template_id)

    review = review_desk.approve(services, claim_id, "key-1")

    assert ("approved", "PAUSED") == (review["state"], review["reason"])
    assert {claim_id: "PAUSED"} == sale.rejections()
    assert 10 == sale.stock
    assert_agreed(services)


def test_a_request_that_is_held_is_not_issued_beside_by_a_gate_that_forgot(services: Services) -> None:
    """Its second claim is a duplicate of the first."""
    sale = risky_sale(services, HELD_BY)
    claim_id = held(sale)
    services.redis.hdel(sale.keys.requests, "ann r1")

    second = claim_from(sale, "ann").claim_id
    sale.drain()

    assert {second: "DUPLICATE"} == sale.rejections()
    assert f"{claim_id} held" == sale.answer("ann")
    assert {} == sale.coupons()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"per_user_limit": 1}, "LIMIT_REACHED"), ({"per_user_daily_limit": 1}, "DAILY_LIMIT_REACHED")],
)
def test_a_held_claim_has_used_its_users_allowance_though_the_gate_forgot(
    services: Services, limits: dict[str, int], reason: str
) -> None:
    """It came first: what came later does not take its place before it is decided."""
    sale = risky_sale(services, HELD_BY, **limits)
    claim_id = held(sale)
    days = services.redis.keys(f"{sale.keys.day_prefix}*")
    services.redis.delete(sale.keys.takers, *days)

    second = sale.claim("ann", "r2").claim_id
    sale.drain()
    review_desk.approve(services, claim_id, "key-1")

    assert {second: reason} == sale.rejections()
    assert {claim_id: "ann"} == sale.coupons()


@pytest.mark.parametrize("decide", [review_desk.approve, review_desk.reject])
def test_a_settling_that_met_a_decision_is_called_back(
    services: Services, post: PostBox, sale: Sale, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., Any]
) -> None:
    """Claims that came meanwhile do not wait for the sweep to miss them."""
    claim_id = held(sale)
    sale.claim("zoe")
    left: list[int] = []
    meet = {"review.before_commit": lambda: left.append(sale.drain())}
    monkeypatch.setattr(review_desk, "crash_point", lambda name: meet.get(name, int)())
    post.sent.clear()

    decide(services, claim_id, "key-1", "as he asked")

    assert ([0], 1) == (left, sale.queued)
    assert settle_claims(sale.template_id, 0) in post.sent
    sale.drain()
    assert_sound(services)


def test_held_units_are_not_given_to_others(services: Services) -> None:
    """Nor may the total be lowered below them."""
    sale = risky_sale(services, HELD_BY, total_quantity=2)
    claim_id = held(sale)

    got = [claim_from(sale, user).outcome for user in ("bob", "cid")]
    sale.drain()
    change_template(services.engine, sale.template_id, name="changed")
    sweep_risk(services)
    review_desk.approve(services, claim_id, "key-1")

    assert [ClaimOutcome.ACCEPTED, ClaimOutcome.SOLD_OUT] == got
    assert {"ann", "bob"} == set(sale.coupons().values())
    assert_agreed(services)


def test_a_busy_template_is_waited_for_once_however_many_reviews_are_overdue(
    services: Services, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has other templates to look after; the next one ends what this one left."""
    for user in ("ann", "bob", "cat"):
        held(sale, user)
    overdue, waits = later(services, hours=25), []
    monkeypatch.setattr(turn, "TURN_WAIT_MS", 50)

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        waits.extend([statement] * statement.startswith("SET LOCAL lock_timeout = 50"))

    with services.engine.begin() as connection:
        assert turn.wait_for_turn(connection, sale.template_id, 0)
        event.listen(services.engine, "before_cursor_execute", note)
        left = review_desk.expire_reviews(overdue)
        event.remove(services.engine, "before_cursor_execute", note)

    assert (0, 1) == (left, len(waits))
    assert 3 == review_desk.expire_reviews(overdue)
    assert_agreed(services)


def test_a_claim_that_was_never_held_has_no_review(services: Services) -> None:
    """Whatever its number."""
    with pytest.raises(NotFound, match="held for review"):
        review_desk.approve(services, 1, "key-1")
