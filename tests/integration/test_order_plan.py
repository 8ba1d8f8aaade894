"""The plans of orders: by their indexes, in a table of a hundred thousand orders and two hundred thousand coupons."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from coupon_workers.orders import unlock_sweep
from coupon_workers.orders.unlock_sweep import CHUNK, settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.order_heap import heap
from tests.support.order_shop import START, OrderShop

ORDERS = 100_000
HOLDING = 1_000
OVERDUE = 300
USERS = 20_000
MORE_COUPONS = """
    INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                        source, claimed_at)
    SELECT user_id, coupon_id + 1000000000, template_id, claim_seq + 1000000, 'more-' || coupon_id, 1, valid_from,
           valid_to, source, claimed_at
      FROM coupon"""
TIMES = 7
"""PostgreSQL plans a prepared statement anew five times, and then may keep a plan for all arguments."""

ANALYZED = "coupon, coupon_order, coupon_use, coupon_flow, coupon_template"

_SCANS = text(
    "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname ~ '^coupon(_order|_use|_flow)?(_p?[0-9]+)?$'"
)


def sequential_scans(engine: Engine) -> dict[str, int]:
    """How often each part of the large tables has been read from end to end."""
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.commit()
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
        return {name: int(scans) for name, scans in connection.execute(_SCANS)}


@pytest.fixture
def shop(services: Services, one_connection: Engine) -> OrderShop:
    """A shop with the orders of years; one in a hundred holds its coupon still. The statistics are fresh."""
    shop = OrderShop(replace(services, engine=one_connection))
    heap(shop, ORDERS, status="released", until=START, users=USERS)
    heap(shop, HOLDING, status="locked", until=START + timedelta(minutes=30), users=USERS, name="holding-")
    heap(shop, OVERDUE, status="locked", until=START + timedelta(minutes=1), users=USERS, name="overdue-")
    shop.execute(MORE_COUPONS)
    with one_connection.begin() as connection:
        connection.execute(text(f"ANALYZE {ANALYZED}"))
    return shop


def test_no_call_of_an_order_reads_a_table_from_end_to_end(shop: OrderShop, one_connection: Engine) -> None:
    """Lock, redeem, refund, release, quotes, reading, events and both sweeps; and the plan of the sweep over locks
    names the index of deadlines."""
    ann, template = replace(shop, user="u7"), shop.template()
    coupons = [ann.issue(template) for _ in range(TIMES)]
    before = sequential_scans(one_connection)

    for number, coupon in enumerate(coupons):
        order = f"o{number}"
        ann.quote([coupon])
        ann.lock(order, [coupon])
        ann.tell(f"e{number}", order, "refunded", START, lines=[{"line_id": "2", "quantity": 1}])
        ann.pay(order)
        ann.refund(order, f"r{number}", [("1", 1)])
        ann.read(order)
        ann.quote()
        ann.lock(f"n{number}", [coupon])
        ann.release(f"n{number}")
        settle_met_events(ann.services)
    shop.clock.pass_by(minutes=1)
    with one_connection.begin() as connection:
        plan = "\n".join(
            connection.scalars(
                text(f"EXPLAIN {unlock_sweep._OVERDUE}"),
                {"now": shop.clock.now, "chunk": CHUNK, "reason": "timeout", "operator": "x", "request_id": None},
            )
        )
    swept = shop.sweep()

    after = sequential_scans(one_connection)
    assert {} == {name: scans - before[name] for name, scans in after.items() if scans != before[name]}
    assert OVERDUE == swept
    assert "locked_until_idx" in plan
    assert "Seq Scan on coupon" not in plan

    # And the counters do notice: the tables have eight parts each.
    shop.rows("SELECT count(*) FROM coupon WHERE channel = 'x'")
    shop.rows("SELECT count(*) FROM coupon_order WHERE channel = 'x'")
    noticed = sequential_scans(one_connection)
    assert 16 == sum(noticed[name] > after[name] for name in noticed)
