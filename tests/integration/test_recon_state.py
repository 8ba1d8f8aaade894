"""The state of coupons is reconciled: each thing that contradicts another is found once, as of a moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from coupon_workers.errors import Conflict
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.order_scene import OrderScene, order_scene
from tests.support.order_shop import OrderShop, ShopClock
from tests.support.recon_reading import differences, found, only, repair, work


@pytest.fixture
def scene(services: Services) -> OrderScene:
    """One order of each kind, some seconds ago; the coupon ``free`` was never on one."""
    scene = order_scene(OrderShop(services, ShopClock(utc_now())), unused=["free"])
    scene.shop.clock.pass_by(seconds=10)
    return scene


def close_refused(scene: OrderScene) -> None:
    """The order centre closed the order, and its event came to nothing."""
    scene.shop.tell("e2", "held2", "closed", scene.shop.clock.now)
    scene.sql(
        "UPDATE order_event SET order_no = 'held', state = 'refused', code = 'VALIDATION_FAILED' WHERE event_id = 'e2'"
    )


def close_waits(scene: OrderScene) -> None:
    """The event of the order's end still waits, though the order is known."""
    scene.shop.tell("e2", "held2", "closed", scene.shop.clock.now)
    scene.sql("UPDATE order_event SET order_no = 'held' WHERE event_id = 'e2'")
    scene.shop.clock.pass_by(minutes=6)


def run_out(scene: OrderScene) -> None:
    """No sweep comes."""
    scene.shop.clock.pass_by(minutes=31)


def outlive(scene: OrderScene) -> None:
    """The coupons' validity passes, and no sweep comes."""
    scene.shop.sweep()
    scene.sql("UPDATE coupon SET valid_to = :now, updated_at = :now WHERE status = 'unused'", now=scene.shop.clock.now)
    scene.shop.clock.pass_by(hours=1, minutes=1)
    scene.shop.sweep()


REPAIRED: dict[str, tuple[Callable[[OrderScene], object], str, RepairName]] = {
    "an order released that still holds its coupon": (
        lambda s: s.sql("UPDATE coupon_order SET status = 'released', released_at = now() WHERE order_no = 'held'"),
        "lock_of_closed_order",
        RepairName.RELEASE_ORDER,
    ),
    "an order closed by an event that was refused": (close_refused, "lock_of_closed_order", RepairName.RELEASE_ORDER),
    "an order closed by an event that waits": (close_waits, "lock_of_closed_order", RepairName.RELEASE_ORDER),
    "a lock past its deadline": (run_out, "lock_overdue", RepairName.RELEASE_ORDER),
    "a lock past its deadline of a closed order": (
        lambda s: (close_refused(s), run_out(s)),
        "lock_of_closed_order",
        RepairName.RELEASE_ORDER,
    ),
    "a coupon that its order let go without it": (
        lambda s: s.sql("UPDATE coupon_order SET status = 'released', released_at = now() WHERE order_no = 'held'").sql(
            "UPDATE coupon_use SET state = 'released' WHERE order_no = 'held'"
        ),
        "coupon_held_by_no_order",
        RepairName.FREE_COUPON,
    ),
    "coupons past their validity": (outlive, "expired_not_ended", RepairName.SWEEP_EXPIRED),
}

