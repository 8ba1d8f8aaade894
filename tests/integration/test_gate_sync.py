"""A template's change on its way to the gate: in any order, doubled, late or never, the gate ends at the newest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from coupon_workers.claiming.gate_sync import sync_template
from coupon_workers.claiming.key import BucketKeys
from coupon_workers.claiming.outcome import ClaimOutcome
from coupon_workers.runtime.services import Services
from coupon_workers.templates.template_change import patch_template
from tests.support.redis_dump import dump
from tests.support.sale import Sale, assert_sound, open_sale
from tests.support.template import change_template, insert_template


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ten units, one of them taken."""
    opened = open_sale(services, per_user_limit=1)
    opened.claim("ann")
    opened.drain()
    return opened


def test_a_change_holds_for_the_next_claim(sale: Sale) -> None:
    """Status, limit, channels, window and total."""
    change_template(sale.services.engine, sale.template_id, per_user_limit=2, channels_claim=["app"], total_quantity=12)

    sync_template(sale.services, sale.template_id)

    assert ClaimOutcome.NOT_ELIGIBLE == sale.claim("ann", "r2", channel="web").outcome
    assert ClaimOutcome.ACCEPTED == sale.claim("ann", "r2", channel="app").outcome
    assert 10 == sale.stock
    assert_sound(sale.services)


def test_a_change_told_twice_acts_once(sale: Sale) -> None:
    """And one that changes nothing does nothing."""
    change_template(sale.services.engine, sale.template_id, total_quantity=15)

    sync_template(sale.services, sale.template_id)
    sync_template(sale.services, sale.template_id)

    assert 14 == sale.stock


def test_a_change_of_a_cold_template_waits_for_the_preheat(services: Services) -> None:
    """Of keys that are not whole none is written, but that no build may open the gate at an older version."""
    insert_template(services.engine)
    change_template(services.engine, 7_001, total_quantity=15)
    before = dump(services.redis)

    sync_template(services, 7_001)

    told = BucketKeys(7_001).told
    assert b"2" == services.redis.get(told)
    services.redis.delete(told)
    assert before == dump(services.redis)


@pytest.mark.parametrize("status", ["draft", None])
def test_a_template_the_gate_may_not_know_is_not_told(services: Services, status: str | None) -> None:
    """Never published, or not there at all."""
    if status:
        insert_template(services.engine, status=status)

    sync_template(services, 7_001)

    assert [] == services.redis.keys("cw:{t*")


def test_changes_made_at_once_end_at_the_newest_total(sale: Sale) -> None:
    """Eight operators change the total while claims come in; whoever is told last does not win."""

    def change(total: int) -> None:
        patch_template(sale.services, sale.template_id, {"name": f"n{total}"})
        change_template(sale.services.engine, sale.template_id, total_quantity=total)
        sync_template(sale.services, sale.template_id)

    with ThreadPoolExecutor(6) as threads:
        changes = [threads.submit(change, total) for total in range(20, 36)]
        claims = [threads.submit(sale.claim, f"u{number}") for number in range(15)]
        for changed in changes:
            changed.result()
        for claimed in claims:
            claimed.result()
    sale.drain()

    assert sale.books["total_quantity"] == sale.stock + len(sale.coupons())
    assert_sound(sale.services)
