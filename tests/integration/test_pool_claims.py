"""Random amounts from the claim to the coupon, on real servers: each value of the pool once, and no other."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coupon_workers.claiming import preheat
from coupon_workers.claiming.claim_request import ClaimRequest
from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import preheat_template
from tests.support.crash import dies_at
from tests.support.pool import PoolSale, open_pool
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import assert_sound, gate_of
from tests.support.template import change_template

USERS = [f"u{number}" for number in range(10)]


@pytest.fixture
def sale(services: Services) -> PoolSale:
    """Ten coupons that sum to 50.00."""
    return open_pool(services)


def assert_all_is_somewhere(sale: PoolSale) -> None:
    """Issued, queued and listed values are the pool's, one for one."""
    queued = Counter(value for value in sale.drawn() if value is not None)
    assert sale.pool() == Counter(sale.worth().values()) + queued + sale.listed()
    assert sale.left() == queued + sale.listed()


def test_every_claim_draws_a_value_and_the_coupon_is_worth_it(sale: PoolSale) -> None:
    """All ten of them are the pool, which sums to the budget."""
    claim_ids = sale.claim_each(USERS)
    drawn = sale.drawn()

    sale.drain()

    assert dict(zip(claim_ids, drawn, strict=True)) == sale.worth()
    assert sale.pool() == Counter(sale.worth().values())
    assert 5_000 == sum(sale.worth().values())
    assert (Counter(), Counter(), ClaimOutcome.SOLD_OUT) == (sale.left(), sale.listed(), sale.claim("late").outcome)
    assert_sound(sale.services)


def test_half_way_everything_is_somewhere(sale: PoolSale) -> None:
    """Some issued, some queued, the rest in the list."""
    sale.claim_each(USERS[:4])
    sale.drain()
    sale.claim_each(USERS[4:7])

    assert (4, 3, 3) == (len(sale.worth()), len(sale.drawn()), sale.listed().total())
    assert_all_is_somewhere(sale)
    assert_sound(sale.services)


def test_a_repeated_request_draws_nothing(sale: PoolSale) -> None:
    """It is answered with its claim, before and after it is settled."""
    first = sale.claim("ann")
    queued = sale.claim("ann")
    sale.drain()
    issued = sale.claim("ann")

    assert {first.claim_id} == {queued.claim_id, issued.claim_id}
    assert (1, 9) == (len(sale.worth()), sale.listed().total())


def test_a_rejected_claim_gives_its_value_back_once(sale: PoolSale) -> None:
    """A pause outdates what is queued; the values are drawn again by others."""
    sale.claim_each(USERS[:3])
    change_template(sale.services.engine, sale.template_id, status="paused", pause_epoch=1)

    sale.drain()
    sale.drain()

    assert {"PAUSED"} == set(sale.rejections().values())
    assert sale.pool() == sale.listed() == sale.left()
    change_template(sale.services.engine, sale.template_id, status="active")
    sync_template(sale.services, sale.template_id)
    sale.claim_each(USERS, "again")
    sale.drain()
    assert sale.pool() == Counter(sale.worth().values())
    assert_sound(sale.services)


def test_a_crowd_draws_exactly_the_pool(services: Services) -> None:
    """A thousand claims at once for a hundred coupons."""
    pool = {"min": 1, "max": 8_800, "budget": 50_000, "distribution": "normal"}
    sale = open_pool(services, pool=pool, total_quantity=100)
    gate = gate_of(services, claim_rate=0)

    def claim(number: int) -> ClaimOutcome:
        return gate.claim(ClaimRequest(sale.template_id, f"u{number}", "r1")).outcome

    with ThreadPoolExecutor(16) as crowd:
        outcomes = Counter(crowd.map(claim, range(1_000)))
    sale.drain()

    assert {ClaimOutcome.ACCEPTED: 100, ClaimOutcome.SOLD_OUT: 900} == outcomes
    assert sale.pool() == Counter(sale.worth().values())
    assert (100, 50_000) == (len(sale.worth()), sum(sale.worth().values()))
    assert_sound(services)


def test_a_preheat_lists_what_is_left_in_a_new_order(services: Services) -> None:
    """With claims queued, which keep what they drew; the order of the others is another one."""
    pool = {"min": 1, "max": 100_000, "budget": 5_000_000, "distribution": "uniform"}
    sale = open_pool(services, pool=pool, total_quantity=100)
    sale.claim_each(USERS[:4])
    sale.drain()
    sale.claim_each(USERS[4:])
    before: Any = services.redis.lrange(sale.keys.pool, 0, -1)
    drawn = sale.drawn()

    sale.preheat()

    after: Any = services.redis.lrange(sale.keys.pool, 0, -1)
    assert before != [value for value in after if value in before]
    assert drawn == sale.drawn()
    assert_all_is_somewhere(sale)
    sale.claim_each(f"v{number}" for number in range(90))
    sale.drain()
    assert sale.pool() == Counter(sale.worth().values())
    # What nobody came to draw after the last one: copies of what the claims that were queued had drawn.
    meta: Any = services.redis.hgetall(sale.keys.meta)
    held = Counter({name[5:]: int(count) for name, count in meta.items() if name.startswith(b"held:")})
    left: Any = services.redis.lrange(sale.keys.pool, 0, -1)
    assert Counter(left) == held


