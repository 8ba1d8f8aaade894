"""The collector of cycles in processes that settle."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from coupon_workers.runtime.cycle_collector import NEW_OBJECTS, collect_seldom


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    """This process goes on as it was."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_is_there_is_not_gone_through_again_and_cycles_are_still_found() -> None:
    """The collector is on, and due after more new objects."""
    collect_seldom()

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert NEW_OBJECTS == gc.get_threshold()[0]
