"""``pool_value``: the pool of a random-amount template, as how many it has of each amount (DESIGN 11)."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class PoolValue(Base):
    """One row an amount of a template's pool. ``quantity`` never changes once the template is published.

    ``issued_quantity`` moves with the coupons that are worth the amount, only by ``issued + n <= quantity``; the CHECK
    is the last guard. What is left in the pool is the difference, whatever Redis says.
    """

    __tablename__ = "pool_value"

    template_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    amount_minor: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    quantity: Mapped[int]
    issued_quantity: Mapped[int] = mapped_column(server_default=text("0"))

    __table_args__ = (
        CheckConstraint("amount_minor > 0", name="amount"),
        CheckConstraint("quantity >= 1", name="quantity"),
        CheckConstraint("issued_quantity BETWEEN 0 AND quantity", name="issued"),
    )
