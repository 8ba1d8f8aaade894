"""``code_batch``, ``code_export_part``: redeem codes of a template, and their plain texts until they are fetched."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of

CODE_BATCH_STATUSES = ("generating", "done", "revoked", "expired")
CODE_EXPORTS = ("kept", "fetched", "dropped")


class CodeBatch(Base):
    """One row a batch of codes; its number is ``code_batch_id`` in decimal, as ``coupon.batch_no`` has it.

    ``left_quantity`` units of the template are set aside for codes that are not used: part of its
    ``reserved_quantity``, given back once. ``generated_count`` codes are stored, ``used_count`` are used; the gate has
    counted the users of the first ``gate_cursor``. ``pepper_id`` names the key of their hashes. Without ``expires_at``
    the codes end with the template's ``claim_end``, and never later. ``export`` says whether the plain texts are there;
    whoever fetches them holds ``fetch_token`` until ``fetch_until``.
    """

    __tablename__ = "code_batch"

    code_batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    template_id: Mapped[int]
    status: Mapped[str] = mapped_column(server_default=text("'generating'"))
    quantity: Mapped[int] = mapped_column(Integer)
    length: Mapped[int] = mapped_column(SmallInteger)
    prefix: Mapped[str]
    canonical_prefix: Mapped[str]
    channel: Mapped[str | None]
    check_digit: Mapped[bool]
    pepper_id: Mapped[str]
    expires_at: Mapped[datetime | None]
    generated_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    used_count: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    left_quantity: Mapped[int] = mapped_column(Integer)
    gate_cursor: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    export: Mapped[str] = mapped_column(server_default=text("'kept'"))
    fetch_token: Mapped[str | None]
    fetch_until: Mapped[datetime | None]
    fetched_by: Mapped[str | None]
    fetched_at: Mapped[datetime | None]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    ended_by: Mapped[str | None]
    ended_at: Mapped[datetime | None]
    updated_at: Mapped[datetime]

    __table_args__ = (
        one_of("status", CODE_BATCH_STATUSES, "status"),
        one_of("export", CODE_EXPORTS, "export"),
        CheckConstraint("generated_count BETWEEN 0 AND quantity", name="generated"),
        CheckConstraint("used_count BETWEEN 0 AND generated_count", name="used"),
        CheckConstraint("gate_cursor BETWEEN 0 AND used_count", name="gate_cursor"),
        CheckConstraint(
            "left_quantity = CASE WHEN status IN ('generating', 'done') THEN quantity - used_count ELSE 0 END",
            name="left",
        ),
        CheckConstraint("(status = 'done') <= (generated_count = quantity)", name="done"),
        CheckConstraint("(export = 'fetched') = (fetched_at IS NOT NULL)", name="fetched"),
        Index("ix_code_batch_status", "status", "code_batch_id"),
        Index("ix_code_batch_template", "template_id", "code_batch_id"),
        # Where its siblings of the same form are looked for, and what the gate has not been told.
        Index("ix_code_batch_form", "canonical_prefix", "length"),
        Index("ix_code_batch_uncounted", "code_batch_id", postgresql_where=text("gate_cursor < used_count")),
    )


class CodeExportPart(Base):
    """The plain texts of one chunk of codes, sealed; stored with their hashes, deleted once they were fetched."""

    __tablename__ = "code_export_part"

    code_batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    part_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    content: Mapped[bytes] = mapped_column(LargeBinary)
