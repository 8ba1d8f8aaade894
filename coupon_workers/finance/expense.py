"""What a template's coupons have cost so far, by the ledger."""

from __future__ import annotations

from sqlalchemy import Connection, case, func, select

from coupon_workers.schema import LedgerEntry


def expense_of(connection: Connection, template_id: int) -> int:
    """Minor units that were taken off orders by the template's coupons, less what refunds took back."""
    spent = case((LedgerEntry.debit_account == "coupon_expense", LedgerEntry.amount_minor), else_=0)
    returned = case((LedgerEntry.credit_account == "coupon_expense", LedgerEntry.amount_minor), else_=0)
    net = select(func.coalesce(func.sum(spent - returned), 0)).where(LedgerEntry.template_id == template_id)
    return int(connection.execute(net).scalar_one())
