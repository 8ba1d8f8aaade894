"""Accepted claims that cannot be issued: rejected with a reason, and given back exactly once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from coupon_workers.claiming import claim_batch
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.pending import EndedClaim, acknowledge, read_pending
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_desk import pause_template, resume_template, take_offline
from tests.support.redis_dump import dump
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template

Stop = Callable[[Services, int], object]


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, limits of two."""
    return open_sale(services, per_user_limit=2, per_user_daily_limit=2)


@pytest.mark.parametrize(("stop", "reason"), [(pause_template, "PAUSED"), (take_offline, "OFFLINE")])
def test_claims_queued_when_the_template_is_stopped_are_all_rejected(
    services: Services, stop: Stop, reason: str
) -> None:
    """A hundred of them; the stock is as before, and nobody has used up his limit (CASES 15)."""
    sale = open_sale(services, total_quantity=150, per_user_limit=1, per_user_daily_limit=1)
    claim_ids = sale.claim_each(f"u{number}" for number in range(100))

    stop(services, sale.template_id)
    assert 100 == sale.drain()

    assert dict.fromkeys(claim_ids, reason) == sale.rejections()
    assert ({}, 150, 100) == (sale.coupons(), sale.stock, sale.books["rejected_quantity"])
    assert ("0 1", f"{claim_ids[0]} {reason}") == (sale.taker("u0"), sale.answer("u0"))
    assert [] == services.redis.keys("*:day:*")
    assert_sound(services)


def test_a_rejection_has_an_event_to_tell_with_its_reason(sale: Sale) -> None:
    """Written with it."""
    claim_id = sale.claim("ann").claim_id
    pause_template(sale.services, sale.template_id)

    sale.drain()

    told = sale.rows("SELECT event, user_id, coupon_id, detail->>'reason' FROM outbox")
    assert [("claim.rejected", "ann", claim_id, "PAUSED")] == told


def test_a_pause_that_comes_amid_a_settling_rejects_what_it_has_read(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template was open when the batch was looked at, and is not when it is written."""
    claim_id = sale.claim("ann").claim_id
    amid = iter([lambda: pause_template(sale.services, sale.template_id)])
    meet = {"settle.before_insert": lambda: next(amid, int)()}
    monkeypatch.setattr(claim_batch, "crash_point", lambda name: meet.get(name, int)())

    sale.drain()

    assert ({claim_id: "PAUSED"}, {}) == (sale.rejections(), sale.coupons())


def test_claims_queued_before_a_pause_are_rejected_though_it_is_over_when_they_are_settled(sale: Sale) -> None:
    """They are outdated by their epoch; those accepted after it are issued, in the same batch."""
    before = sale.claim("ann").claim_id
    pause_template(sale.services, sale.template_id)
    resume_template(sale.services, sale.template_id)
    after = sale.claim("bob").claim_id

    sale.drain()

    assert ({before: "PAUSED"}, {after: "bob"}) == (sale.rejections(), sale.coupons())
    assert 9 == sale.stock
    assert_sound(sale.services)


def test_a_user_whose_claim_was_rejected_may_claim_again_under_a_number_of_its_own(services: Services) -> None:
    """The request that was rejected stays rejected, for good."""
    sale = open_sale(services, per_user_limit=1)
    rejected = sale.claim("ann", "r1").claim_id
    pause_template(services, sale.template_id)
    sale.drain()
    resume_template(services, sale.template_id)

    replayed, fresh = sale.claim("ann", "r1"), sale.claim("ann", "r2")
    sale.drain()

    assert (ClaimOutcome.REPLAYED, rejected, "PAUSED") == (replayed.outcome, replayed.claim_id, replayed.state)
    assert [(fresh.claim_id, 2)] == sale.rows("SELECT coupon_id, claim_seq FROM coupon")
    assert_sound(services)


def test_a_total_lowered_below_what_is_queued_rejects_the_latest(sale: Sale) -> None:
    """The oldest claims get what there is; the surplus comes back to a stock that then is zero."""
    claim_ids = sale.claim_each(["ann", "bob", "cat", "dan"])
    change_template(sale.services.engine, sale.template_id, total_quantity=3)

    sale.drain()

    assert set(claim_ids[:3]) == sale.coupons().keys()
    assert {claim_ids[3]: "SOLD_OUT"} == sale.rejections()


def test_a_rejection_is_given_back_once_when_it_is_acknowledged_twice(sale: Sale) -> None:
    """Two workers settled the same batch, one after the other, and both acknowledge."""
    sale.claim_each(["ann", "bob"])
    pause_template(sale.services, sale.template_id)
    client, keys = sale.services.redis, sale.keys
    claims, _ = read_pending(client, keys, 10)
    sale.drain()
    before = dump(client, without=":rate:")
    ended = [EndedClaim(claim, "PAUSED", f"{claim.claim_id} PAUSED") for claim in claims]

    given_back = acknowledge(client, keys, ended, (claims[0].entry_id, claims[-1].entry_id))

    assert (0, 10) == (given_back, sale.stock)
    assert before == dump(client, without=":rate:")


def test_drains_that_run_at_once_reject_and_give_back_once(services: Services) -> None:
    """Six workers answer six bells for the same forty claims."""
    sale = open_sale(services, total_quantity=100, per_user_limit=1)
    claim_ids = sale.claim_each(f"u{number}" for number in range(40))
    pause_template(services, sale.template_id)

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(lambda _: sale.drain(), range(6)))
    sale.drain()

    assert dict.fromkeys(claim_ids, "PAUSED") == sale.rejections()
    assert (100, 40) == (sale.stock, sale.books["rejected_quantity"])
    assert 40 == len(sale.rows("SELECT 1 FROM outbox"))
    assert_sound(services)


@pytest.mark.parametrize(
    ("column", "reason"),
    [("per_user_limit", "LIMIT_REACHED"), ("per_user_daily_limit", "DAILY_LIMIT_REACHED")],
)
@pytest.mark.parametrize("numbers_too", [True, False])
def test_the_database_holds_a_limit_that_the_gate_has_forgotten(
    services: Services, column: str, reason: str, numbers_too: bool
) -> None:
    """Counts were lost in Redis: earlier claims win, and a number that was used is replaced by the user's next."""
    sale = open_sale(services, **{column: 3})
    old = [sale.claim("ann", f"old{number}").claim_id for number in range(2)]
    sale.drain()
    services.redis.delete(sale.keys.takers, *services.redis.keys(f"{sale.keys.day_prefix}*"))
    if not numbers_too:
        services.redis.hset(sale.keys.takers, "ann", "0 2")
    new = [sale.claim(user, f"new{number}").claim_id for user in ("ann", "bob") for number in range(3)]

    sale.drain()

    assert {*old, new[0], *new[3:]} == sale.coupons().keys()
    assert dict.fromkeys(new[1:3], reason) == sale.rejections()
    assert [(1,), (2,), (3,)] == sale.rows("SELECT claim_seq FROM coupon WHERE user_id = 'ann' ORDER BY coupon_id")
