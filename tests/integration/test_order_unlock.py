"""A lock that an operator frees: its whole order lets go, once, and a payment that comes after all decides."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.errors import Conflict
from coupon_workers.runtime.services import Services
from tests.support.gift import at_once
from tests.support.order_books import refused_without_a_trace
from tests.support.order_shop import OrderShop
from tests.support.recon_reading import found
from tests.support.reissuing import reissue
from tests.support.sale import assert_sound

ROUNDS = 3
"""Who meets whom is up to the machine: once is not enough."""


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def audited(shop: OrderShop) -> list[tuple[str, str]]:
    """Subject and order of each lock that was freed."""
    return [
        (subject, order_no)
        for subject, order_no in shop.rows(
            "SELECT subject, after ->> 'order_no' FROM audit_log WHERE action = 'coupon.unlock' ORDER BY audit_id"
        )
    ]


def test_an_order_lets_go_of_all_that_it_holds(shop: OrderShop) -> None:
    """One of its coupons alone would leave an order that does not hold what it says; each can be locked again."""
    template = shop.template()
    first, second = shop.issue(template), shop.issue(template)
    shop.lock("o1", [first, second])

    shop.unlock(first)

    assert ("unused", "unused") == (shop.status(first), shop.status(second))
    assert ("released", "a complaint") == shop.rows("SELECT status, release_reason FROM coupon_order")[0]
    assert [(f"coupon:{first}", "o1")] == audited(shop)
    assert "locked" == shop.lock("o2", [second])["status"]
    assert [] == found(shop.services)
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_two_operators_and_a_payment_at_once_end_redeemed(shop: OrderShop, number: int) -> None:
    """The lock is freed once or not at all; the money came, and the coupon was free."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    heard = at_once(*[partial(shop.unlock, coupon)] * 2, partial(shop.pay, "o1"))

    assert {"COUPON_NOT_AVAILABLE"} >= {each.code for each in heard[:2] if isinstance(each, Exception)}
    assert "redeemed" == heard[2]["status"]
    steps = [action for action, _, _ in shop.flow(coupon)]
    assert steps in (["lock", "redeem"], ["lock", "release", "redeem"])
    assert steps.count("release") == len(audited(shop))
    assert (2_000, 1) == (shop.expense(), len(shop.ledger()))
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_lock_that_is_freed_and_taken_at_once_stays_with_one(shop: OrderShop, number: int) -> None:
    """Another order waits for the coupon: it has it, or hears who has."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    heard = at_once(*[partial(shop.unlock, coupon)] * 2, *[partial(shop.lock, f"o{n}", [coupon]) for n in (2, 3)])

    refusals = {each.code for each in heard[2:] if isinstance(each, Conflict)}
    assert {"LOCKED_BY_ORDER"} >= refusals
    held = shop.rows("SELECT order_no FROM coupon WHERE order_no IS NOT NULL")
    assert held == shop.rows("SELECT order_no FROM coupon_order WHERE status = 'locked'")
    assert_sound(shop.services)


@pytest.mark.parametrize("swept", [False, True])
def test_a_payment_made_in_time_has_what_was_freed_while_it_lasts(shop: OrderShop, swept: bool) -> None:
    """The coupon's validity ended under the lock: paid before it was freed, it is redeemed until the sweep ends it."""
    coupon = shop.issue(shop.template(), valid_to=shop.clock.now + timedelta(minutes=5))
    shop.lock("o1", [coupon])
    paid_at = shop.clock.pass_by(minutes=4)
    shop.clock.pass_by(minutes=2)
    shop.unlock(coupon)
    if swept:
        expire_coupons(shop.services, shop.clock.now)
    shop.clock.pass_by(minutes=1)

    if swept:
        code, evidence = refused_without_a_trace(shop, lambda: shop.pay("o1", paid_at=paid_at))
        assert ("LOCK_EXPIRED", "expired") == (code, evidence["coupon_status"])
    else:
        assert "redeemed" == shop.pay("o1", paid_at=paid_at)["status"]
    assert_sound(shop.services)


def test_a_coupon_that_was_replaced_pays_for_nothing_any_more(shop: OrderShop) -> None:
    """Its validity ended under the lock, and no sweep has come yet: a payment made in time finds its place taken."""
    coupon = shop.issue(shop.template(), valid_to=shop.clock.now + timedelta(minutes=5))
    shop.lock("o1", [coupon])
    paid_at = shop.clock.pass_by(minutes=4)
    shop.clock.pass_by(minutes=2)
    shop.unlock(coupon)
    reissue(shop.services, shop.template(), "ann", "ticket-1", coupon)

    code, evidence = refused_without_a_trace(shop, lambda: shop.pay("o1", paid_at=paid_at))

    assert ("LOCK_EXPIRED", "expired") == (code, evidence["coupon_status"])
    assert ("expire", "expired", None) == shop.flow(coupon)[-1]
    assert 0 == expire_coupons(shop.services, shop.clock.now)
    assert_sound(shop.services)


def test_the_latest_word_of_the_order_centre_counts(shop: OrderShop) -> None:
    """Closed and then paid, or closed before the order was locked: the lock stands."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    _heard(shop, "e0", "closed", shop.clock.now - timedelta(minutes=1))
    before_it = refused_without_a_trace(shop, lambda: shop.unlock(coupon, force=False))
    _heard(shop, "e1", "closed", shop.clock.now + timedelta(seconds=1))
    _heard(shop, "e2", "paid", shop.clock.now + timedelta(seconds=2))

    paid_after = refused_without_a_trace(shop, lambda: shop.unlock(coupon, force=False))

    until = shop.clock.now + timedelta(minutes=15)
    assert before_it == paid_after == ("LOCK_STANDS", {"order_no": "o1", "locked_until": until})


def test_from_the_instant_of_the_lock_on_a_word_counts_and_at_its_deadline_none_is_needed(shop: OrderShop) -> None:
    """Neither the closing of the same moment nor the deadline itself has to be forced."""
    closed, overdue = shop.issue(shop.template()), shop.issue(shop.template())
    shop.lock("o1", [closed])
    shop.lock("o2", [overdue])
    _heard(shop, "e1", "closed", shop.clock.now)

    at_once = shop.unlock(closed, force=False)
    shop.clock.pass_by(minutes=15)

    assert {"status": "unused"} == at_once == shop.unlock(overdue, force=False)
    assert_sound(shop.services)


def _heard(shop: OrderShop, event: str, kind: str, at: datetime) -> None:
    """An event that waits, whatever for."""
    shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state,"
        " received_at, tried_at) VALUES ('ann', :event, 'o1', :kind, :at, '{}', '', 'waiting', now(), now())",
        event=event,
        kind=kind,
        at=at,
    )
