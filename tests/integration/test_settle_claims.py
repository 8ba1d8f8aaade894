"""Settling: accepted claims become coupons with their history, once, however often they are delivered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.settlement import drain, settle_batch
from coupon_workers.runtime.clock import from_ms
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import settle_claims
from tests.conftest import PostBox
from tests.support.redis_dump import restore, snapshot
from tests.support.sale import Sale, assert_sound, open_sale


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, two a user."""
    return open_sale(services, per_user_limit=2)


def test_an_accepted_claim_becomes_a_coupon_under_its_own_number(sale: Sale) -> None:
    """With its request, channel and number, valid from the instant of the claim."""
    claim_id = sale.claim("ann", "order 1", channel="app").claim_id
    accepted_ms = int(sale.services.redis.hget(sale.keys.claims, str(claim_id)) or 0)

    assert 1 == sale.drain()

    coupon = sale.rows(
        "SELECT coupon_id, user_id, request_id, claim_seq, batch_no, status, version, source, channel,"
        " template_version, claimed_at, valid_from, valid_to, order_no FROM coupon WHERE template_id = :template_id"
    )
    at = from_ms(accepted_ms)
    expected = (claim_id, "ann", "order 1", 1, "", "unused", 1, "claim", "app", 1, at, at, at + timedelta(days=7), None)
    assert [expected] == coupon


def test_a_coupon_has_its_first_flow_row_and_an_event_to_tell(sale: Sale) -> None:
    """Written in the same transaction."""
    claim_id = sale.claim("ann").claim_id

    sale.drain()

    flow = sale.rows("SELECT coupon_id, flow_no, action, from_status, to_status, operator, request_id FROM coupon_flow")
    outbox = sale.rows("SELECT event, user_id, template_id, coupon_id, delivered_at FROM outbox")
    assert [(claim_id, 1, "issue", None, "unused", "claim", "r1")] == flow
    assert [("coupon.issued", "ann", sale.template_id, claim_id, None)] == outbox


def test_a_template_that_does_not_notify_its_users_tells_webhooks_all_the_same(services: Services) -> None:
    """The event is written; that users do not hear of it is the relay's to see to."""
    sale = open_sale(services, notify=False)
    sale.claim("ann")
    sale.drain()

    assert (1, [("coupon.issued",)]) == (len(sale.coupons()), sale.rows("SELECT event FROM outbox"))


def test_settling_moves_the_books_and_leaves_the_gate_as_the_claims_did(sale: Sale) -> None:
    """Issued rises, stock and counts stay; nothing is queued any more."""
    sale.claim_each(["ann", "bob", "cat"])

    assert 3 == sale.drain()

    assert (3, 0) == (sale.books["issued_quantity"], sale.books["rejected_quantity"])
    assert (7, 0, "1 1") == (sale.stock, sale.queued, sale.taker("ann"))
    assert 0 == sale.services.redis.hlen(sale.keys.claims)
    assert_sound(sale.services)


def test_a_drain_takes_the_bell_away_when_nothing_is_left(sale: Sale) -> None:
    """The next claim rings again."""
    first = sale.claim("ann")

    sale.drain()

    assert (True, True) == (first.ring, sale.claim("bob").ring)


def test_an_empty_stream_is_nothing_to_settle(sale: Sale) -> None:
    """A doubled bell costs nothing."""
    assert (0, 0) == (sale.drain(), sale.drain())


def test_claims_that_are_delivered_again_are_known_and_only_acknowledged(sale: Sale) -> None:
    """The worker's acknowledgement was lost: the same entries come again, with new ones among them."""
    sale.claim_each(["ann", "bob"])
    before = snapshot(sale.services.redis)
    sale.drain()
    coupons = sale.coupons()
    restore(sale.services.redis, before)
    late = sale.claim("cat").claim_id

    assert 3 == sale.drain()

    assert coupons | {late: "cat"} == sale.coupons()
    assert (7, 3, "1 1") == (sale.stock, sale.books["issued_quantity"], sale.taker("ann"))
    assert 3 == len(sale.rows("SELECT 1 FROM coupon_flow"))
    assert 3 == len(sale.rows("SELECT 1 FROM outbox"))
    assert_sound(sale.services)


def test_every_text_a_claim_may_bear_is_stored_as_it_is(services: Services) -> None:
    """Quotes, braces, backslashes, commas, NULL, letters of any script."""
    sale = open_sale(services, total_quantity=50)
    texts = ['a"b', "a\\b", "{a,b}", "NULL", "null", "''", "a,b", "%s", ":x", "張偉", "é", "🎟", "\\N", "$1", "--"]
    for user in texts:
        sale.claim(user, f"{user} {user}")

    sale.drain()

    stored = sale.rows("SELECT user_id, request_id FROM coupon WHERE template_id = :template_id")
    assert {(user, f"{user} {user}") for user in texts} == set(stored)
    assert_sound(services)


@pytest.fixture
def small(services: Services) -> Services:
    """Services that settle four claims in a transaction at most."""
    return replace(services, settings=services.settings.model_copy(update={"settle_batch": 4}))


def test_more_than_a_batch_is_settled_batch_by_batch(small: Services) -> None:
    """The oldest first, until nothing is left."""
    sale = open_sale(small, total_quantity=20)
    claim_ids = sale.claim_each(f"u{number}" for number in range(10))

    first = settle_batch(small, BucketKeys(sale.template_id))
    settled_first = set(sale.coupons())

    assert (4, set(claim_ids[:4])) == (first, settled_first)
    assert (6, set(claim_ids)) == (sale.drain(), set(sale.coupons()))


def test_a_drain_whose_turn_is_over_hands_over_to_a_new_message(small: Services, post: PostBox) -> None:
    """Templates take turns, and a shut-down is short."""
    sale = open_sale(small, total_quantity=20)
    sale.claim_each(f"u{number}" for number in range(10))

    settled = drain(small, sale.template_id, 0, turn_s=0)

    assert 4 == settled
    assert [settle_claims(sale.template_id, 0)] == post.sent
    assert 1 == small.redis.exists(sale.keys.bell)
    assert 6 == small.redis.xlen(sale.keys.pending)


def test_a_second_drain_leaves_the_bucket_to_the_first(sale: Sale) -> None:
    """It does not wait: one batch at a time is as fast, and the other is at work."""
    sale.claim("ann")
    with sale.services.engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({sale.template_id})")
        assert 0 == sale.drain()

    assert 1 == sale.drain()


def test_a_channel_that_is_not_named_is_none(sale: Sale) -> None:
    """Not the empty text."""
    sale.claim("ann")
    sale.drain()

    assert [(None,)] == sale.rows("SELECT channel FROM coupon")
