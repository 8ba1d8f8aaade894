"""The discount of a receipt in the terms of a template: exact, in minor units (DESIGN 3.7)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_MONEY = r"[0-9]{1,9}(?:\.[0-9]{1,2})?"
_AMOUNT_OFF = re.compile(rf"({_MONEY}):({_MONEY})")
_RATE = re.compile(r"[01](?:\.[0-9]{1,9})?")
_MINOR_OF_YUAN = 100
_WHOLE_BP = 10_000


def template_terms(discount_rate: str) -> dict[str, Any]:
    """The fields of a template that grants ``discount_rate``: ``150:20`` is 20 yuan off from 150, ``0.9`` 10 % off.

    Raises ``ValueError`` saying what is wrong with it: a form of another kind, nothing taken off, or more than is
    paid.
    """
    if match := _AMOUNT_OFF.fullmatch(discount_rate):
        threshold_minor, amount_minor = (int(Decimal(part) * _MINOR_OF_YUAN) for part in match.groups())
        if amount_minor == 0:
            raise ValueError("takes nothing off")
        if amount_minor > threshold_minor:
            raise ValueError("takes off more than it asks to be spent")
        return {"type": "amount_off", "amount": amount_minor, "threshold": threshold_minor}
    if _RATE.fullmatch(discount_rate):
        percent_off_bp = (1 - Decimal(discount_rate)) * _WHOLE_BP
        if not 0 < percent_off_bp <= _WHOLE_BP:
            raise ValueError("takes nothing off" if percent_off_bp == 0 else "asks for more than the price")
        if percent_off_bp != int(percent_off_bp):
            raise ValueError("is finer than a basis point")
        return {"type": "percent_off", "percent_off": int(percent_off_bp), "threshold": 0}
    raise ValueError("is neither like 150:20 nor like 0.9")
