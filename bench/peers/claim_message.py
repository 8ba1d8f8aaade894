"""One message a claim, one transaction a message: what both per-message peers carry and do.

The transaction writes what our settling writes for a claim: the coupon, its flow, its event in the outbox, the
template's counter with its guard. It is as cheap as it can be made: psycopg2 without an ORM, one lasting connection a
thread, all four statements in one round trip, the counter last so that its row is locked for the shortest time. What it
leaves out is to its favour: no check of limits or pauses, no acknowledgement in the gate, no wallet to forget.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TypedDict

import psycopg2
from sqlalchemy.engine import make_url

_local = threading.local()

_SETTLE = """
INSERT INTO coupon (user_id, coupon_id, template_id, claim_seq, request_id, template_version, valid_from, valid_to,
                    source, channel, claimed_at)
VALUES (%(user_id)s, %(claim_id)s, %(template_id)s, 1, %(request_id)s, 1, now(), now() + interval '7 days',
        'claim', 'app', to_timestamp(%(claimed_ms)s / 1000.0));
INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator, request_id)
VALUES (%(user_id)s, %(claim_id)s, 1, 'issue', 'unused', 'claim', %(request_id)s);
INSERT INTO outbox (event, user_id, template_id, coupon_id)
VALUES ('coupon.issued', %(user_id)s, %(template_id)s, %(claim_id)s);
UPDATE coupon_template SET issued_quantity = issued_quantity + 1
 WHERE template_id = %(template_id)s AND issued_quantity + reserved_quantity < total_quantity
"""


class ClaimMessage(TypedDict):
    """An accepted claim, as JSON."""

    claim_id: int
    template_id: int
    user_id: str
    request_id: str
    claimed_ms: int


def claim_messages(template_id: int, mark: str, count: int, claimed_ms: int) -> Iterator[ClaimMessage]:
    """``count`` claims of as many users."""
    for number in range(count):
        yield {
            "claim_id": (claimed_ms << 20) + number,
            "template_id": template_id,
            "user_id": f"u-{mark}-{number:07}",
            "request_id": f"order-form-{mark}-{number:07}",
            "claimed_ms": claimed_ms,
        }


def settle_one(claim: ClaimMessage) -> None:
    """Make one claim durable. Raises ``psycopg2.IntegrityError`` for a claim that is durable already."""
    connection = _connection()
    with connection, connection.cursor() as cursor:
        cursor.execute(_SETTLE, claim)
        if cursor.rowcount != 1:
            raise RuntimeError("sold out")


def _connection() -> psycopg2.extensions.connection:
    """This thread's connection, made after any fork."""
    try:
        connection: psycopg2.extensions.connection = _local.connection
    except AttributeError:
        url = make_url(os.environ["COUPON_DATABASE_URL"]).set(drivername="postgresql")
        connection = _local.connection = psycopg2.connect(url.render_as_string(hide_password=False))
    return connection
