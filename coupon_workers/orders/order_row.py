"""An order and its coupons as the database holds them, and holding them still while they are changed.

Whoever changes an order holds its row first, then its coupons in the order of their numbers: so no two ever wait for
each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Result

from coupon_workers.runtime.prepared_statement import PreparedStatement

Row = Mapping[str, Any]

ORDER_COLUMNS = """user_id, order_no, status, lock_no, fingerprint, currency, channel, subtotal_minor,
           discount_minor, payable_minor, refunded_minor, refund_count, locked_at, locked_until, released_at,
           release_reason, payment_no, paid_at, redeemed_at, fully_returned_at"""
"""All but the lines: most callers do not look at them."""

_KNOWN = "SELECT 1 FROM coupon_order WHERE user_id = :user_id AND order_no = :order_no"
_ORDER = f"""
    SELECT {ORDER_COLUMNS}, lines
      FROM coupon_order WHERE user_id = :user_id AND order_no = :order_no"""
_ORDER_TYPES = {"user_id": "text", "order_no": "text"}

_READ_ORDER = PreparedStatement("read_order", _ORDER, **_ORDER_TYPES)
_HOLD_ORDER = PreparedStatement("hold_order", f"{_ORDER} FOR NO KEY UPDATE", **_ORDER_TYPES)

_WITH_RULE = """
    SELECT c.user_id, c.coupon_id, c.template_id, c.status, c.order_no, c.valid_from, c.valid_to, c.face_value_minor,
           t.type, t.currency, t.amount_minor, t.percent_off_bp, t.max_discount_minor, t.threshold_minor, t.scope,
           t.stacking, t.refund, t.timezone, t.status AS template_status
      FROM {} c JOIN coupon_template t USING (template_id)"""

COUPON_WITH_RULE = _WITH_RULE.format("coupon")

_COUPONS = f"""{COUPON_WITH_RULE}
     WHERE c.user_id = :user_id AND c.coupon_id = ANY(:coupon_ids)
     ORDER BY c.coupon_id"""

_COUPONS_TYPES = {"user_id": "text", "coupon_ids": "bigint[]"}

_READ_COUPONS = PreparedStatement("read_coupons", _COUPONS, **_COUPONS_TYPES)
_HOLD_COUPONS = PreparedStatement("hold_coupons", f"{_COUPONS} FOR NO KEY UPDATE OF c", **_COUPONS_TYPES)

# What the condition asks for is looked up before the scan of coupons begins: the order is held first, as everywhere.
_COUPONS_OF_NEW_ORDER = PreparedStatement(
    "hold_coupons_of_new_order",
    f"""WITH known AS ({_KNOWN} FOR NO KEY UPDATE){COUPON_WITH_RULE}
     WHERE c.user_id = :user_id
       AND c.coupon_id = ANY (CASE WHEN NOT EXISTS (SELECT FROM known) THEN :coupon_ids END)
     ORDER BY c.coupon_id FOR NO KEY UPDATE OF c""",
    **_ORDER_TYPES | _COUPONS_TYPES,
)

# Asked for what the living ones do not have: whoever names a coupon that ended long ago is told that it has ended.
_ARCHIVED_COUPONS = PreparedStatement(
    "read_archived_coupons",
    f"""{_WITH_RULE.format("coupon_archive")}
     WHERE c.user_id = :user_id AND c.coupon_id = ANY(:coupon_ids)""",
    **_COUPONS_TYPES,
)

_USES = PreparedStatement(
    "read_uses",
    "SELECT coupon_id, template_id, state, discount_minor, allocations, reversed_minor FROM coupon_use"
    " WHERE user_id = :user_id AND order_no = :order_no AND lock_no = :lock_no ORDER BY position",
    user_id="text",
    order_no="text",
    lock_no="integer",
)


def read_order(connection: Connection, user_id: str, order_no: str) -> Row | None:
    """The order as it is."""
    return _order(connection, _READ_ORDER, user_id, order_no)


def hold_order(connection: Connection, user_id: str, order_no: str) -> Row | None:
    """The order, held until the transaction ends; None when this user has none of that number."""
    return _order(connection, _HOLD_ORDER, user_id, order_no)


def _order(connection: Connection, statement: PreparedStatement, user_id: str, order_no: str) -> Row | None:
    rows = statement.rows(connection, {"user_id": user_id, "order_no": order_no})
    return row_of(rows[0]) if rows else None


def read_coupons(connection: Connection, user_id: str, coupon_ids: Sequence[int]) -> list[Row]:
    """Those of the coupons that are the user's, each with its template's terms, in the order of their numbers."""
    return _coupons(connection, user_id, coupon_ids, held=False)


def hold_coupons(connection: Connection, user_id: str, coupon_ids: Sequence[int]) -> list[Row]:
    """As ``read_coupons``, held until the transaction ends."""
    return _coupons(connection, user_id, coupon_ids, held=True)


def hold_coupons_of_new_order(
    connection: Connection, user_id: str, order_no: str, coupon_ids: Sequence[int]
) -> list[Row]:
    """``hold_order`` and ``hold_coupons`` in one, for an order that is not known: that is nearly every order when its
    coupons are first asked for. One that is known is held, and no coupon is."""
    arguments = {"user_id": user_id, "order_no": order_no, "coupon_ids": list(coupon_ids)}
    coupons: list[Row] = [*_COUPONS_OF_NEW_ORDER.rows(connection, arguments)]
    return _with_archived(connection, user_id, coupon_ids, coupons) if coupons else coupons


def _coupons(connection: Connection, user_id: str, coupon_ids: Sequence[int], *, held: bool) -> list[Row]:
    arguments = {"user_id": user_id, "coupon_ids": list(coupon_ids)}
    coupons: list[Row] = [*(_HOLD_COUPONS if held else _READ_COUPONS).rows(connection, arguments)]
    return _with_archived(connection, user_id, coupon_ids, coupons)


def _with_archived(
    connection: Connection, user_id: str, coupon_ids: Sequence[int], coupons: Sequence[Row]
) -> list[Row]:
    """With those of the coupons that lie in the archive: nobody changes them, and nobody has to hold them."""
    missing = set(coupon_ids) - {coupon["coupon_id"] for coupon in coupons}
    if not missing:
        return [*coupons]
    arguments = {"user_id": user_id, "coupon_ids": sorted(missing)}
    archived = _ARCHIVED_COUPONS.rows(connection, arguments)
    return sorted([*coupons, *archived], key=lambda coupon: int(coupon["coupon_id"]))


def read_uses(connection: Connection, order: Row) -> list[Row]:
    """The uses of the order's last lock, in the order in which the coupons were applied."""
    arguments = {"user_id": order["user_id"], "order_no": order["order_no"], "lock_no": order["lock_no"]}
    return [*_USES.rows(connection, arguments)]


def rows_of(result: Result[Any]) -> list[Row]:
    """What a statement answered, by its columns."""
    return [row_of(row) for row in result.mappings()]


def row_of(columns: Mapping[Any, Any]) -> Row:
    """A row with its binaries as ``bytes``: the driver's ``memoryview`` is unequal to bytes of the same content."""
    return {str(name): bytes(value) if isinstance(value, memoryview) else value for name, value in columns.items()}
