"""Entries that were set aside are forgotten after ninety days, by an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from coupon_workers.claiming import set_aside_retention
from coupon_workers.claiming.set_aside_retention import KEEP, forget_set_aside
from coupon_workers.runtime.services import Services

AT = datetime(2026, 11, 11, tzinfo=UTC)


def _set_aside(services: Services, count: int, *, bucket: int = 0, at: datetime = AT) -> None:
    with services.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO claim_set_aside (template_id, bucket, entry_id, payload, reason, at)"
                " SELECT 1, :bucket, n || '-0', 'user=ann', 'no claim', :at FROM generate_series(1, :count) AS n"
            ),
            {"bucket": bucket, "at": at, "count": count},
        )


def _left(services: Services) -> int:
    with services.engine.connect() as connection:
        return int(connection.scalar(text("SELECT count(*) FROM claim_set_aside")) or 0)


def test_entries_set_aside_are_forgotten_after_ninety_days(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks, and not a day too early; again there is nothing to do."""
    monkeypatch.setattr(set_aside_retention, "CHUNK", 2)
    _set_aside(services, 5)
    _set_aside(services, 1, bucket=1, at=AT + timedelta(days=1))

    early = forget_set_aside(services, AT + KEEP)
    late = forget_set_aside(services, AT + KEEP + timedelta(microseconds=1))
    again = forget_set_aside(services, AT + KEEP + timedelta(microseconds=1))

    assert (0, 5, 0, 1) == (early, late, again, _left(services))


def test_old_entries_are_found_by_an_index(services: Services) -> None:
    """However many somebody has written."""
    _set_aside(services, 20_000)
    with services.engine.begin() as connection:
        connection.execute(text("ANALYZE claim_set_aside"))

    with services.engine.begin() as connection:
        statement = text(f"EXPLAIN {set_aside_retention._FORGET.text}")
        plan = "\n".join(connection.scalars(statement, {"before": AT + KEEP, "chunk": 1_000}))

    assert "ix_claim_set_aside_at" in plan
    assert "Seq Scan" not in plan
