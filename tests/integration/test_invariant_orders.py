"""The checker bites on orders: each promise is broken on purpose, and exactly what was broken is reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.runtime.services import Services
from tests.support.order_scene import OrderScene, order_scene
from tests.support.order_shop import OrderShop

BRIEFLY_S = 0.3


@pytest.fixture
def scene(services: Services) -> OrderScene:
    """One order of each kind."""
    return order_scene(OrderShop(services))


def test_orders_in_every_state_break_no_rule(scene: OrderScene) -> None:
    """Also when a coupon goes on to another order, and an order locks another coupon than before."""
    scene.shop.lock("letgo", [scene.coupons["back"]])
    scene.shop.pay_directly("next", [scene.coupons["letgo"]])

    report = check_all(scene.shop.services, patience_s=BRIEFLY_S)

    expected = {"orders": 6, "refunds": 3, "ledger_entries": 7, "waiting_events": 1}
    assert report.holds, report.breaches
    assert expected == {name: report.facts[name] for name in expected}


BREAKS: dict[str, tuple[Callable[[OrderScene], object], set[str]]] = {
    "a coupon that another order holds": (
        lambda s: s.sql("UPDATE coupon SET order_no = 'other' WHERE coupon_id = :held"),
        {"live_use"},
    ),
    "a free coupon that an order names": (
        lambda s: s.sql("UPDATE coupon SET order_no = 'letgo' WHERE coupon_id = :letgo"),
        {"live_use"},
    ),
    "a use lost": (
        lambda s: s.sql("DELETE FROM coupon_use WHERE order_no = 'held'"),
        {"live_use", "order_use", "order_money", "use_history"},
    ),
    "a live use of a free coupon": (
        lambda s: s.sql("UPDATE coupon_use SET state = 'locked' WHERE order_no = 'letgo'"),
        {"live_use", "order_use", "use_history"},
    ),
    "a use redeemed while its coupon is locked": (
        lambda s: s.sql("UPDATE coupon_use SET state = 'redeemed' WHERE order_no = 'held'"),
        {"live_use", "order_use", "use_history", "ledger_use"},
    ),
    "an order released that still holds its coupon": (
        lambda s: s.sql("UPDATE coupon_order SET status = 'released' WHERE order_no = 'held'"),
        {"order_use"},
    ),
    "a use of an older lock that is still live": (
        lambda s: s.sql("UPDATE coupon_order SET lock_no = 2 WHERE order_no = 'held'"),
        {"order_use", "order_money"},
    ),
    "a discount that was not booked": (
        lambda s: s.sql("DELETE FROM ledger_entry WHERE order_no = 'paid'"),
        {"ledger_use"},
    ),
    "an order lost": (
        lambda s: s.sql("DELETE FROM coupon_order WHERE order_no = 'paid'"),
        {"order_use", "ledger_use"},
    ),
    "a coupon returned of an order that is not": (
        lambda s: s.sql("UPDATE coupon_use SET state = 'returned' WHERE order_no = 'part'"),
        {"live_use", "order_use", "use_history"},
    ),
    "a step on an order that never had the coupon": (
        lambda s: s.sql("UPDATE coupon_flow SET order_no = 'other' WHERE coupon_id = :held AND action = 'lock'"),
        {"use_history"},
    ),
    "a discount that its shares do not sum to": (
        lambda s: s.sql("UPDATE coupon_use SET allocations = allocations - 1 WHERE order_no = 'held'"),
        {"order_money"},
    ),
    "a share below zero": (
        lambda s: s.sql(
            """UPDATE coupon_use SET allocations = '[{"line_id": "1", "amount": 2001}, {"line_id": "2", "amount": -1}]'
                WHERE order_no = 'held'"""
        ),
        {"order_money"},
    ),
    "a share above its line": (
        lambda s: s.sql(
            """UPDATE coupon_order SET lines = jsonb_set(jsonb_set(lines, '{0,unit_price}', '14900'), '{1,unit_price}',
                '100') WHERE order_no = 'held'"""
        ),
        {"order_money"},
    ),
    "a share of a line that the order does not have": (
        lambda s: s.sql(
            """UPDATE coupon_use SET allocations = '[{"line_id": "7", "amount": 2000}]' WHERE order_no = 'held'"""
        ),
        {"order_money"},
    ),
    "an order that is less by another amount than its coupons": (
        lambda s: s.sql("UPDATE coupon_order SET (discount_minor, payable_minor) = (1999, 13001)"),
        {"order_money", "refund_money"},
    ),
    "an order whose lines cost something else": (
        lambda s: s.sql(
            "UPDATE coupon_order SET (subtotal_minor, payable_minor) = (15001, 13001) WHERE order_no = 'held'"
        ),
        {"order_money"},
    ),
    "a refund that the order does not count": (
        lambda s: s.sql("UPDATE coupon_order SET refunded_minor = refunded_minor - 1 WHERE order_no = 'part'"),
        {"refund_money"},
    ),
    "a refund lost": (
        lambda s: s.sql("DELETE FROM coupon_refund WHERE refund_no = 'ref-1'"),
        {"refund_money"},
    ),
    "a refund of nobody's order": (
        lambda s: s.sql(
            "INSERT INTO coupon_refund SELECT user_id, 'ref-9', 'other', 1, fingerprint, 0, 0, '[]', '[]', at"
            " FROM coupon_refund WHERE refund_no = 'ref-1'"
        ),
        {"refund_money"},
    ),
    "a refund of another worth than its pieces": (
        lambda s: s.sql("UPDATE coupon_refund SET refund_minor = refund_minor - 1 WHERE refund_no = 'ref-part'").sql(
            "UPDATE coupon_order SET refunded_minor = refunded_minor - 1 WHERE order_no = 'part'"
        ),
        {"refund_money"},
    ),
    "more pieces returned than were sold": (
        lambda s: s.sql(
            """UPDATE coupon_refund SET returned = '[{"line_id": "2", "quantity": 2}]' WHERE refund_no = 'ref-part'"""
        ),
        {"refund_money"},
    ),
    "an order called fully returned that is not": (
        lambda s: s.sql("UPDATE coupon_order SET fully_returned_at = updated_at WHERE order_no = 'part'"),
        {"refund_money"},
    ),
    "an order returned and not called so": (
        lambda s: s.sql("UPDATE coupon_order SET fully_returned_at = NULL WHERE order_no = 'back'"),
        {"refund_money", "order_use"},
    ),
    "a reversal that no refund knows": (
        lambda s: s.sql("UPDATE coupon_use SET reversed_minor = reversed_minor + 1 WHERE order_no = 'part'"),
        {"refund_money", "ledger_use"},
    ),
    "a redemption booked twice": (
        lambda s: s.sql(
            "INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account,"
            " credit_account, amount_minor, currency, business_date, at)"
            " SELECT user_id, order_no, coupon_id, template_id, kind, 'again', debit_account, credit_account,"
            " amount_minor, currency, business_date, at FROM ledger_entry WHERE order_no = 'paid'"
        ),
        {"ledger_use"},
    ),
    "a booking lost": (
        lambda s: s.sql("DELETE FROM ledger_entry WHERE order_no = 'back' AND kind = 'refund'"),
        {"ledger_use"},
    ),
    "a booking without a use": (
        lambda s: s.sql("UPDATE ledger_entry SET order_no = 'other' WHERE order_no = 'paid'"),
        {"ledger_use"},
    ),
    "a booking in another currency": (
        lambda s: s.sql("UPDATE ledger_entry SET currency = 'JPY' WHERE order_no = 'paid'"),
        {"ledger_use"},
    ),
    "a booking on another template": (
        lambda s: s.sql("UPDATE ledger_entry SET template_id = 4711 WHERE order_no = 'paid'"),
        {"ledger_use"},
    ),
    "a booking the wrong way round": (
        lambda s: s.sql(
            "UPDATE ledger_entry SET (debit_account, credit_account) = (credit_account, debit_account)"
            " WHERE order_no = 'paid'"
        ),
        {"ledger_use"},
    ),
    "a booking of another day": (
        lambda s: s.sql("UPDATE ledger_entry SET business_date = business_date + 1 WHERE order_no = 'paid'"),
        {"ledger_use"},
    ),
    "a lock that nobody lets go": (lambda s: s.shop.clock.pass_by(minutes=31), {"overdue_order"}),
    "an event that waits for ever": (
        lambda s: (s.shop.release("held"), s.shop.clock.pass_by(hours=24.5)),
        {"overdue_order"},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_promise_is_seen(scene: OrderScene, name: str) -> None:
    """What was broken is reported, and nothing else."""
    break_promise, expected = BREAKS[name]

    break_promise(scene)

    assert expected == scene.broken(patience_s=BRIEFLY_S)


def test_a_lock_that_is_only_just_overdue_is_the_sweeps(scene: OrderScene) -> None:
    """Workers that were away have some minutes to catch up."""
    scene.shop.clock.pass_by(minutes=29)

    assert set() == scene.broken(patience_s=BRIEFLY_S)
