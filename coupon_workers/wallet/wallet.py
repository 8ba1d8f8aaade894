"""A user's coupons, as the user sees them (API.md, Wallet)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from coupon_workers.runtime.clock import rfc3339
from coupon_workers.runtime.database import database_errors
from coupon_workers.runtime.prepared_statement import PreparedStatement
from coupon_workers.runtime.services import Services

MAX_COUPON_ID = 2**63 - 1

# An unused coupon past its validity reads expired at once, whether the sweep has come by or not.
_STATUS = "CASE WHEN c.status = 'unused' AND c.valid_to <= :now THEN 'expired' ELSE c.status END"

# Looked up for locked coupons alone. A join would ask for the order of every coupon that ever had one.
_LOCKED_UNTIL = """
           CASE WHEN c.status = 'locked' THEN
                (SELECT o.locked_until FROM coupon_order o
                  WHERE o.user_id = :user_id AND o.order_no = c.order_no AND o.status = 'locked') END"""

_COLUMNS = f"""
    SELECT c.coupon_id, c.template_id, t.name AS template_name, c.user_id, {_STATUS} AS status, t.type,
           coalesce(c.face_value_minor, t.amount_minor) AS amount, t.percent_off_bp AS percent_off,
           t.max_discount_minor AS max_discount, t.currency, t.threshold_minor AS threshold, c.valid_from, c.valid_to,
           c.source, c.order_no, c.issued_at, {_LOCKED_UNTIL} AS locked_until"""

_COUPON = f"""{_COLUMNS}
      FROM coupon c JOIN coupon_template t USING (template_id)
     WHERE c.user_id = :user_id"""

_PAGE = PreparedStatement(
    "wallet_page",
    f"""{_COUPON}
       AND c.coupon_id < :before
       AND (:status IS NULL OR {_STATUS} = :status)
       AND (:expiring_before IS NULL OR c.valid_to < :expiring_before)
     ORDER BY c.coupon_id DESC LIMIT :limit""",
    user_id="text",
    now="timestamptz",
    before="bigint",
    status="text",
    expiring_before="timestamptz",
    limit="bigint",
)
# One that is asked for by its number may lie in the archive; a list shows none of those (decision 0020).
_ONE = text(f"""{_COUPON} AND c.coupon_id = :coupon_id
    UNION ALL {_COLUMNS}
      FROM coupon_archive c JOIN coupon_template t USING (template_id)
     WHERE c.user_id = :user_id AND c.coupon_id = :coupon_id""")
_STEPS = (
    "SELECT flow_no, action, from_status, to_status, order_no, operator, request_id, at FROM {}"
    " WHERE user_id = :user_id AND coupon_id = :coupon_id"
)
_HISTORY = text(f"{_STEPS.format('coupon_flow')} UNION ALL {_STEPS.format('coupon_flow_archive')} ORDER BY flow_no")

Coupon = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WalletPage:
    """Coupons, newest first, and the cursor of the next page or None at the end."""

    items: list[Coupon]
    next_cursor: str | None


def read_wallet(
    services: Services,
    user_id: str,
    *,
    limit: int,
    before: int = MAX_COUPON_ID,
    status: str | None = None,
    expiring_before: datetime | None = None,
) -> WalletPage:
    """A page of the user's coupons with an id below ``before``, archived ones left out. Raises
    ``StoreUnavailable``."""
    arguments = {
        "user_id": user_id,
        "now": services.clock(),
        "before": before,
        "status": status,
        "expiring_before": expiring_before,
        "limit": limit + 1,
    }
    with database_errors(), services.engine.connect() as connection:
        # One statement is a transaction by itself: no round trips to begin and to end it.
        rows = _PAGE.rows(connection.execution_options(isolation_level="AUTOCOMMIT"), arguments)
    items = [_coupon(row) for row in rows[:limit]]
    return WalletPage(items, items[-1]["coupon_no"] if len(rows) > limit else None)


def find_coupon(services: Services, user_id: str, coupon_id: int) -> Coupon | None:
    """One coupon, archived or not; None when this user has none of that number. Raises ``StoreUnavailable``."""
    key = {"user_id": user_id, "coupon_id": coupon_id, "now": services.clock()}
    with database_errors(), services.engine.connect() as connection:
        row = connection.execute(_ONE, key).mappings().first()
    return None if row is None else _coupon(dict(row))


def read_coupon(services: Services, user_id: str, coupon_id: int) -> Coupon | None:
    """As ``find_coupon``, with the coupon's ``history``, oldest first."""
    key = {"user_id": user_id, "coupon_id": coupon_id}
    with database_errors(), services.engine.connect() as connection:
        row = connection.execute(_ONE, key | {"now": services.clock()}).mappings().first()
        if row is None:
            return None
        history = connection.execute(_HISTORY, key).mappings().all()
    return _coupon(dict(row)) | {"history": [dict(step) | {"at": rfc3339(step["at"])} for step in history]}


def _coupon(row: dict[str, Any]) -> Coupon:
    value = "percent_off" if row["type"] == "percent_off" else "amount"
    return {
        "coupon_no": str(row["coupon_id"]),
        "template_id": str(row["template_id"]),
        "template_name": row["template_name"],
        "user_id": row["user_id"],
        "status": row["status"],
        "type": row["type"],
        value: row[value],
        "max_discount": row["max_discount"],
        "currency": row["currency"],
        "threshold": row["threshold"],
        "valid_from": rfc3339(row["valid_from"]),
        "valid_to": rfc3339(row["valid_to"]),
        "source": row["source"],
        "order_no": row["order_no"],
        "issued_at": rfc3339(row["issued_at"]),
        "locked_until": None if row["locked_until"] is None else rfc3339(row["locked_until"]),
    }
