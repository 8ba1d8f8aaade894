"""The disk of a server is full under load, and has room again (FAULTS 19)."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Engine

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import transaction
from tests.support.fault_campaign import Campaign, OpenCampaign
from tests.support.fault_disk import disk_full, fill_disk_of
from tests.support.fault_hold import descendants
from tests.support.fault_system import FaultSystem
from tests.support.fault_wait import until
from tests.support.history import Operation

FULL_S = 2.0


def test_a_redis_that_cannot_write_its_log_refuses_and_has_lost_nothing(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """503 from the moment it notices; what it had accepted by then it still holds, and writes once there is room."""
    campaign = open_campaign(seed=191)

    with campaign.under_load():
        campaign.load.wait_for(300)
        with disk_full(system.family("redis")):
            until(lambda: log_status(campaign) == "err", what="a write that failed")
            from_s = time.monotonic()
            time.sleep(FULL_S)
            to_s = time.monotonic()
        until(lambda: log_status(campaign) == "ok", what="a write that worked")
        campaign.load.wait_for(300)
    campaign.heal()

    meanwhile = asked_between(campaign, from_s, to_s)
    campaign.facts["asked meanwhile"] = len(meanwhile)
    assert {(503, "STORE_UNAVAILABLE")} == {(op.status, op.code) for op in meanwhile if op.status >= 500}
    assert not [op for op in meanwhile if op.status == 202]
    assert {} == campaign.broken_letters()


def log_status(campaign: Campaign) -> str:
    """Whether the last write of the append-only file worked: ``ok`` or ``err``."""
    found: dict[str, str] = campaign.stock.info("persistence")  # type: ignore[assignment]  # it is typed as both kinds
    return found["aof_last_write_status"]


def asked_between(campaign: Campaign, from_s: float, to_s: float) -> list[Operation]:
    """Claims that were asked and answered within these instants."""
    return [op for op in campaign.operations() if op.name == "claim" and from_s < op.sent_s and op.heard_s < to_s]


def test_a_database_that_cannot_write_its_log_ends_and_comes_back_with_everything(
    system: FaultSystem, open_campaign: OpenCampaign
) -> None:
    """PostgreSQL panics, cannot recover either, and ends. Claims are accepted meanwhile, and settled afterwards."""
    campaign = open_campaign(seed=192)

    with campaign.under_load():
        campaign.load.wait_for(200)
        with system.held_once_ended("postgres", lambda pid: fill_disk_of([pid, *descendants(pid)])):
            campaign.load.wait_for(200)
        campaign.load.wait_for(200)
    campaign.heal()

    assert not [op for op in campaign.operations() if op.status >= 500 and op.status != 503]
    assert {} == campaign.broken_letters()


@pytest.mark.parametrize("code", ["disk_full", "io_error", "internal_error"])
def test_a_table_that_cannot_grow_makes_the_store_unavailable(engine: Engine, code: str) -> None:
    """As PostgreSQL says it of a full disk, a broken one, a limit of files; nothing of the transaction stays."""
    full = f"DO $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '{code}'; END $$"

    with pytest.raises(StoreUnavailable), transaction(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE half_done (n integer)")
        connection.exec_driver_sql(full)

    with transaction(engine) as connection:
        assert connection.exec_driver_sql("SELECT to_regclass('half_done')").scalar_one() is None
