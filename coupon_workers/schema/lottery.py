"""``lottery``, ``prize``, ``draw``: what may be won, how much of it is left, and who has drawn what (DESIGN 11)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

LOTTERY_STATUSES = ("pending_approval", "open", "paused", "ending", "ended")


class Lottery(Base):
    """One row a lottery; its number in decimal is the ``batch_no`` of the coupons that are won in it.

    ``version`` orders its changes on their way to the gate. ``draw_count`` draws are settled, ``none_count`` of them
    without a prize, and ``rejected_count`` more were rejected. While it is ``ending`` nobody draws any more, and its
    prizes keep their units for draws that wait; ``ended``: what was left has gone back. ``gate_forgotten_at``: its keys
    have left Redis.
    """

    __tablename__ = "lottery"

    lottery_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=text("'open'"))
    start_at: Mapped[datetime]
    end_at: Mapped[datetime]
    timezone: Mapped[str]
    per_user_limit: Mapped[int | None] = mapped_column(Integer)
    per_user_daily_limit: Mapped[int | None] = mapped_column(Integer)
    version: Mapped[int] = mapped_column(server_default=text("1"))
    draw_count: Mapped[int] = mapped_column(server_default=text("0"))
    none_count: Mapped[int] = mapped_column(server_default=text("0"))
    rejected_count: Mapped[int] = mapped_column(server_default=text("0"))
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    approved_by: Mapped[str | None]
    ended_by: Mapped[str | None]
    ended_at: Mapped[datetime | None]
    gate_forgotten_at: Mapped[datetime | None]
    updated_at: Mapped[datetime]

    __table_args__ = (
        one_of("status", LOTTERY_STATUSES, "status"),
        CheckConstraint("start_at < end_at", name="window"),
        CheckConstraint("least(per_user_limit, per_user_daily_limit) >= 1", name="limits"),
        CheckConstraint("none_count BETWEEN 0 AND draw_count AND rejected_count >= 0", name="counts"),
        CheckConstraint("(status = 'ended') = (ended_at IS NOT NULL)", name="ended"),
        CheckConstraint("gate_forgotten_at IS NULL OR status = 'ended'", name="forgotten"),
        # Those that the sweep looks after.
        Index("ix_lottery_swept", "lottery_id", postgresql_where=text("gate_forgotten_at IS NULL")),
    )


class Prize(Base):
    """One row a prize of a lottery. It is drawn ``weight`` times in a million, for as long as it is there.

    ``left_quantity`` of ``stock`` can still be won; of a template they are units set aside for it: part of its
    ``reserved_quantity``, given back once.
    """

    __tablename__ = "prize"

    lottery_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    prize_no: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    name: Mapped[str]
    weight: Mapped[int] = mapped_column(Integer)
    template_id: Mapped[int | None]
    stock: Mapped[int]
    drawn_count: Mapped[int] = mapped_column(server_default=text("0"))
    left_quantity: Mapped[int]

    __table_args__ = (
        CheckConstraint("prize_no >= 1", name="prize_no"),
        CheckConstraint("weight BETWEEN 0 AND 1000000", name="weight"),
        CheckConstraint("drawn_count BETWEEN 0 AND stock", name="drawn"),
        CheckConstraint("left_quantity IN (0, stock - drawn_count)", name="left"),
        Index("ix_prize_template", "template_id", postgresql_where=text("template_id IS NOT NULL")),
    )


class Draw(Base):
    """One row a draw that was accepted, for good. ``prize_no`` 0: nothing was won.

    ``reason`` says why a draw counts for nothing: Redis had lost its memory, and let through what the books refuse.
    ``coupon_id`` is the coupon that was won, the draw's own number.
    """

    __tablename__ = "draw"

    lottery_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    draw_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[str]
    request_id: Mapped[str]
    prize_no: Mapped[int] = mapped_column(SmallInteger)
    reason: Mapped[str | None]
    coupon_id: Mapped[int | None]
    drawn_at: Mapped[datetime]
    settled_at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (
        CheckConstraint("prize_no >= 0", name="prize_no"),
        CheckConstraint(
            "coupon_id IS NULL OR (coupon_id = draw_id AND prize_no > 0 AND reason IS NULL)", name="coupon"
        ),
        Index(
            "uq_draw_request",
            "lottery_id",
            "user_id",
            "request_id",
            unique=True,
            postgresql_where=text("reason IS DISTINCT FROM 'DUPLICATE'"),
        ),
        Index("ix_draw_user", "user_id", "draw_id"),
    )
