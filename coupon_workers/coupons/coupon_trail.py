"""Where a coupon is and where it came from: its owner by its number alone, and every hand it went through."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from coupon_workers.coupons.transfer_sql import REQUEST_PREFIX
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

MOST_HANDS = 50
"""Coupons of a chain that are looked for, in each direction."""

_OWNER = text("""
    SELECT user_id FROM coupon WHERE coupon_id = :coupon_id
     UNION ALL
    SELECT user_id FROM coupon_archive WHERE coupon_id = :coupon_id
     LIMIT 1
""")

# Backwards a coupon names the one it was in its request; forwards the links are kept by their givers.
_CHAIN = text(f"""
    WITH RECURSIVE back AS (
        SELECT CAST(:coupon_id AS bigint) AS coupon_id, 0 AS place
         UNION ALL
        SELECT CAST(substr(c.request_id, {len(REQUEST_PREFIX) + 1}) AS bigint), back.place - 1
          FROM back CROSS JOIN LATERAL (
               SELECT request_id, source FROM coupon WHERE coupon_id = back.coupon_id
                UNION ALL
               SELECT request_id, source FROM coupon_archive WHERE coupon_id = back.coupon_id LIMIT 1) AS c
         WHERE c.source = 'transfer' AND back.place > -:most
    ), first AS (
        SELECT coupon_id FROM back ORDER BY place LIMIT 1
    ), chain AS (
        SELECT owner.user_id, first.coupon_id, CAST(NULL AS timestamptz) AS since, 0 AS place
          FROM first CROSS JOIN LATERAL (
               SELECT user_id FROM coupon WHERE coupon_id = first.coupon_id
                UNION ALL
               SELECT user_id FROM coupon_archive WHERE coupon_id = first.coupon_id LIMIT 1) AS owner
         UNION ALL
        SELECT link.to_user_id, link.to_coupon_id, link.at, chain.place + 1
          FROM chain JOIN coupon_transfer link
            ON link.user_id = chain.user_id AND link.coupon_id = chain.coupon_id
         WHERE chain.place < 2 * :most
    )
    SELECT user_id, coupon_id, since FROM chain ORDER BY place
""")


@dataclass(frozen=True, slots=True)
class Hand:
    """Who had it, under which number, given at ``since``: None for the first, who was issued it."""

    user_id: str
    coupon_no: str
    since: datetime | None


def owner_of(services: Services, coupon_id: int) -> str | None:
    """The user of the coupon of this number, archived or not; None when there is none. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        return connection.execute(_OWNER, {"coupon_id": coupon_id}).scalar()


def transfer_chain(services: Services, coupon_id: int) -> list[Hand]:
    """Every hand that the coupon went through, the first first, it among them. Raises ``StoreUnavailable``."""
    with transaction(services.engine) as connection:
        rows = connection.execute(_CHAIN, {"coupon_id": coupon_id, "most": MOST_HANDS}).all()
    return [Hand(row.user_id, str(row.coupon_id), row.since) for row in rows]
