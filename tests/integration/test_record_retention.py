"""Events of unknown orders and audiences of batches are forgotten after ninety days, and nothing else of theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from coupon_workers.campaigns import batch_retention
from coupon_workers.campaigns.batch_failures import failures_csv
from coupon_workers.campaigns.batch_retention import KEEP as KEEP_AUDIENCES
from coupon_workers.campaigns.batch_retention import Forgotten, forget_audiences
from coupon_workers.checking.batch_books import batch_books
from coupon_workers.errors import NotFound
from coupon_workers.orders import event_retention
from coupon_workers.orders.event_retention import KEEP, forget_unknown_events
from coupon_workers.runtime.services import Services
from coupon_workers.schema import AudienceMember, BatchFailure, IssueBatch, IssueShard
from tests.support.broken_off import broken_off_at
from tests.support.order_shop import START, OrderShop
from tests.support.template import TEMPLATE_ID, insert_template

ENDED = START
LATER = ENDED + KEEP_AUDIENCES + timedelta(minutes=1)
MEMBERS, REFUSED = 5, 3


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def _tell(shop: OrderShop, count: int, **columns: Any) -> None:
    """``count`` events, refused at noon because nobody knows their order, unless ``columns`` say otherwise."""
    row = {"prefix": "e", "order": "nobody's", "state": "refused", "code": "ORDER_NOT_FOUND"} | columns
    shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
        " received_at, tried_at) SELECT 'ann', CAST(:prefix AS text) || n, :order, 'closed', :at, '{}', '', :state,"
        " :code, :at, :at FROM generate_series(1, :count) AS n",
        **row,
        at=START,
        count=count,
    )


def _events(shop: OrderShop) -> list[str]:
    return [event_id for (event_id,) in shop.rows("SELECT event_id FROM order_event ORDER BY event_id")]


def test_events_of_orders_that_nobody_knows_are_forgotten(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks, when they were refused ninety days ago and not before; again there is nothing to do."""
    monkeypatch.setattr(event_retention, "CHUNK", 2)
    _tell(shop, 5)

    early = forget_unknown_events(shop.services, START + KEEP)
    late = forget_unknown_events(shop.services, START + KEEP + timedelta(microseconds=1))
    again = forget_unknown_events(shop.services, START + 2 * KEEP)

    assert (0, 5, 0) == (early, late, again)
    assert [] == _events(shop)


def test_events_of_known_orders_are_kept_for_good(shop: OrderShop) -> None:
    """Sent again years later one is answered as before, and an order that was closed is not locked again."""
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.release("o1")
    _tell(shop, 1, prefix="late", order="o1")
    _tell(shop, 1, prefix="waits", state="waiting", code=None)
    _tell(shop, 1, prefix="applied", state="applied", code=None)
    _tell(shop, 1, prefix="refused", code="LOCK_EXPIRED")
    kept = _events(shop)

    forgotten = forget_unknown_events(shop.services, START + 20 * KEEP)

    assert (0, 4) == (forgotten, len(kept))
    assert kept == _events(shop)


def _end_batch(services: Services, batch_id: int, **columns: Any) -> None:
    """A batch for five users of whom three were refused and two are left, as when it was cancelled."""
    row = {
        "batch_id": batch_id,
        "template_id": TEMPLATE_ID,
        "name": "regulars",
        "policy": "best_effort",
        "status": "cancelled",
        "row_count": MEMBERS,
        "audience_count": MEMBERS,
        "refused_count": REFUSED,
        "created_by": "key",
        "created_at": ENDED,
        "finished_at": ENDED,
        "updated_at": ENDED,
    }
    shard = {"batch_id": batch_id, "shard": 0, "member_count": MEMBERS, "cursor": REFUSED, "gate_cursor": REFUSED}
    with services.engine.begin() as connection:
        connection.execute(insert(IssueBatch).values(row | columns))
        connection.execute(insert(IssueShard).values(shard | {"updated_at": ENDED}))
        for number in range(1, MEMBERS + 1):
            key = {"batch_id": batch_id, "shard": 0, "member_no": number}
            connection.execute(insert(AudienceMember).values(key | {"user_id": f"u{number}", "row_no": number}))
        for number in range(1, REFUSED + 1):
            failure = {"batch_id": batch_id, "row_no": number, "value": f"u{number}", "reason": "LIMIT_REACHED"}
            connection.execute(insert(BatchFailure).values(failure))


