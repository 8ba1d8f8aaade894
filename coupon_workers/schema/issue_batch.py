"""``issue_batch``, ``issue_shard``: a template given to an audience, and the parts in which it is issued (DESIGN 9)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

BATCH_STATUSES = ("staging", "ready", "running", "paused", "done", "cancelled", "failed")
BATCH_RECORDS = ("kept", "going", "gone")
BATCH_POLICIES = ("all_or_nothing", "best_effort")


class IssueBatch(Base):
    """One row a batch; its number is ``batch_id`` in decimal, as ``coupon.batch_no`` has it.

    ``row_count`` = valid + invalid rows of the audience, blank ones apart; valid = ``audience_count`` distinct users +
    ``duplicate_count``. In the end ``issued_count`` + ``refused_count`` = ``audience_count``. ``left_quantity`` units
    are reserved and not issued yet: part of the template's ``reserved_quantity``, given back once. ``reason`` says why
    it failed or was paused by itself. ``records`` says whether its members and failures are kept still. Of its coupons
    ``archived_count`` lie in the archive.
    """

    __tablename__ = "issue_batch"

    batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    name: Mapped[str]
    policy: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=text("'staging'"))
    reason: Mapped[str | None]
    tags: Mapped[str | None]
    file_name: Mapped[str | None]
    start_at: Mapped[datetime | None]
    needs_approval: Mapped[bool] = mapped_column(server_default=text("false"))
    approved_by: Mapped[str | None]
    row_count: Mapped[int] = mapped_column(server_default=text("0"))
    invalid_count: Mapped[int] = mapped_column(server_default=text("0"))
    blank_count: Mapped[int] = mapped_column(server_default=text("0"))
    duplicate_count: Mapped[int] = mapped_column(server_default=text("0"))
    audience_count: Mapped[int] = mapped_column(server_default=text("0"))
    issued_count: Mapped[int] = mapped_column(server_default=text("0"))
    refused_count: Mapped[int] = mapped_column(server_default=text("0"))
    archived_count: Mapped[int] = mapped_column(server_default=text("0"))
    reserved_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    left_quantity: Mapped[int] = mapped_column(server_default=text("0"))
    shard_count: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    updated_at: Mapped[datetime]
    records: Mapped[str] = mapped_column(server_default=text("'kept'"))

    __table_args__ = (
        one_of("status", BATCH_STATUSES, "status"),
        one_of("records", BATCH_RECORDS, "records"),
        one_of("policy", BATCH_POLICIES, "policy"),
        CheckConstraint("row_count = invalid_count + duplicate_count + audience_count", name="rows_add_up"),
        CheckConstraint("issued_count + refused_count <= audience_count", name="never_over_issued"),
        CheckConstraint("archived_count BETWEEN 0 AND issued_count", name="archived"),
        CheckConstraint("left_quantity BETWEEN 0 AND reserved_quantity", name="left"),
        CheckConstraint("issued_count + left_quantity <= reserved_quantity", name="within_reservation"),
        CheckConstraint(
            "(status = 'done') <= (issued_count + refused_count = audience_count AND left_quantity = 0)", name="done"
        ),
        CheckConstraint("(status IN ('cancelled', 'failed')) <= (left_quantity = 0)", name="nothing_kept"),
        Index("ix_issue_batch_open", "status", "batch_id"),
        Index("ix_issue_batch_template", "template_id", "batch_id"),
        Index("ix_issue_batch_records", "finished_at", postgresql_where=text("records <> 'gone'")),
    )


class IssueShard(Base):
    """One row a shard: members 1 to ``cursor`` have been issued or refused. ``gate_cursor`` is how far the gate has
    been told to count them."""

    __tablename__ = "issue_shard"

    batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    shard: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    member_count: Mapped[int] = mapped_column(Integer)
    cursor: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    gate_cursor: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    updated_at: Mapped[datetime]

    __table_args__ = (
        CheckConstraint("cursor BETWEEN 0 AND member_count", name="cursor"),
        CheckConstraint("gate_cursor BETWEEN 0 AND cursor", name="gate_cursor"),
    )