LEFT_TO_PEOPLE: dict[str, tuple[Callable[[OrderScene], object], str]] = {
    "a status that is not its history's end": (
        lambda s: s.sql("UPDATE coupon SET status = 'expired' WHERE coupon_id = :free"),
        "status_differs",
    ),
    "a locked coupon that no step has locked": (
        lambda s: s.sql("UPDATE coupon SET status = 'locked', order_no = 'x' WHERE coupon_id = :free"),
        "status_differs",
    ),
    "a version that is not its history's": (
        lambda s: s.sql("UPDATE coupon SET version = version + 1 WHERE coupon_id = :held"),
        "status_differs",
    ),
    "a coupon that is gone": (
        lambda s: s.sql("DELETE FROM coupon WHERE coupon_id = :free").sql(
            "UPDATE coupon_template SET issued_quantity = issued_quantity - 1"
        ),
        "status_differs",
    ),
    "a step lost at the end": (
        lambda s: s.sql("DELETE FROM coupon_flow WHERE coupon_id = :held AND flow_no = 2"),
        "status_differs",
    ),
    "a step lost in between": (
        lambda s: s.sql("DELETE FROM coupon_flow WHERE coupon_id = :back AND flow_no = 3"),
        "history_broken",
    ),
    "a history lost": (lambda s: s.sql("DELETE FROM coupon_flow WHERE coupon_id = :free"), "history_broken"),
    "a step that is no move": (
        lambda s: s.sql("UPDATE coupon_flow SET action = 'expire' WHERE coupon_id = :held AND flow_no = 2"),
        "history_broken",
    ),
    "a step that leaves another status": (
        lambda s: s.sql("UPDATE coupon_flow SET from_status = 'unused' WHERE coupon_id = :paid AND flow_no = 3 "),
        "history_broken",
    ),
    "a use lost of an order that stands": (
        lambda s: s.sql("DELETE FROM coupon_use WHERE order_no = 'held'"),
        "coupon_held_by_no_order",
    ),
    "a redeemed coupon without its use": (
        lambda s: s.sql("DELETE FROM coupon_use WHERE order_no = 'paid'"),
        "redeemed_by_no_order",
    ),
    "a redeemed coupon without its order": (
        lambda s: s.sql("DELETE FROM coupon_order WHERE order_no = 'paid'"),
        "redeemed_by_no_order",
    ),
    "a live use of a free coupon": (
        lambda s: s.sql("UPDATE coupon_use SET state = 'locked' WHERE order_no = 'letgo'"),
        "use_differs",
    ),
    "a use redeemed while its coupon is locked": (
        lambda s: s.sql("UPDATE coupon_use SET state = 'redeemed' WHERE order_no = 'held'"),
        "use_differs",
    ),
    "a use of an older lock that is still live": (
        lambda s: s.sql("UPDATE coupon_order SET lock_no = 2 WHERE order_no = 'held'"),
        "use_differs",
    ),
    "a coupon that another order holds": (
        lambda s: s.sql("UPDATE coupon SET order_no = 'other' WHERE coupon_id = :held"),
        "use_differs",
    ),
    "a free coupon that an order names": (
        lambda s: s.sql("UPDATE coupon SET order_no = 'letgo' WHERE coupon_id = :letgo"),
        "use_differs",
    ),
}

MONEY: dict[str, tuple[Callable[[OrderScene], object], tuple[str, int, int]]] = {
    "a discount that was not booked": (
        lambda s: s.sql("DELETE FROM ledger_entry WHERE order_no = 'paid'"),
        ("booking_missing", 2_000, 2_000),
    ),
    "a reversal that was not booked": (
        lambda s: s.sql("DELETE FROM ledger_entry WHERE order_no = 'part' AND kind = 'refund'"),
        ("booking_missing", 667, -667),
    ),
    "a discount booked otherwise": (
        lambda s: s.sql("UPDATE ledger_entry SET amount_minor = 1990 WHERE order_no = 'paid'"),
        ("booking_differs", 10, 10),
    ),
}


def test_orders_in_every_state_have_no_differences(scene: OrderScene) -> None:
    """Also as of any moment before; what was examined are the coupons."""
    reading = state_differences(scene.shop.services, scene.shop.clock.now, None)

    assert (6, []) == (reading.examined, reading.differences)
    assert [] == found(scene.shop.services)
    assert [] == found(scene.shop.services, scene.shop.clock.now - timedelta(days=1))


@pytest.mark.parametrize("damage", REPAIRED)
def test_what_can_be_mended_is_found_once_and_is_gone_after_its_repair(scene: OrderScene, damage: str) -> None:
    """The same when it is read twice; the repair, done twice, leaves no invariant broken."""
    act, finding_class, proposed = REPAIRED[damage]
    act(scene)
    services = scene.shop.services
    difference = only(scene.shop.services)

    again = differences(services)
    for _ in range(2):
        repair(services, difference)
    work(services)

    assert (finding_class, proposed) == (difference.finding_class, difference.repair)
    assert [difference] == again
    assert [] == found(services)
    assert set() == scene.broken()


@pytest.mark.parametrize("damage", LEFT_TO_PEOPLE)
def test_what_nobody_can_mend_is_found_once(scene: OrderScene, damage: str) -> None:
    """One root, one difference, the same when it is read again."""
    act, finding_class = LEFT_TO_PEOPLE[damage]
    act(scene)

    difference = only(scene.shop.services)

    assert (finding_class, None) == (difference.finding_class, difference.repair)
    assert [difference] == differences(scene.shop.services)


@pytest.mark.parametrize("damage", MONEY)
def test_what_the_ledger_lacks_is_told_with_its_sign(scene: OrderScene, damage: str) -> None:
    """The amount at stake, in its currency; a person books it."""
    act, (finding_class, amount, missing) = MONEY[damage]
    act(scene)

    difference = only(scene.shop.services)

    assert (finding_class, amount, "CNY") == (
        difference.finding_class,
        difference.amount_minor,
        difference.currency,
    )
    assert (missing, RepairName.BOOK_ADJUSTMENT) == (difference.evidence["missing_minor"], difference.repair)


