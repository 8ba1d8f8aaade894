"""``api_key`` and ``idempotency``: who may call, and what was answered to a key of a request."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base, one_of


class ApiKey(Base):
    """One row a key. Only the SHA-256 of the key is kept: the key has 256 random bits, so no salt is needed."""

    __tablename__ = "api_key"

    key_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    key_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    signed: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    revoked_at: Mapped[datetime | None]


class Idempotency(Base):
    """One row an ``Idempotency-Key`` of an API key: the fingerprint of the request, and the stored answer.

    A ``running`` row is given up at ``deadline``: whoever comes after takes it over. ``subject_id`` is the identity of
    whatever the request makes, allotted before it runs: the one who takes it over makes the same thing, not another.
    """

    __tablename__ = "idempotency"

    key_id: Mapped[str] = mapped_column(primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    state: Mapped[str]
    deadline: Mapped[datetime]
    subject_id: Mapped[int]
    response_status: Mapped[int | None]
    response_body: Mapped[str | None]
    response_type: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"))

    __table_args__ = (
        one_of("state", ("running", "done"), "state"),
        Index("ix_idempotency_created_at", "created_at"),
    )
