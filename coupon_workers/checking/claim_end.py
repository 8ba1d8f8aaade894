"""How claims ended, as the database knows it: each has a coupon row, archived or not, or a rejection row, or is
held for review."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import text

from coupon_workers.checking.reading import snapshot
from coupon_workers.runtime.services import Services

CHUNK = 5_000

_ENDS = text("""
    SELECT coupon_id AS claim_id, template_id, user_id, request_id, 'issued' AS state
      FROM coupon WHERE coupon_id = ANY(CAST(:claim_ids AS bigint[]))
     UNION ALL
    SELECT coupon_id, template_id, user_id, request_id, 'issued'
      FROM coupon_archive WHERE coupon_id = ANY(CAST(:claim_ids AS bigint[]))
     UNION ALL
    SELECT claim_id, template_id, user_id, request_id, reason
      FROM claim_rejection WHERE claim_id = ANY(CAST(:claim_ids AS bigint[]))
     UNION ALL
    SELECT claim_id, template_id, user_id, request_id, state
      FROM risk_review WHERE claim_id = ANY(CAST(:claim_ids AS bigint[])) AND state = 'held'
""")
HAVE_UNITS = text("""
    SELECT coupon_id FROM coupon WHERE coupon_id = ANY(CAST(:claim_ids AS bigint[]))
     UNION ALL
    SELECT claim_id FROM risk_review WHERE claim_id = ANY(CAST(:claim_ids AS bigint[])) AND state = 'held'
""")
"""Which of the claims have their unit in the books, though they may still be in the stream."""


class ClaimEnd(NamedTuple):
    """A settled claim. ``state``: "issued", "held" for review, or the reason of its rejection."""

    template_id: int
    user_id: str
    request_id: str
    state: str


def claim_ends(services: Services, claim_ids: Iterable[int]) -> dict[int, ClaimEnd]:
    """The end of each claim that has one. Raises ``StoreUnavailable``."""
    wanted = list(claim_ids)
    ends: dict[int, ClaimEnd] = {}
    for start in range(0, len(wanted), CHUNK):
        with snapshot(services) as connection:
            for row in connection.execute(_ENDS, {"claim_ids": wanted[start : start + CHUNK]}):
                ends[row.claim_id] = ClaimEnd(row.template_id, row.user_id, row.request_id, row.state)
    return ends
