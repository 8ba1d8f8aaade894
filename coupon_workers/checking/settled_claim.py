"""Every settled claim of the database, a page at a time, by the indexes: coupons by template, then rejections.

A coupon received from another user is no claim of his; one of a campaign counts as his, and has another ``source``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import TextClause, text

from coupon_workers.checking.reading import snapshot
from coupon_workers.runtime.services import Services

PAGE = 5_000

_COUPONS = text("""
    SELECT coupon_id AS claim_id, template_id, user_id, request_id, source, 'issued' AS state, claimed_at FROM coupon
     WHERE (template_id, coupon_id) > (:template_id, :claim_id) AND source NOT IN ('transfer', 'lottery', 'manual')
     ORDER BY template_id, coupon_id LIMIT :page
""")
_REJECTIONS = text("""
    SELECT claim_id, template_id, user_id, request_id, 'claim' AS source, reason AS state, claimed_at
      FROM claim_rejection
     WHERE claim_id > :claim_id ORDER BY claim_id LIMIT :page
""")

_HELD = text("""
    SELECT claim_id, template_id, user_id, request_id, 'claim' AS source, state, claimed_at
      FROM risk_review
     WHERE state = 'held' AND claim_id > :claim_id ORDER BY claim_id LIMIT :page
""")


def coupon_pages(services: Services) -> Iterator[list[Any]]:
    """Rows (claim_id, template_id, user_id, request_id, source, state, claimed_at) of coupons.

    Raises ``StoreUnavailable``.
    """
    return _pages(services, _COUPONS)


def rejection_pages(services: Services) -> Iterator[list[Any]]:
    """Rows like those of ``coupon_pages`` of rejections; ``state`` is the reason. Raises ``StoreUnavailable``."""
    return _pages(services, _REJECTIONS)


def held_pages(services: Services) -> Iterator[list[Any]]:
    """Rows like those of ``coupon_pages`` of claims held for review. Raises ``StoreUnavailable``."""
    return _pages(services, _HELD)


def _pages(services: Services, statement: TextClause) -> Iterator[list[Any]]:
    template_id, claim_id = 0, 0
    while True:
        after = {"template_id": template_id, "claim_id": claim_id, "page": PAGE}
        with snapshot(services) as connection:
            page = list(connection.execute(statement, after))
        if not page:
            return
        yield page
        template_id, claim_id = page[-1].template_id, page[-1].claim_id
