"""Calls of orders that meet at the same instant: one of them is first, and the others are answered precisely."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.runtime.services import Services
from tests.support.gift import at_once
from tests.support.order_race import code_of, lined_up
from tests.support.order_shop import CART, START, OrderShop
from tests.support.sale import assert_sound

ROUNDS = 3
"""Who meets whom is up to the machine: once is not enough."""

COUPON = "SELECT 1 FROM coupon WHERE coupon_id = :coupon"
ORDER = "SELECT 1 FROM coupon_order WHERE order_no = :order"


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_of_five_orders_one_locks_the_coupon(shop: OrderShop, number: int) -> None:
    """Four are told which one, and have neither a row nor a discount (CASES 1)."""
    coupon, template = shop.issue(shop.template()), shop.template()
    own = [shop.issue(template) for _ in range(5)]

    outcomes = at_once(*(partial(shop.lock, f"o{order}", [coupon, own[order]]) for order in range(5)))

    [winner] = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    expected = ("LOCKED_BY_ORDER", {"coupon_no": str(coupon), "order_no": winner["order_no"]})
    assert [expected] * 4 == [(loser.code, loser.evidence) for loser in losers]
    assert [(winner["order_no"], 4_000)] == shop.rows("SELECT order_no, discount_minor FROM coupon_order")
    assert [(winner["order_no"], 2)] == shop.rows("SELECT order_no, count(*) FROM coupon_use GROUP BY 1")
    assert ["locked"] + ["unused"] * 4 == sorted(shop.status(each) for each in own)
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("direct", [False, True], ids=["lock", "redeem"])
def test_an_order_that_is_sent_five_times_at_once_is_one_order(shop: OrderShop, direct: bool, number: int) -> None:
    """All get the same answer; one step, one booking."""
    coupon = shop.issue(shop.template())
    call = shop.pay_directly if direct else shop.lock

    outcomes = at_once(*[partial(call, "o1", [coupon])] * 5)

    assert [outcomes[0]] * 5 == outcomes
    assert 1 == len(shop.flow(coupon))
    assert (2_000 if direct else 0) == shop.expense()
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_an_order_that_is_sent_with_different_coupons_locks_one_cart(shop: OrderShop, number: int) -> None:
    """The others are told that it holds another one, though they have no coupon in common."""
    template = shop.template()
    coupons = [shop.issue(template) for _ in range(4)]

    outcomes = at_once(*(partial(shop.lock, "o1", [coupon]) for coupon in coupons))

    assert ["LOCKED_OTHERWISE"] * 3 + ["OK"] == sorted(map(code_of, outcomes))
    assert ["locked"] + ["unused"] * 3 == sorted(shop.status(coupon) for coupon in coupons)
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_two_orders_that_name_their_coupons_in_opposite_orders_do_not_block_each_other(
    shop: OrderShop, number: int
) -> None:
    """One gets all of them."""
    template = shop.template(type="cash", amount_minor=100, threshold_minor=0)
    coupons = [shop.issue(template) for _ in range(10)]

    outcomes = at_once(
        *(partial(shop.lock, f"o{order}", coupons[:: 1 if order % 2 else -1]) for order in range(4)),
    )

    assert ["LOCKED_BY_ORDER"] * 3 + ["OK"] == sorted(map(code_of, outcomes))
    assert_sound(shop.services)


def test_a_lock_that_takes_the_place_of_an_old_one_blocks_nobody_and_is_not_blocked(shop: OrderShop) -> None:
    """It lets go of one coupon and takes another; a second order wants both."""
    template = shop.template()
    first, second = shop.issue(template), shop.issue(template)
    shop.lock("o1", [second])
    shop.clock.pass_by(minutes=15)

    outcomes = lined_up(
        shop.services.engine,
        COUPON,
        partial(shop.lock, "o1", [first]),
        partial(shop.lock, "o2", [first, second]),
        coupon=second,
    )

    assert ["OK", "LOCKED_BY_ORDER"] == [code_of(outcome) for outcome in outcomes]
    assert ("locked", "unused") == (shop.status(first), shop.status(second))
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("by", ["call", "event", "events of one id"])
def test_paid_three_times_at_once_is_paid_once(shop: OrderShop, by: str, number: int) -> None:
    """One redemption, one booking, and three answers that say so (CASES 16)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    calls = {
        "call": [partial(shop.pay, "o1")] * 3,
        "event": [partial(shop.tell, f"e{n}", "o1", "paid", START, payment_no="pay-1") for n in range(3)],
        "events of one id": [partial(shop.tell, "e1", "o1", "paid", START, payment_no="pay-1")] * 3,
    }

    outcomes = at_once(*calls[by])

    states = {outcome["status" if by == "call" else "state"] for outcome in outcomes}
    assert {"redeemed" if by == "call" else "applied"} == states
    assert by == "event" or [outcomes[0]] * 3 == outcomes
    assert [("lock", "locked", "o1"), ("redeem", "redeemed", "o1")] == shop.flow(coupon)
    assert [("redeem", "coupon_expense", "order_discount", 2_000)] == shop.ledger()
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_one_refund_sent_twice_at_once_is_one_return(shop: OrderShop, number: int) -> None:
    """Both get the same answer (CASES 6)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.pay("o1")

    outcomes = at_once(*[partial(shop.refund, "o1", "ref-1")] * 2)

    assert outcomes[0] == outcomes[1]
    assert 13_000 == outcomes[0]["refund_amount"]
    assert [("ref-1", 13_000)] == shop.rows("SELECT refund_no, refund_minor FROM coupon_refund")
    assert (0, 2) == (shop.expense(), len(shop.ledger()))
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_of_two_full_returns_the_second_finds_nothing(shop: OrderShop, number: int) -> None:
    """Whichever it is (CASES 6)."""
    shop.lock("o1", [shop.issue(shop.template())])
    shop.pay("o1")

    outcomes = at_once(*(partial(shop.refund, "o1", f"ref-{refund}") for refund in range(2)))

    assert ["NOTHING_LEFT", "OK"] == sorted(map(code_of, outcomes))
    assert (1, 0) == (len(shop.rows("SELECT 1 FROM coupon_refund")), shop.expense())
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_refund_number_for_two_orders_at_once_belongs_to_one(shop: OrderShop, number: int) -> None:
    """The other is refused by its field, and returns under a number of its own."""
    template = shop.template()
    for order in ("o1", "o2"):
        shop.pay_directly(order, [shop.issue(template)])

    outcomes = at_once(*(partial(shop.refund, order, "ref-1") for order in ("o1", "o2")))

    assert ["InvalidInput", "OK"] == sorted(map(code_of, outcomes))
    [error] = [outcome for outcome in outcomes if isinstance(outcome, InvalidInput)]
    assert [("refund_no", "belongs to another refund")] == error.errors
    shop.refund("o2" if isinstance(outcomes[1], InvalidInput) else "o1", "ref-2")
    assert 0 == shop.expense()
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_five_cancels_at_once_release_once(shop: OrderShop, number: int) -> None:
    """The buyer, the operator, the feed and two sweeps (CASES 13)."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)

    outcomes = at_once(
        partial(shop.release, "o1", "buyer"),
        partial(shop.release, "o1", "operator"),
        partial(shop.tell, "e1", "o1", "closed", START),
        shop.sweep,
        shop.sweep,
    )

    assert {"OK"} == set(map(code_of, outcomes))
    assert [("lock", "locked", "o1"), ("release", "unused", "o1")] == shop.flow(coupon)
    assert_sound(shop.services)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_payment_and_a_cancel_at_once_end_redeemed(shop: OrderShop, number: int) -> None:
    """The cancel is refused, or the payment takes the coupon again: never neither, never half."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)

    paid, released, _ = at_once(partial(shop.pay, "o1"), partial(shop.release, "o1"), shop.sweep)

    assert "redeemed" == paid["status"] == shop.status(coupon)
    assert code_of(released) in ("OK", "ALREADY_REDEEMED")
    assert 2_000 == shop.expense()
    assert_sound(shop.services)


def test_a_payment_that_waits_for_the_sweep_takes_the_coupon_again(shop: OrderShop) -> None:
    """And a sweep that comes behind a payment steps around it."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)

    swept, paid = lined_up(shop.services.engine, COUPON, shop.sweep, partial(shop.pay, "o1"), coupon=coupon)

    assert (1, "redeemed") == (swept, paid["status"])
    assert ["lock", "release", "redeem"] == [action for action, _, _ in shop.flow(coupon)]
    assert_sound(shop.services)


