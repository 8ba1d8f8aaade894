"""A user's bookings, of one order or coupon if one is named: what a clerk is asked about."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import text

from coupon_workers.finance.ledger_reading import LedgerAnswer, ledger_answer
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services

_CONDITIONS = {
    "order_no": "order_no = :order_no",
    "coupon_id": "coupon_id = :coupon_id",
    "before": "entry_id < :before",
}

# Found by the key of effects, which begins with the user, and sorted then: asked for the newest ones, the planner could
# walk back through everybody's bookings instead.
_PAGE = """
    WITH found AS MATERIALIZED (SELECT * FROM ledger_entry WHERE user_id = :user_id {more})
    SELECT * FROM found ORDER BY entry_id DESC LIMIT :limit
"""


def read_user_ledger(
    services: Services,
    user_id: str,
    *,
    limit: int,
    order_no: str | None = None,
    coupon_id: int | None = None,
    before: int | None = None,
) -> list[LedgerAnswer]:
    """The newest ``limit`` bookings of the user with numbers below ``before``; an order's number is its user's own.

    Raises ``StoreUnavailable``.
    """
    named = {"order_no": order_no, "coupon_id": coupon_id, "before": before}
    given = {name: value for name, value in named.items() if value is not None}
    with transaction(services.engine) as connection:
        rows = connection.execute(text(wanted_of_user(given)), given | {"user_id": user_id, "limit": limit}).mappings()
        return [ledger_answer(row) for row in rows]


def wanted_of_user(given: Iterable[str]) -> str:
    """The statement, where these are given beside the user."""
    return _PAGE.format(more="".join(f" AND {_CONDITIONS[name]}" for name in given))
