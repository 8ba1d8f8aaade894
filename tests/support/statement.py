"""The order centre's statements, in short words for tests."""

from __future__ import annotations

import io
from datetime import date

from coupon_workers.reconciliation.statement import take_statement
from coupon_workers.reconciliation.statement_reading import Statement
from coupon_workers.runtime.services import Services

HEADER = "order_no,user_id,status,paid_amount,discount_amount,currency"


def said(*rows: str, header: str = HEADER) -> bytes:
    """A file of rows such as ``o1,ann,paid,13000,2000,CNY``."""
    return "".join(f"{row}\n" for row in (header, *rows)).encode()


def give(services: Services, day: str, *rows: str, content: bytes | None = None) -> Statement:
    """Give the day's statement."""
    file = io.BytesIO(said(*rows) if content is None else content)
    return take_statement(services, date.fromisoformat(day), file, "centre")