def test_a_redis_that_lost_everything_loses_no_value(sale: PoolSale) -> None:
    """What was queued is lost with it, and what it had drawn is in the pool again."""
    sale.claim_each(USERS[:3])
    sale.drain()
    sale.claim_each(USERS[3:6])
    sale.services.redis.flushdb()
    lost = sale.claim("ann").outcome

    sale.preheat()

    assert ClaimOutcome.NOT_WARMED == lost
    assert_all_is_somewhere(sale)
    sale.claim_each(USERS[3:])
    sale.drain()
    assert sale.pool() == Counter(sale.worth().values())


def test_a_value_drawn_twice_is_issued_once_and_the_other_claim_is_drawn_another(sale: PoolSale) -> None:
    """Redis was rewound: it gives out again what it gave before. Nobody is refused, and the gate is rebuilt."""
    early = snapshot(sale.services.redis)
    sale.claim_each(USERS[:5])
    sale.drain()
    restore(sale.services.redis, early)
    twice = sale.claim_each(USERS[5:])

    sale.drain()

    worth = sale.worth()
    assert set(twice) <= worth.keys()
    assert sale.pool() == Counter(worth.values())
    assert preheat_template(sale.template_id) in sale.services.post.sent  # type: ignore[attr-defined]  # a PostBox
    sale.preheat()
    assert_sound(sale.services)


@pytest.mark.parametrize("value", ["", "1", "99999999"])
def test_a_claim_whose_value_the_pool_has_not_is_drawn_one(sale: PoolSale, value: str) -> None:
    """Whatever Redis says: only what the pool has left is issued."""
    sale.claim("ann")
    sale.services.redis.xtrim(sale.keys.pending, maxlen=0, approximate=False)
    entry = {"c": 4711, "u": "ann", "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": "", "v": value}
    sale.add_entry(entry)

    sale.drain()

    assert {4711: "ann"} == sale.coupons()
    assert sale.worth()[4711] in sale.pool()
    assert sale.pool() == sale.left() + Counter(sale.worth().values())


def test_an_entry_of_a_release_that_knew_no_pools_is_drawn_a_value(sale: PoolSale) -> None:
    """It has no field for one."""
    sale.add_entry({"c": 4711, "u": "ann", "r": "r1", "s": 1, "t": 1_800_000_000_000, "d": "", "e": 0, "h": ""})

    sale.drain()

    assert sale.worth()[4711] in sale.pool()


@pytest.mark.parametrize("point", ["settle.before_insert", "settle.after_insert", "settle.after_commit"])
def test_a_worker_that_dies_issues_no_value_twice(sale: PoolSale, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Before the commit nothing has happened, after it everything has."""
    sale.claim_each(USERS[:5])
    with dies_at(monkeypatch, point):
        sale.drain()

    sale.drain()

    assert 5 == len(sale.worth())
    assert_all_is_somewhere(sale)
    assert_sound(sale.services)


def test_a_preheat_that_dies_leaves_the_live_list_alone(sale: PoolSale, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has built goes."""
    sale.claim_each(USERS[:2])
    before: Any = sale.services.redis.lrange(sale.keys.pool, 0, -1)
    with dies_at(monkeypatch, "preheat.before_swap"):
        sale.preheat()

    assert before == sale.services.redis.lrange(sale.keys.pool, 0, -1)
    assert [] == sale.services.redis.keys("*shadow*")


def test_bringing_changes_to_the_gate_leaves_the_list_alone(sale: PoolSale) -> None:
    """Also while some of it is to be passed over."""
    sale.claim_each(USERS[:2])
    sale.preheat()
    before = sale.listed()
    change_template(sale.services.engine, sale.template_id, name="another")

    sync_template(sale.services, sale.template_id)

    assert before == sale.listed()
    assert_all_is_somewhere(sale)


def test_claims_accepted_while_a_preheat_builds_keep_what_they_drew(
    sale: PoolSale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They draw from the list that is about to be replaced."""
    monkeypatch.setattr(preheat, "crash_point", lambda _: sale.claim_each(USERS[:3]))
    sale.preheat()

    assert 3 == len(sale.drawn())
    assert_all_is_somewhere(sale)
    sale.claim_each(USERS[3:])
    sale.drain()
    assert sale.pool() == Counter(sale.worth().values())
