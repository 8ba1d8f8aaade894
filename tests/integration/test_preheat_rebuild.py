"""Preheating: the gate is rebuilt from the database and the stream, and is right afterwards, whatever it was before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.errors import Conflict, NotFound, StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import settle_claims
from coupon_workers.templates.template_desk import pause_template, resume_template
from tests.conftest import PostBox
from tests.support.crash import dies_at
from tests.support.redis_dump import dump
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template, insert_template

RATE = ":rate:"


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units; two a user, two a day; ann has a coupon, bob's claim was rejected, cat's and ann's are queued."""
    opened = open_sale(services, per_user_limit=2, per_user_daily_limit=2)
    opened.claim("bob", "r1")
    pause_template(services, opened.template_id)
    opened.drain()
    resume_template(services, opened.template_id)
    opened.claim("ann", "r1")
    opened.drain()
    opened.claim("cat", "r1")
    opened.claim("ann", "r2")
    return opened


def state(sale: Sale) -> dict[bytes, Any]:
    """Every key of the template but those that time alone takes away, and the name of the generation."""
    keys = dump(sale.services.redis, without=RATE)
    for key in (sale.keys.generation, sale.keys.bell):
        keys.pop(key.encode(), None)
    return keys


def values(sale: Sale) -> dict[str, Any]:
    """What the keys say, in any order."""
    client, keys = sale.services.redis, sale.keys
    hashes = [keys.meta, keys.takers, keys.requests, keys.claims, *client.keys(f"{keys.day_prefix}*")]
    return {str(name): client.hgetall(name) for name in hashes} | {
        "stock": sale.stock,
        "pending": client.xrange(keys.pending),
    }


@pytest.mark.parametrize("lost", ["nothing", "all but the stream", "the generation"])
def test_a_rebuild_makes_the_same_keys_that_claims_and_settling_had_made(sale: Sale, lost: str) -> None:
    """From the database and the pending stream alone."""
    before = values(sale)
    client, keys = sale.services.redis, sale.keys
    if lost == "all but the stream":
        client.delete(*(key for key in client.keys("cw:{t*") if key != keys.pending.encode()))
    if lost == "the generation":
        client.delete(keys.generation)

    assert 1 == sale.preheat()

    assert before == values(sale)
    assert_sound(sale.services)


def test_a_cold_template_is_warm_after_its_preheat_and_known_as_such(services: Services) -> None:
    """Nobody has claimed it: the stock is the total."""
    insert_template(services.engine, total_quantity=10, reserved_quantity=4)
    sale = open_sale(services, template_id=7_002, total_quantity=10, reserved_quantity=4)

    assert 6 == sale.stock
    assert {b"7002.0"} == services.redis.smembers(WARM_TEMPLATES)
    assert ClaimOutcome.ACCEPTED == sale.claim("ann").outcome


def test_a_template_is_known_as_warm_before_it_opens(services: Services) -> None:
    """Otherwise a claim accepted in between could not be found when its status is asked."""
    services.redis.set(WARM_TEMPLATES, "not a set")

    with pytest.raises(StoreUnavailable):
        open_sale(services)

    assert not services.redis.exists(BucketKeys(7_001).generation)


def test_claims_go_on_after_the_rebuild_with_the_next_numbers(sale: Sale) -> None:
    """Limits count what was before; a rejected claim's number is not used again."""
    sale.services.redis.delete(sale.keys.generation)
    sale.preheat()

    outcomes = [sale.claim("ann", "r3").outcome, sale.claim("bob", "r2").outcome, sale.claim("bob", "r3").outcome]
    sale.drain()

    assert [ClaimOutcome.LIMIT_REACHED, ClaimOutcome.ACCEPTED, ClaimOutcome.ACCEPTED] == outcomes
    assert [(2,), (3,)] == sale.rows("SELECT claim_seq FROM coupon WHERE user_id = 'bob' ORDER BY claim_seq")
    assert_sound(sale.services)


