"""Whether all coupons are as their history and their uses say, at the price of reading each table once.

Each fact is hashed together with what it belongs to, and the hashes are added: two lists of facts are the same when
their sums are. A history adds what each step reaches and takes away what it leaves, so that of a whole one nothing is
left but its end. No sort, no join, no memory; PostgreSQL reads with several processes. Only where sums differ is it
asked which coupons it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from coupon_workers.coupons.transition import TRANSITIONS

_STEPS = ", ".join(f"('{move.action}', '{move.before}', '{move.after}')" for move in TRANSITIONS if move.before)

ILLEGAL = f"""
    CASE WHEN from_status IS NULL THEN action <> 'issue' OR to_status <> 'unused'
         ELSE (action, from_status, to_status) NOT IN ({_STEPS}) END"""
"""Whether a row of ``coupon_flow`` is no move of the table of transitions."""

# The number of a step goes into the seed's highest bits: identities of coupons hardly differ there.
REACHED = "hashtextextended(to_status, coupon_id # (CAST(flow_no AS bigint) << 48))"
LEFT = """
    CASE WHEN from_status IS NOT NULL
         THEN hashtextextended(from_status, coupon_id # (CAST(flow_no - 1 AS bigint) << 48)) ELSE 0 END"""
END = "hashtextextended(status, coupon_id # (CAST(version AS bigint) << 48))"

_COUPONS = f"""
    SELECT count(*) AS coupons, sum({END}) AS ends,
           sum(hashtextextended(order_no, hashtextextended(status, coupon_id))) FILTER (WHERE order_no IS NOT NULL)
           AS orders
      FROM coupon"""
_FLOW = f"""
    SELECT sum({REACHED}) AS reached, sum({LEFT}) FILTER (WHERE from_status IS NOT NULL) AS left_behind,
           count(*) FILTER (WHERE {ILLEGAL}) AS illegal
      FROM coupon_flow"""
COUPONS, FLOW = text(_COUPONS), text(_FLOW)
LIVE = text("""
    SELECT sum(hashtextextended(order_no, hashtextextended(state, coupon_id))) AS orders
      FROM coupon_use WHERE state IN ('locked', 'redeemed')
""")

# Amounts times a hash: a discount that is booked in parts sums to the same.
_OWNER = "CAST(hashtext(order_no) # hashint8(coupon_id) AS numeric)"
OWED = text(f"""
    SELECT sum(discount_minor * {_OWNER}) FILTER (WHERE state IN ('redeemed', 'returned')) AS redeemed,
           sum(reversed_minor * {_OWNER}) AS reversed
      FROM coupon_use
""")
BOOKED = text(f"""
    SELECT sum(amount_minor * {_OWNER}) FILTER (WHERE kind = 'redeem') AS redeemed,
           sum(amount_minor * {_OWNER}) FILTER (WHERE kind = 'refund') AS reversed
      FROM ledger_entry
""")


@dataclass(frozen=True, slots=True)
class StateSums:
    """What the sums say: ``histories``, ``uses`` and ``bookings`` agree with the coupons; of ``coupons`` there are."""

    coupons: int
    histories: bool
    uses: bool
    bookings: bool


def read_state_sums(connection: Connection) -> StateSums:
    """Add everything up, in the connection's snapshot."""
    coupons = connection.execute(COUPONS).one()
    flow = connection.execute(FLOW).one()
    live = connection.execute(LIVE).one()
    owed, booked = connection.execute(OWED).one(), connection.execute(BOOKED).one()
    return StateSums(
        coupons.coupons,
        _is_whole(coupons, flow),
        (coupons.orders or 0) == (live.orders or 0),
        (owed.redeemed or 0, owed.reversed or 0) == (booked.redeemed or 0, booked.reversed or 0),
    )


def is_partition_whole(connection: Connection, number: int) -> bool:
    """Whether the histories of one partition sum to where its coupons stand."""
    coupons = connection.execute(text(f"{_COUPONS}_p{number}")).one()
    return _is_whole(coupons, connection.execute(text(f"{_FLOW}_p{number}")).one())


def _is_whole(coupons: Row[Any], flow: Row[Any]) -> bool:
    return (coupons.ends or 0) == (flow.reached or 0) - (flow.left_behind or 0) and not flow.illegal
