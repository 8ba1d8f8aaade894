"""The plans of the readers beside many coupons: what is rare is found by an index, the whole is read in one pass."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import TextClause, text

from coupon_workers.checking.reading import snapshot
from coupon_workers.reconciliation import lock_differences, state_sums, stock_books
from coupon_workers.reconciliation.difference import MOST
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.order_shop import OrderShop, ShopClock

FILL = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT 'u' || n, n, :template, 1, 'r', 1, now(), now() + interval '9 days', 'claim', now()
      FROM generate_series(1, 60000) AS n;
    INSERT INTO coupon_order (user_id, order_no, status, fingerprint, currency, lines, subtotal_minor, discount_minor,
                              payable_minor, locked_until, payment_no, redeemed_at, created_at, updated_at)
    SELECT 'u' || n, 'o' || n, 'redeemed', '', 'CNY', '[]', 1, 0, 1, now(), 'p', now(), now(), now()
      FROM generate_series(1, 60000) AS n;
    INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, received_at,
                             tried_at)
    SELECT 'u' || n, 'e' || n, 'o' || n, 'closed', now(), '{}', '', 'applied', now(), now()
      FROM generate_series(1, 60000) AS n
"""
LATE = {"late": utc_now(), "most": 10_001}


@pytest.fixture
def crowd(services: Services) -> Services:
    """Sixty thousand coupons and orders, of which one is locked."""
    shop = OrderShop(services, ShopClock(utc_now()))
    template = shop.template(total_quantity=100_000)
    shop.execute(FILL, template=template)
    shop.lock("held", [shop.issue(template)])
    shop.execute("ANALYZE coupon, coupon_order, order_event")
    return services


def plan_of(services: Services, statement: TextClause, **named: object) -> str:
    """How PostgreSQL goes about it, in a reader's snapshot."""
    with snapshot(services) as connection:
        return "\n".join(connection.scalars(text(f"EXPLAIN {statement.text}"), named))


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (lock_differences.OVERDUE, "coupon_order_p0_locked_until_idx"),
        (lock_differences.CLOSED, "coupon_order_p0_locked_until_idx"),
        (lock_differences.UNENDED, "coupon_p0_valid_to_idx"),
    ],
)
def test_what_should_have_ended_is_found_by_an_index(crowd: Services, statement: TextClause, index: str) -> None:
    """However many have: nothing is read but what is late."""
    plan = plan_of(crowd, statement, **LATE)

    assert index in plan, plan
    assert not re.search(r"Seq Scan on (coupon|coupon_order|order_event)_p", plan), plan


@pytest.mark.parametrize("statement", [state_sums.COUPONS, state_sums.FLOW, state_sums.LIVE, state_sums.OWED])
def test_the_sums_are_one_pass_without_sort_or_join(crowd: Services, statement: TextClause) -> None:
    """Declared: whole tables are read, once each, in constant memory."""
    plan = plan_of(crowd, statement)

    assert not re.search(r"Join|Nested Loop|Sort|HashAggregate", plan), plan


def test_templates_are_counted_in_one_pass(crowd: Services) -> None:
    """Declared: each coupon is read once; groups are as many as templates."""
    plan = plan_of(crowd, text(stock_books.ALL_ROWS), warm=[1])

    assert not re.search(r"Join|Nested Loop|Index Scan", plan), plan


def test_a_store_that_is_broken_all_over_fills_no_memory(crowd: Services) -> None:
    """Sixty thousand coupons without a history: one more than a run lists is found, and it says that it is cut."""
    reading = state_differences(crowd, utc_now(), None)

    assert (True, MOST + 1) == (reading.truncated, len(reading.differences))
    assert {"history_broken"} == {each.finding_class for each in reading.differences}