def test_entries_settled_but_not_acknowledged_are_counted_once(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issued and rejected ones: they leave the stream, and their worker's late acknowledgement changes nothing."""
    sale = open_sale(services, total_quantity=2)
    sale.claim_each(["ann", "bob"])
    change_template(services.engine, sale.template_id, total_quantity=1)
    with dies_at(monkeypatch, "settle.after_commit"):
        sale.drain()

    sale.preheat()

    assert (0, 0, "1 1", "0 1") == (sale.stock, sale.queued, sale.taker("ann"), sale.taker("bob"))
    assert 0 == sale.drain()
    assert_sound(services)


def test_a_preheat_that_dies_before_the_swap_leaves_the_live_keys_as_they_were(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims went on meanwhile; the next preheat begins anew and leaves nothing of the dead one."""
    before = {key: value for key, value in state(sale).items() if b"shadow" not in key}
    with dies_at(monkeypatch, "preheat.before_swap"):
        sale.preheat()
    after = {key: value for key, value in state(sale).items() if b"shadow" not in key}
    sale.claim("dan")

    sale.preheat()

    assert before == after
    assert [] == sale.services.redis.keys("*shadow*")
    assert_sound(sale.services)


def test_a_preheat_rings_for_what_is_pending(sale: Sale, post: PostBox) -> None:
    """The bell was lost with Redis; with nothing pending there is nothing to ring for."""
    sale.preheat()
    rung = list(post.sent)
    sale.drain()
    post.sent.clear()

    sale.preheat()

    assert ([settle_claims(sale.template_id, 0)], []) == (rung, post.sent)


def test_a_change_that_reaches_the_gate_during_a_preheat_is_not_undone_by_it(
    sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preheat read the template before the pause: it finds the newer version, reads again, and keeps the pause."""

    def pause_meanwhile(_: str) -> None:
        if sale.books["status"] == "active":
            pause_template(sale.services, sale.template_id)

    monkeypatch.setattr("coupon_workers.claiming.preheat.crash_point", pause_meanwhile)
    sale.preheat()

    assert ClaimOutcome.PAUSED == sale.claim("dan").outcome
    assert str(sale.books["version"]).encode() == sale.services.redis.hget(sale.keys.meta, "version")


def test_a_gate_ahead_of_a_database_that_was_brought_back_from_a_copy_follows_it(sale: Sale) -> None:
    """The version the gate knows is lost for good: the preheat does not wait for it."""
    sale.services.redis.hset(sale.keys.meta, mapping={"version": 99, "total": 500})

    sale.preheat()

    assert str(sale.books["version"]).encode() == sale.services.redis.hget(sale.keys.meta, "version")
    assert_sound(sale.services)


def test_only_the_days_that_can_still_matter_are_counted(services: Services) -> None:
    """Yesterday, because a claim made before midnight may still be rejected; the day before no more."""
    sale = open_sale(services, per_user_daily_limit=5)
    sale.claim_each(["ann", "bob", "cat"])
    sale.drain()
    with services.engine.begin() as connection:
        for user, days in (("bob", 1), ("cat", 2)):
            connection.exec_driver_sql(
                f"UPDATE coupon SET claimed_at = claimed_at - interval '{days} days' WHERE user_id = '{user}'"
            )
    services.redis.flushall()

    sale.preheat()

    counted = [user for key in services.redis.keys(f"{sale.keys.day_prefix}*") for user in services.redis.hkeys(key)]
    assert [b"ann", b"bob"] == sorted(counted)


def test_more_coupons_than_a_page_are_all_loaded(services: Services) -> None:
    """Two and a half pages."""
    sale = open_sale(services, total_quantity=3_000, per_user_limit=1)
    with services.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from,"
            " valid_to, source, claimed_at) SELECT 'u' || n, n, 7001, 1, 'r', 1, now(), now() + interval '1 day',"
            " 'claim', now() FROM generate_series(1, 2500) n"
        )
        connection.exec_driver_sql("UPDATE coupon_template SET issued_quantity = 2500")

    assert 2_500 == sale.preheat()
    assert (500, 2_500) == (sale.stock, services.redis.hlen(sale.keys.takers))
    assert ClaimOutcome.LIMIT_REACHED == sale.claim("u2500", "r2").outcome


def test_a_template_that_is_not_there_or_was_never_published_is_not_preheated(services: Services) -> None:
    """Whoever asked is told which."""
    insert_template(services.engine, status="draft")

    with pytest.raises(Conflict, match="draft") as conflict:
        preheat_template(services, 7_001)
    with pytest.raises(NotFound):
        preheat_template(services, 7_002)

    assert "INVALID_STATUS" == conflict.value.code
    assert [] == services.redis.keys("cw:{t*")


def test_a_template_that_has_ended_is_warm_for_late_replays(services: Services) -> None:
    """Its window says that it is over."""
    now = services.clock()
    sale = open_sale(services, claim_start=now - timedelta(days=2), claim_end=now - timedelta(days=1))

    assert ClaimOutcome.ENDED == sale.claim("ann").outcome
