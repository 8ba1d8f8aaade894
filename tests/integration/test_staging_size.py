"""Large audiences: PostgreSQL holds them, the worker does not (DESIGN 14)."""

from __future__ import annotations

import pytest

from coupon_workers.runtime.services import Services
from tests.support.staging_batch import csv_of, parquet_of, staged, waiting_batch
from tests.support.staging_child import stage_in_child

ROWS = 200_000


@pytest.mark.parametrize(
    ("name", "most_mib"),
    [
        ("users.csv", 64),
        ("users.parquet", 160),  # 50 of them are its library
    ],
)
def test_memory_does_not_grow_with_the_audience(services: Services, name: str, most_mib: int) -> None:
    """Some blocks, some parts, whatever the file."""
    users = [f"user-{n % (ROWS - 5):09}" for n in range(ROWS)]
    content = csv_of(users) if name == "users.csv" else parquet_of([*users])
    batch_id = waiting_batch(services, content, name=name)

    ended = stage_in_child(services.settings, batch_id)

    found = staged(services, batch_id)
    assert (ROWS, 0, 0, 5, ROWS - 5) == found.counts
    assert 20 == found.shard_count
    assert ended.told is not None and ended.told["growth_mib"] < most_mib
