"""What all tables share: naming of constraints, UTC instants, and the helper for enumerated texts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, DateTime, MetaData, Text
from sqlalchemy.orm import DeclarativeBase

NAMING = {
    "pk": "pk_%(table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
}

PARTITIONS = 8
"""Hash partitions of ``coupon`` and ``coupon_flow``: enough to spread vacuum and index work over the cores of a
large server, few enough that a look-up by coupon number alone (an operator's tool) stays cheap."""


class Base(DeclarativeBase):
    """Declarative base: ``int`` is bigint, ``str`` is text, ``datetime`` is timestamptz."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this class attribute
        int: BigInteger,
        str: Text,
        datetime: DateTime(timezone=True),
    }


def one_of(column: str, values: Iterable[str], name: str) -> CheckConstraint:
    """A CHECK that ``column`` holds one of ``values``; the values are our own words, never input."""
    quoted = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({quoted})", name=name)
