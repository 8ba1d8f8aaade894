"""``code``: a redeem code as a keyed hash, and what became of it (DESIGN 11)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class Code(Base):
    """One row a code. Its plain text is nowhere.

    A code is used once all of ``use_no`` (the how manieth of its batch), ``user_id``, ``request_id``, ``coupon_id`` and
    ``used_at`` are set, and only then; whether an unused one still holds is its batch's to say, so that ending a batch
    of ten million codes changes one row. The indexes beside the key hold used codes alone: storing a code writes two
    entries, not five.
    """

    __tablename__ = "code"

    code_batch_id: Mapped[int]
    used_at: Mapped[datetime | None]
    coupon_id: Mapped[int | None]
    use_no: Mapped[int | None] = mapped_column(Integer)
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    user_id: Mapped[str | None]
    request_id: Mapped[str | None]

    __table_args__ = (
        CheckConstraint("octet_length(code_hash) = 16", name="hash"),
        CheckConstraint("num_nonnulls(use_no, user_id, request_id, coupon_id, used_at) IN (0, 5)", name="used"),
        Index("uq_code_use", "code_batch_id", "use_no", unique=True, postgresql_where=text("use_no IS NOT NULL")),
        Index("uq_code_coupon", "coupon_id", unique=True, postgresql_where=text("coupon_id IS NOT NULL")),
        Index("uq_code_request", "user_id", "request_id", unique=True, postgresql_where=text("user_id IS NOT NULL")),
    )