def test_a_booking_of_another_order_is_a_difference_of_both(scene: OrderScene) -> None:
    """One order lacks it, the other has it too much: together they are nothing."""
    scene.sql("UPDATE ledger_entry SET order_no = 'gone' WHERE order_no = 'paid'")

    missing = {each.order_no: each.evidence["missing_minor"] for each in differences(scene.shop.services)}

    assert {"paid": 2_000, "gone": -2_000} == missing


def test_an_adjustment_ends_what_the_ledger_lacks(scene: OrderScene) -> None:
    """What is booked in its place counts."""
    scene.sql("DELETE FROM ledger_entry WHERE order_no = 'paid'")

    scene.sql(
        "INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account,"
        " credit_account, amount_minor, currency, business_date, at, operator, reason)"
        " SELECT user_id, order_no, coupon_id, template_id, 'adjustment', 'adj-1', 'coupon_expense', 'adjustment',"
        " 2000, 'CNY', date '2026-11-11', :now, 'key:finance', 'it was not booked'"
        " FROM coupon_use WHERE order_no = 'paid'",
        now=scene.shop.clock.now,
    )

    assert [] == found(scene.shop.services)


def test_what_has_moved_since_is_not_judged_as_it_stands_now(scene: OrderScene) -> None:
    """As of a moment before its last move nothing is said of a coupon, and it is named; as of now it differs."""
    before = scene.shop.clock.now
    scene.shop.clock.pass_by(minutes=1)
    scene.shop.lock("later", [scene.coupons["free"]])
    scene.shop.clock.pass_by(seconds=10)
    scene.sql("UPDATE coupon SET version = 7 WHERE coupon_id = :free")
    services = scene.shop.services

    then = state_differences(services, before, None)
    now = state_differences(services, scene.shop.clock.now, None)

    subject = f"coupon {scene.coupons['free']} user ann"
    assert ([], frozenset({subject})) == (then.differences, then.unjudged)
    assert [("status_differs", subject)] == [(each.finding_class, each.subject) for each in now.differences]


def test_a_history_that_broke_is_broken_as_of_every_later_moment(scene: OrderScene) -> None:
    """Steps have their instants: what has come after the moment changes nothing."""
    scene.sql("UPDATE coupon_flow SET action = 'expire' WHERE coupon_id = :letgo AND flow_no = 2")
    before = scene.shop.clock.now
    first = state_differences(scene.shop.services, before, None).differences
    scene.shop.clock.pass_by(minutes=1)

    scene.shop.lock("later", [scene.coupons["letgo"]])
    again = state_differences(scene.shop.services, before, None).differences

    assert ["history_broken"] == [each.finding_class for each in again]
    assert first[0].subject == again[0].subject


def test_a_coupon_that_is_held_by_now_is_not_freed(scene: OrderScene) -> None:
    """The order has locked again since it was found: the repair refuses, and nothing has changed."""
    REPAIRED["a coupon that its order let go without it"][0](scene)
    difference = only(scene.shop.services)
    scene.sql("UPDATE coupon_order SET status = 'locked', released_at = NULL WHERE order_no = 'held'")
    scene.sql("UPDATE coupon_use SET state = 'locked' WHERE order_no = 'held'")

    with pytest.raises(Conflict) as refusal:
        repair(scene.shop.services, difference)

    assert "CHANGED" == refusal.value.code
    assert set() == scene.broken()


def test_a_lock_that_was_taken_again_by_now_is_not_released(scene: OrderScene) -> None:
    """The sweep came first, and the buyer came back."""
    run_out(scene)
    difference = only(scene.shop.services)
    scene.shop.sweep()
    scene.shop.lock("held", [scene.coupons["held"]])

    with pytest.raises(Conflict) as refusal:
        repair(scene.shop.services, difference)

    assert "CHANGED" == refusal.value.code
    assert "locked" == scene.shop.status(scene.coupons["held"])
    assert set() == scene.broken()


def test_a_lock_whose_coupon_went_elsewhere_is_not_released(scene: OrderScene) -> None:
    """What became of the coupon comes first: the order would let go of what it does not hold."""
    run_out(scene)
    difference = only(scene.shop.services)
    scene.sql("UPDATE coupon SET status = 'revoked' WHERE order_no = 'held'")

    with pytest.raises(Conflict) as refusal:
        repair(scene.shop.services, difference)

    assert "CHANGED" == refusal.value.code
    assert [("locked",)] == scene.shop.rows("SELECT status FROM coupon_order WHERE order_no = 'held'")


def test_a_lock_that_was_paid_by_now_is_not_released(scene: OrderScene) -> None:
    """The payment came first."""
    run_out(scene)
    difference = only(scene.shop.services)
    scene.shop.pay("held", "pay-held", paid_at=scene.shop.clock.now - timedelta(minutes=30))

    with pytest.raises(Conflict) as refusal:
        repair(scene.shop.services, difference)

    assert "ALREADY_REDEEMED" == refusal.value.code
    assert set() == scene.broken()