def test_an_order_that_waits_for_the_sweep_gets_the_coupon(shop: OrderShop) -> None:
    """It is judged by what is there when its turn has come."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.clock.pass_by(minutes=15)

    swept, locked = lined_up(
        shop.services.engine, COUPON, shop.sweep, partial(shop.lock, "o2", [coupon]), coupon=coupon
    )

    assert (1, "o2") == (swept, locked["order_no"])
    assert_sound(shop.services)


def test_calls_of_one_order_come_one_after_the_other(shop: OrderShop) -> None:
    """Redeem, release, lock, refund and an event that arrive in this order are answered in this order."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])

    outcomes = lined_up(
        shop.services.engine,
        ORDER,
        partial(shop.pay, "o1"),
        partial(shop.release, "o1"),
        partial(shop.lock, "o1", [coupon]),
        partial(shop.refund, "o1", "ref-1"),
        partial(shop.pay, "o1", "pay-2"),
        order="o1",
    )

    assert ["OK", "ALREADY_REDEEMED", "ALREADY_REDEEMED", "OK", "ALREADY_REDEEMED"] == list(map(code_of, outcomes))
    assert ("unused", 0) == (shop.status(coupon), shop.expense())
    assert_sound(shop.services)


@pytest.mark.parametrize("late", [False, True], ids=["lock", "late payment"])
def test_coupons_that_end_at_the_moment_of_their_use_end_once(shop: OrderShop, late: bool) -> None:
    """Each of twenty is expired, or on its order; the refused order is told."""
    template = shop.template()
    coupons = [shop.issue(template, f"u{n}", valid_to=START + timedelta(seconds=1)) for n in range(20)]
    users = [replace(shop, user=f"u{n}") for n in range(20)]
    if late:
        for user, coupon in zip(users, coupons, strict=True):
            user.lock("o1", [coupon])
            user.release("o1")
    call = (lambda n: users[n].pay("o1")) if late else (lambda n: users[n].lock("o1", [coupons[n]], CART))
    end = partial(expire_coupons, shop.services, START + timedelta(seconds=1))

    outcomes = at_once(*(partial(call, n) for n in range(20)), end)

    used = [code_of(outcome) == "OK" for outcome in outcomes[:20]]
    status = "redeemed" if late else "locked"
    assert [status if each else "expired" for each in used] == [shop.status(coupon) for coupon in coupons]
    assert {"OK", "LOCK_EXPIRED" if late else "EXPIRED"} >= set(map(code_of, outcomes))
    assert sum(used) + outcomes[20] == 20
    assert_sound(shop.services)
