"""Whom a batch is for: the uploaded file until it is staged, the distinct users, the rows that got no coupon."""

from __future__ import annotations

from sqlalchemy import Index, Integer, LargeBinary, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from coupon_workers.schema.base import Base


class AudienceFile(Base):
    """``audience_file``: the bytes of an upload, a part a row; deleted once they are staged."""

    __tablename__ = "audience_file"

    batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    part_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    content: Mapped[bytes] = mapped_column(LargeBinary)


class AudienceMember(Base):
    """``audience_member``: one row a distinct user of a batch, numbered from 1 within his shard.

    ``row_no`` is where the file has him first; 0 for audiences by tags.
    """

    __tablename__ = "audience_member"

    batch_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    shard: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    member_no: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    user_id: Mapped[str]
    row_no: Mapped[int]


class BatchFailure(Base):
    """``batch_failure``: a row of the audience that got no coupon. ``reason``: INVALID, DUPLICATE, or a refusal's code;
    ``detail`` for people."""

    __tablename__ = "batch_failure"

    failure_id: Mapped[int] = mapped_column(primary_key=True)
    batch_id: Mapped[int]
    row_no: Mapped[int]
    value: Mapped[str]
    reason: Mapped[str]
    detail: Mapped[str | None]

    __table_args__ = (Index("ix_batch_failure_row", "batch_id", "row_no", "failure_id"),)


class UserTag(Base):
    """``user_tag``: what the shop knows of a user, for audiences by expression."""

    __tablename__ = "user_tag"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    tag: Mapped[str] = mapped_column(primary_key=True)

    __table_args__ = (Index("ix_user_tag_tag", "tag", "user_id"),)
