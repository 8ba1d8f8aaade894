"""The order centre's feed: paid, closed, refunded, in whatever order they arrive (API.md, Orders).

The state of an order follows from the instants at which its events occurred, not from when they came:

- ``paid`` redeems; it is superseded by a ``closed`` that occurred after it and was heard before it;
- ``closed`` lets an unpaid order's coupons go, and returns all that is left of a paid one; it is superseded by a
  payment that occurred after it;
- ``refunded`` returns what it names.

An event whose order, or whose payment, is not known yet waits; the lock or payment it waits for takes it along, and
the sweep sees to whatever came at the same moment. After ``WAITS`` it is refused. One whose order is broken waits until
that is mended, and the sweep tries it. An event once applied, superseded
or refused stays so; sent again, it is answered the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from coupon_workers.errors import Conflict, InvalidInput
from coupon_workers.orders.broken_order import ORDER_BROKEN
from coupon_workers.orders.order_request import EventBody, RedeemBody, RefundBody, digest
from coupon_workers.orders.order_row import Row, hold_order, row_of, rows_of
from coupon_workers.orders.redeem import CLOCKS_APART, redeem
from coupon_workers.orders.refund import refund
from coupon_workers.orders.release import release

WAITS = timedelta(hours=24)
"""How long an event waits for its order: an order without coupons is never known here."""


class Outcome(NamedTuple):
    """A state of ``order_event`` and, unless it was applied, a code that says why, with a word for people."""

    state: str
    code: str | None = None
    detail: str | None = None


APPLIED = Outcome("applied")

_STORED = text("SELECT * FROM order_event WHERE user_id = :user_id AND event_id = :event_id")
_STORE = text(
    "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
    " received_at, tried_at)"
    " VALUES (:user_id, :event_id, :order_no, :type, :occurred_at, :body, :fingerprint, 'waiting', NULL, :now, :now)"
    " ON CONFLICT (user_id, event_id) DO NOTHING RETURNING 1"
)
_SETTLE = text(
    "UPDATE order_event SET state = :state, code = :code, detail = :detail, tried_at = :now"
    " WHERE user_id = :user_id AND event_id = :event_id AND state = 'waiting'"
)
_WAITING = text(
    "SELECT * FROM order_event WHERE user_id = :user_id AND order_no = :order_no AND state = 'waiting'"
    " ORDER BY occurred_at, received_at FOR NO KEY UPDATE"
)
_CLOSED = text(
    "SELECT EXISTS (SELECT FROM order_event WHERE user_id = :user_id AND order_no = :order_no AND type = 'closed'"
    " AND state = 'applied')"
)
_CLOSED_LATER = text(
    "SELECT EXISTS (SELECT FROM order_event WHERE user_id = :user_id AND order_no = :order_no AND type = 'closed'"
    " AND state = 'applied' AND occurred_at >= :occurred_at)"
)


def take_event(connection: Connection, now: datetime, body: EventBody) -> Row:
    """Take an event and do what it asks, once: its row of ``order_event``.

    Raises ``InvalidInput`` for an event of the future, and for an id that belongs to another event.
    """
    if body.occurred_at > now + CLOCKS_APART:
        raise InvalidInput([("occurred_at", "It lies in the future")])
    said = body.model_dump(mode="json")
    key = {"user_id": body.user_id, "event_id": body.event_id}
    # The order is held first, as by everyone: two events of one order come after each other.
    order = hold_order(connection, body.user_id, body.order_no)
    named = key | {"order_no": body.order_no, "type": body.type, "occurred_at": body.occurred_at, "now": now}
    stored = connection.execute(_STORE, named | {"body": json.dumps(said), "fingerprint": digest(said)}).first()
    event = row_of(connection.execute(_STORED, key).mappings().one())
    if stored is None:
        if event["fingerprint"] != digest(said):
            raise InvalidInput([("event_id", "belongs to another event")])
        return event
    outcome = _settle(connection, now, order, event)
    if event["type"] == "paid" and outcome == APPLIED:
        settle_waiting(connection, now, body.user_id, body.order_no)
    return dict(event) | outcome._asdict()


def was_closed(connection: Connection, user_id: str, order_no: str) -> bool:
    """Whether the order centre has closed the order."""
    return bool(connection.scalar(_CLOSED, {"user_id": user_id, "order_no": order_no}))


def settle_waiting(connection: Connection, now: datetime, user_id: str, order_no: str) -> bool:
    """Do what the order's waiting events ask, in the order in which they occurred; whether anything was settled.

    One that waits for another which occurred after it, by the order centre's clocks, has its turn again.
    """
    # The order first, as by everyone: whoever has it comes to its events.
    hold_order(connection, user_id, order_no)
    settled = False
    while _settle_each(connection, now, user_id, order_no):
        settled = True
    return settled


def _settle_each(connection: Connection, now: datetime, user_id: str, order_no: str) -> bool:
    settled = False
    key = {"user_id": user_id, "order_no": order_no}
    for event in rows_of(connection.execute(_WAITING, key)):
        settled |= _settle(connection, now, hold_order(connection, user_id, order_no), event).state != "waiting"
    return settled


def _settle(connection: Connection, now: datetime, order: Row | None, event: Row) -> Outcome:
    outcome = _apply_or_refuse(connection, now, order, event)
    key = {"user_id": event["user_id"], "event_id": event["event_id"], "now": now}
    connection.execute(_SETTLE, key | outcome._asdict())
    return outcome


def _apply_or_refuse(connection: Connection, now: datetime, order: Row | None, event: Row) -> Outcome:
    if order is None:
        return Outcome("waiting", "ORDER_NOT_FOUND")
    try:
        # What a refused change has written by then goes with it; the event's own row stays.
        with connection.begin_nested():
            return {"paid": _paid, "closed": _closed, "refunded": _refunded}[event["type"]](
                connection, now, order, event
            )
    except Conflict as error:
        # A refusal is for good; what is broken gets mended.
        return Outcome("waiting" if error.code == ORDER_BROKEN else "refused", error.code, str(error))
    except InvalidInput as error:
        return Outcome("refused", "VALIDATION_FAILED", str(error))


def _paid(connection: Connection, now: datetime, order: Row, event: Row) -> Outcome:
    key = {"user_id": event["user_id"], "order_no": event["order_no"], "occurred_at": event["occurred_at"]}
    if order["status"] != "redeemed" and connection.scalar(_CLOSED_LATER, key):
        return Outcome("superseded", "CLOSED", "the order was closed after this payment")
    said = RedeemBody.model_construct(
        user_id=event["user_id"],
        payment_no=event["body"]["payment_no"] or order["payment_no"] or event["event_id"],
        paid_at=event["occurred_at"],
        lines=None,
        currency=None,
        coupon_nos=None,
    )
    redeem(connection, now, event["order_no"], said, _operator(event))
    return APPLIED


def _closed(connection: Connection, now: datetime, order: Row, event: Row) -> Outcome:
    if order["status"] != "redeemed":
        reason = event["body"]["reason"] or "closed"
        release(connection, now, event["user_id"], event["order_no"], reason, _operator(event))
        return APPLIED
    if event["occurred_at"] < order["paid_at"]:
        return Outcome("superseded", "PAID", "the order was paid after this")
    if order["fully_returned_at"] is not None:
        return APPLIED
    everything = RefundBody.model_construct(
        user_id=event["user_id"], refund_no=event["event_id"], lines=None, full=True
    )
    refund(connection, now, event["order_no"], everything, _operator(event))
    return APPLIED


def _refunded(connection: Connection, now: datetime, order: Row, event: Row) -> Outcome:
    if order["status"] != "redeemed":
        return Outcome("waiting", "NOT_REDEEMED")
    said = event["body"]
    asked = RefundBody.model_validate(
        {
            "user_id": event["user_id"],
            "refund_no": said["refund_no"] or event["event_id"],
            "lines": said["lines"],
            "full": said["full"],
        }
    )
    refund(connection, now, event["order_no"], asked, _operator(event))
    return APPLIED


def _operator(event: Row) -> str:
    return f"event:{event['event_id']}"


def event_answer(event: Row) -> dict[str, Any]:
    """What became of an event."""
    return {
        "event_id": event["event_id"],
        "order_no": event["order_no"],
        "type": event["type"],
        "state": event["state"],
        "code": event["code"],
        "detail": event["detail"],
    }


_MEETS = "(e.type <> 'refunded' OR o.status = 'redeemed')"
_MET = text(
    "SELECT user_id, order_no FROM order_event e JOIN coupon_order o USING (user_id, order_no)"
    f" WHERE e.state = 'waiting' AND (e.tried_at > :since OR e.tried_at <= :before) AND {_MEETS}"
    " GROUP BY user_id, order_no ORDER BY min(e.tried_at), user_id, order_no LIMIT :most"
)
_TRIED = text(
    "UPDATE order_event SET tried_at = :now WHERE user_id = :user_id AND order_no = :order_no AND state = 'waiting'"
)
# One that has missed its order all the time, as when no sweep was running, is settled and not refused.
_LATE = text(
    "UPDATE order_event SET state = 'refused', code = coalesce(code, 'ORDER_NOT_FOUND'), tried_at = :now"
    " WHERE state = 'waiting' AND (user_id, event_id) IN (SELECT user_id, event_id FROM order_event e"
    " WHERE state = 'waiting' AND tried_at <= :before AND NOT EXISTS (SELECT FROM coupon_order o"
    f" WHERE o.user_id = e.user_id AND o.order_no = e.order_no AND {_MEETS})"
    " ORDER BY tried_at LIMIT :chunk FOR UPDATE SKIP LOCKED)"
)

MET_LATELY = timedelta(minutes=5)
"""An event and the lock it waits for miss each other only when they come at the same moment."""


def met_orders(connection: Connection, now: datetime, most: int) -> Iterator[tuple[str, str]]:
    """Users and orders whose events wait though they need not: they came at the moment of what they wait for.

    Those that were not tried for longest come first, so that none that stay broken hold up the others.
    """
    for row in connection.execute(_MET, {"since": now - MET_LATELY, "before": now - WAITS, "most": most}):
        yield row.user_id, row.order_no


def mark_tried(connection: Connection, now: datetime, user_id: str, order_no: str) -> None:
    """Have the order's waiting events take their turn after the others."""
    connection.execute(_TRIED, {"user_id": user_id, "order_no": order_no, "now": now})


def refuse_late(connection: Connection, now: datetime, chunk: int) -> int:
    """Refuse events that have waited too long; how many, at most ``chunk``."""
    refused: int = connection.execute(_LATE, {"now": now, "before": now - WAITS, "chunk": chunk}).rowcount
    return refused
