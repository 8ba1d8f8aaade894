"""The SQL that books what a change of an order costs, in the statement of the change (DESIGN 10).

A booking moves an amount from one account to another, so the ledger balances by its shape:

- ``redeem``: debit ``coupon_expense`` (what the shop spends on coupons), credit ``order_discount`` (what buyers were
  spared);
- ``refund``: the same amount the other way round;
- ``adjustment``: what a person corrects, against ``adjustment``.
"""

from __future__ import annotations

_ACCOUNTS = {
    "redeem": ("coupon_expense", "order_discount"),
    "refund": ("order_discount", "coupon_expense"),
}


def booked(kind: str, currency: str = ":currency") -> str:
    """The CTE ``booked``, of ``kind`` redeem or refund, for a CTE ``charged(coupon_id, template_id, amount_minor)``.

    The statement is given ``:user_id``, ``:order_no``, ``:reference`` and ``:now``, and ``:currency`` unless
    ``currency`` is other SQL for it. The business day is the local day of each template. The same effect booked twice
    breaks ``uq_ledger_entry_effect``.
    """
    debit, credit = _ACCOUNTS[kind]
    return f"""
    booked AS (
        INSERT INTO ledger_entry (user_id, order_no, coupon_id, template_id, kind, reference, debit_account,
                                  credit_account, amount_minor, currency, business_date, at)
        SELECT :user_id, :order_no, charged.coupon_id, template_id, '{kind}', :reference, '{debit}', '{credit}',
               charged.amount_minor, {currency}, CAST(CAST(:now AS timestamptz) AT TIME ZONE t.timezone AS date),
               CAST(:now AS timestamptz)
          FROM charged JOIN coupon_template t USING (template_id)
         WHERE charged.amount_minor > 0
    )"""
