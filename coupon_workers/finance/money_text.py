"""Money as people read it, with its currency's code: for tables and reports, never to compute with."""

from __future__ import annotations

from decimal import Decimal

from babel.numbers import format_currency

from coupon_workers.templates.currency import EXPONENTS


def plain_money(amount_minor: int, currency: str) -> str:
    """``1,234.50 CNY`` for 123450 CNY; ``-1,234 JPY``; three decimals for KWD (ISO 4217, not what Babel rounds to)."""
    exponent = EXPONENTS[currency]
    pattern = "#,##0" + ("." + "0" * exponent if exponent else "")
    amount = Decimal(amount_minor).scaleb(-exponent)
    return format_currency(amount, currency, format=f"{pattern} ¤¤", locale="en", currency_digits=False)
