"""Adjustments: what a person corrects in the ledger, against the account ``adjustment`` (DESIGN 10).

A reference books once, for good. The business day is the local day, by the coupon's template, of now. It is open: a
day is closed when it is over in the time zone of every template whose coupons are out, and two minutes more. Only a
template that came after the close, further west than all others, has a local day that is closed: it books on the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from coupon_workers.audit.action import AuditAction
from coupon_workers.audit.record import record
from coupon_workers.errors import InvalidInput, NotFound
from coupon_workers.finance.daily_close import hold_open_day
from coupon_workers.finance.ledger_reading import LedgerAnswer, ledger_answer
from coupon_workers.orders.order_row import hold_order
from coupon_workers.runtime.database import transaction
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.structured_log import get_logger

_COUPON = text("""
    SELECT c.template_id, t.currency, CAST(CAST(:now AS timestamptz) AT TIME ZONE t.timezone AS date) AS day
      FROM coupon c JOIN coupon_template t USING (template_id)
     WHERE c.user_id = :user_id AND c.coupon_id = :coupon_id
""")

_BOOK = text("""
    INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account,
                              credit_account, amount_minor, currency, business_date, at, operator, reason)
    VALUES (:user_id, :order_no, :coupon_id, :template_id, 'adjustment', :reference, :debit_account,
            :credit_account, abs(:amount_minor), :currency, :day, :now, :operator, :reason)
    ON CONFLICT DO NOTHING
""")

_BOOKED = text("SELECT * FROM ledger_entry WHERE kind = 'adjustment' AND reference = :reference")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What is to be booked of a coupon on an order: ``amount_minor`` above zero is more expense, below zero less, in
    the currency of the coupon's template. The order need not be known here."""

    reference: str
    user_id: str
    order_no: str
    coupon_id: int
    amount_minor: int
    reason: str

    @property
    def accounts(self) -> tuple[str, str]:
        """Debit and credit."""
        more = ("coupon_expense", "adjustment")
        return more if self.amount_minor > 0 else more[::-1]


def book_adjustment(services: Services, adjustment: Adjustment, operator: str) -> LedgerAnswer:
    """Book it in a transaction of its own; see ``book``. Raises ``StoreUnavailable``, too."""
    with transaction(services.engine) as connection:
        # Whoever approves a finding of this order holds it too: both look at what is booked before they book.
        hold_order(connection, adjustment.user_id, adjustment.order_no)
        entry, is_new = _book_once(connection, services.clock(), adjustment, operator)
        if is_new:
            facts = asdict(adjustment) | {"coupon_id": str(adjustment.coupon_id)}
            record(connection, AuditAction.LEDGER_ADJUST, f"ledger_entry:{entry['entry_id']}", after=facts)
    log.info("adjustment_booked", reference=adjustment.reference, entry=entry["entry_id"], by=operator)
    return ledger_answer(entry)


def book(connection: Connection, now: datetime, adjustment: Adjustment, operator: str) -> Mapping[str, Any]:
    """Book it in this transaction: its row of ``ledger_entry``. The same again is answered as it was booked.

    Raises ``NotFound`` ``COUPON_NOT_FOUND``, also for another user's coupon; ``InvalidInput`` for a reference that
    belongs to another adjustment.
    """
    entry, _ = _book_once(connection, now, adjustment, operator)
    return entry


def _book_once(
    connection: Connection, now: datetime, adjustment: Adjustment, operator: str
) -> tuple[Mapping[str, Any], bool]:
    """Its row, and whether it was written by this."""
    if adjustment.amount_minor == 0:
        raise ValueError("an adjustment of nothing")
    named = asdict(adjustment) | {"now": now, "operator": operator}
    if (booked := _booked(connection, adjustment)) is not None:
        return booked, False
    coupon = connection.execute(_COUPON, named).mappings().one_or_none()
    if coupon is None:
        raise NotFound("COUPON_NOT_FOUND", f"this user has no coupon {adjustment.coupon_id}")
    debit, credit = adjustment.accounts
    day = hold_open_day(connection, coupon["day"])
    written = connection.execute(
        _BOOK, named | dict(coupon) | {"day": day, "debit_account": debit, "credit_account": credit}
    )
    # Another one may have booked it meanwhile: then the INSERT has waited for it.
    booked = _booked(connection, adjustment)
    assert booked is not None
    return booked, bool(written.rowcount)


def _booked(connection: Connection, asked: Adjustment) -> Mapping[str, Any] | None:
    row = connection.execute(_BOOKED, {"reference": asked.reference}).mappings().one_or_none()
    if row is None:
        return None
    amount = row["amount_minor"] if row["debit_account"] == "coupon_expense" else -row["amount_minor"]
    booked = Adjustment(
        reference=row["reference"],
        user_id=row["user_id"],
        order_no=row["order_no"],
        coupon_id=row["coupon_id"],
        amount_minor=amount,
        reason=row["reason"],
    )
    if booked != asked:
        raise InvalidInput([("reference", "belongs to another adjustment")])
    return {str(name): value for name, value in row.items()}
