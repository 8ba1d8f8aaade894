"""Redis comes back empty or rewound: no coupon too many, none lost, requests keep their answers (FAULTS 4, 5)."""

from __future__ import annotations

import pytest

from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import preheat_template
from tests.conftest import PostBox
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import Sale, assert_sound, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Four units, one a user."""
    return open_sale(services, total_quantity=4, per_user_limit=1)


def test_an_empty_redis_refuses_until_it_is_rebuilt(sale: Sale) -> None:
    """NOT_WARMED, never SOLD_OUT, and nothing is written."""
    sale.services.redis.flushall()

    decision = sale.claim("ann")

    assert ClaimOutcome.NOT_WARMED == decision.outcome
    assert decision.outcome.retry_helps
    assert [] == sale.services.redis.keys("cw:{t*")


def test_after_the_rebuild_stock_limits_and_requests_are_as_they_were(sale: Sale) -> None:
    """Settled claims are remembered by the database."""
    claim_id = sale.claim("ann", "r1").claim_id
    sale.claim("bob")
    sale.drain()
    sale.services.redis.flushall()

    sale.preheat()

    again, more = sale.claim("ann", "r1"), sale.claim("ann", "r2")
    assert (ClaimOutcome.REPLAYED, claim_id, "issued") == (again.outcome, again.claim_id, again.state)
    assert ClaimOutcome.LIMIT_REACHED == more.outcome
    assert 2 == sale.stock
    assert_sound(sale.services)


def test_a_redis_rewound_behind_its_settling_sells_no_unit_twice(sale: Sale) -> None:
    """Three coupons it has forgotten, three claims too many that it lets in: rejected, counted, given back."""
    before = snapshot(sale.services.redis)
    sale.claim_each(["ann", "bob", "cat"])
    sale.drain()
    restore(sale.services.redis, before)

    accepted = sale.claim_each(["dan", "eve", "fay", "gus"])
    sale.drain()

    assert accepted[0] in sale.coupons()
    assert dict.fromkeys(accepted[1:], "SOLD_OUT") == sale.rejections()
    assert (4, 3) == (sale.books["issued_quantity"], sale.books["rejected_quantity"])
    sale.preheat()
    assert 0 == sale.stock
    assert_sound(sale.services)


def test_a_user_whose_coupon_was_forgotten_by_redis_does_not_get_another(sale: Sale) -> None:
    """Another request is beyond his limit; the same request is answered by the coupon he has."""
    before = snapshot(sale.services.redis)
    coupon_ids = sale.claim_each(["ann", "bob"])
    sale.drain()
    restore(sale.services.redis, before)

    other, same = sale.claim("ann", "r2"), sale.claim("bob", "r1")
    sale.drain()

    assert [ClaimOutcome.ACCEPTED] * 2 == [other.outcome, same.outcome]
    assert {other.claim_id: "LIMIT_REACHED", same.claim_id: "DUPLICATE"} == sale.rejections()
    assert set(coupon_ids) == sale.coupons().keys()
    assert f"{coupon_ids[1]} issued" == sale.answer("bob", "r1")


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_request_forgotten_by_redis_is_answered_by_its_first_claim_for_good(sale: Sale, rebuild: bool) -> None:
    """Whether that was issued or rejected, and however often Redis forgets it (DESIGN 3.3)."""
    before = snapshot(sale.services.redis)
    first = sale.claim("ann").claim_id
    sale.drain()
    for _ in range(2):
        restore(sale.services.redis, before)
        sale.claim("ann")
        sale.drain()
    if rebuild:
        sale.services.redis.flushall()
        sale.preheat()

    decision = sale.claim("ann")

    assert (ClaimOutcome.REPLAYED, first, "issued") == (decision.outcome, decision.claim_id, decision.state)
    assert ["DUPLICATE"] * 2 == list(sale.rejections().values())
    assert {first: "ann"} == sale.coupons()


def test_claims_lost_with_redis_before_they_were_settled_were_never_promised_twice(sale: Sale) -> None:
    """What the database never saw is free again after a rebuild; the request may be claimed anew."""
    before = snapshot(sale.services.redis)
    lost = sale.claim("ann").claim_id
    restore(sale.services.redis, before)

    decision = sale.claim("ann")
    sale.drain()

    assert (ClaimOutcome.ACCEPTED, True) == (decision.outcome, decision.claim_id != lost)
    assert {decision.claim_id: "ann"} == sale.coupons()
    assert_sound(sale.services)


def test_entries_that_come_back_with_an_older_redis_are_known(sale: Sale) -> None:
    """The stream is rewound to before their acknowledgement: they are acknowledged again, and not counted again."""
    sale.claim_each(["ann", "bob"])
    before = snapshot(sale.services.redis)
    sale.drain()
    restore(sale.services.redis, before)

    assert 2 == sale.drain()

    assert (2, 2, {}) == (sale.stock, len(sale.coupons()), sale.rejections())
    assert_sound(sale.services)


def test_a_gate_that_has_lost_its_memory_is_rebuilt_once_and_refuses_by_itself(sale: Sale, post: PostBox) -> None:
    """Otherwise it would accept, lose and give back for ever: what a rejection returns is no stock."""
    before = snapshot(sale.services.redis)
    sale.claim_each(["ann", "bob"])
    sale.drain()
    restore(sale.services.redis, before)
    sale.claim("ann", "r2")
    sale.drain()
    sale.claim("bob", "r2")
    sale.drain()

    asked = [task for task in post.sent if task == preheat_template(sale.template_id)]
    sale.preheat()

    assert 1 == len(asked)
    assert ClaimOutcome.LIMIT_REACHED is sale.claim("ann", "r3").outcome
    assert_sound(sale.services)