def _left(services: Services) -> list[tuple[object, ...]]:
    statement = """
        SELECT batch_id, records, (SELECT count(*) FROM audience_member m WHERE m.batch_id = b.batch_id),
               (SELECT count(*) FROM batch_failure f WHERE f.batch_id = b.batch_id)
          FROM issue_batch b ORDER BY batch_id
    """
    with services.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


@pytest.fixture
def ended(services: Services, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Two batches that ended, one that ended a day later, one under way; rows are deleted two at a time."""
    monkeypatch.setattr(batch_retention, "CHUNK", 2)
    insert_template(services.engine)
    _end_batch(services, 1)
    _end_batch(services, 2)
    _end_batch(services, 3, finished_at=ENDED + timedelta(days=1))
    _end_batch(services, 4, status="paused", finished_at=None)
    return services


WHOLE = [(3, "kept", MEMBERS, REFUSED), (4, "kept", MEMBERS, REFUSED)]


def test_audiences_are_forgotten_ninety_days_after_the_end(ended: Services) -> None:
    """Members and failures; the batch stays with its counts, and its books still add up."""
    early = forget_audiences(ended, LATER - timedelta(minutes=2))
    late = forget_audiences(ended, LATER)
    again = forget_audiences(ended, LATER)

    assert [Forgotten(0, 0, 0), Forgotten(2, 2 * MEMBERS, 2 * REFUSED), Forgotten(0, 0, 0)] == [early, late, again]
    assert [(1, "gone", 0, 0), (2, "gone", 0, 0), *WHOLE] == _left(ended)
    assert [] == batch_books(ended)


def test_forgotten_failures_are_not_told_as_none(ended: Services) -> None:
    """An empty file would say that everybody got a coupon."""
    forget_audiences(ended, LATER)

    with pytest.raises(NotFound, match="90 days") as refused:
        failures_csv(ended, 1)

    assert "FAILURES_NOT_KEPT" == refused.value.code
    assert REFUSED == b"".join(failures_csv(ended, 3)).count(b"LIMIT_REACHED")


@pytest.mark.parametrize("statement", range(2, 11))
def test_broken_off_anywhere_it_goes_on(ended: Services, statement: int) -> None:
    """The books hold in between, nobody is told a part of the failures, and the next pass does the rest."""
    with broken_off_at(ended.engine, statement):
        forget_audiences(ended, LATER)
    assert [] == batch_books(ended)
    for batch_id, records, _, failures in _left(ended):
        assert failures == REFUSED or records != "kept", batch_id

    forget_audiences(ended, LATER)

    assert [(1, "gone", 0, 0), (2, "gone", 0, 0), *WHOLE] == _left(ended)


def test_what_is_forgotten_is_found_by_an_index(shop: OrderShop) -> None:
    """In tables of years, of which little is old."""
    services = replace(shop.services)
    _tell(shop, 20_000, prefix="known", state="applied", code=None)
    _tell(shop, 2_000)
    with services.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO issue_batch (batch_id, template_id, name, policy, status, created_by, created_at,
                                         finished_at, updated_at, records)
                SELECT n, 1, 'n', 'best_effort', 'done', 'key', :at, :at, :at, 'gone' FROM generate_series(1, 5_000) n
            """),
            {"at": START},
        )
        connection.execute(
            text("""
                INSERT INTO audience_member (batch_id, shard, member_no, user_id, row_no)
                SELECT n % 20, 0, n, 'u', n FROM generate_series(1, 20_000) AS n
            """)
        )
        connection.execute(
            text("""
                INSERT INTO batch_failure (batch_id, row_no, value, reason)
                SELECT n % 20, n, 'u', 'INVALID' FROM generate_series(1, 20_000) AS n
            """)
        )
        connection.execute(text("ANALYZE order_event, issue_batch, audience_member, batch_failure"))

    plans = []
    for statement, named in (
        (event_retention._UNKNOWN, {"before": START + KEEP, "chunk": 1_000}),
        (batch_retention._NEXT, {"before": START + KEEP}),
        (batch_retention._MEMBERS, {"batch_id": 7, "chunk": 1_000}),
        (batch_retention._FAILURES, {"batch_id": 7, "chunk": 1_000}),
    ):
        with services.engine.begin() as connection:
            plans.append("\n".join(connection.scalars(text(f"EXPLAIN {statement.text}"), named)))

    indexes = ("_tried_at_idx", "ix_issue_batch_records", "pk_audience_member", "ix_batch_failure_row")
    assert [] == [(index, plan) for index, plan in zip(indexes, plans, strict=True) if index not in plan]
    assert [] == [plan for plan in plans if "Seq Scan" in plan]
