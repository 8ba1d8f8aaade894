"""Reconciliation counts archived coupons by their counters: none is missing, and a recount keeps them (DESIGN 10)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.services import Services
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.campaign import plan_campaign
from tests.support.gift import Refusal, refusal
from tests.support.recon_reading import differences, found, only, repair
from tests.support.sale import Sale, assert_sound, gate_of


@pytest.fixture
def shop(services: Services) -> ArchiveShop:
    """A shop with a claim and two grants in the archive, and a claim and a grant that live on."""
    shop = ArchiveShop(services)
    template = shop.template()
    batch = plan_campaign(Sale(shop.services, template, gate_of(shop.services)), ["u1", "u2", "u3"])
    batch.start()
    batch.work()
    shop.ended(template)
    shop.issue(template, valid_to=LONG_AFTER + timedelta(days=9))
    shop.execute(
        "UPDATE coupon SET valid_to = CASE user_id WHEN 'u1' THEN :later ELSE :soon END WHERE source = 'batch'",
        later=LONG_AFTER + timedelta(days=9),
        soon=shop.clock.now + timedelta(minutes=1),
    )
    shop.execute("UPDATE coupon_template SET updated_at = :now", now=shop.clock.now)
    shop.expire()
    shop.clock.now = LONG_AFTER
    assert 3 == shop.archive()
    return shop


def _template(shop: ArchiveShop) -> int:
    [(template,)] = shop.rows("SELECT template_id FROM coupon_template")
    return int(template)


def test_archived_coupons_are_no_difference(shop: ArchiveShop) -> None:
    """Of stock, state and batches; without their counters they are missed."""
    with_counters = found(shop.services)
    shop.execute("UPDATE coupon_template SET archived_quantity = 0, archived_granted_quantity = 0")
    shop.execute("UPDATE issue_batch SET archived_count = 0")

    assert [] == with_counters
    assert {"batch_counts_differ", "issued_counter_differs"} <= {each for each, _ in found(shop.services)}


def test_a_recount_counts_them_in(shop: ArchiveShop) -> None:
    """A counter that is wrong becomes living and archived ones together, and no gate is asked for."""
    template = _template(shop)
    shop.execute("UPDATE coupon_template SET issued_quantity = 4")
    difference = only(shop.services)

    done = repair(shop.services, difference)

    assert ("issued_counter_differs", RepairName.RECOUNT_TEMPLATE) == (difference.finding_class, difference.repair)
    assert ({"issued": 5, "rejected": 0, "reserved": 0, "granted": 3, "held": 0}, False) == (
        done["after"],
        done["preheat_sent"],
    )
    assert (5, 3, 2) == shop.counters(template)
    assert [] == differences(shop.services)
    assert_sound(shop.services)


def test_a_gate_with_archived_coupons_is_not_rebuilt(shop: ArchiveShop) -> None:
    """It would not count them. Whoever proposed it before they were archived is told."""
    shop.execute("UPDATE coupon_template SET issued_quantity = 4")
    difference = only(shop.services)

    refused = refusal(lambda: repair(shop.services, replace(difference, repair=RepairName.PREHEAT)))

    assert Refusal("HAS_ARCHIVED", (("archived", 3),)) == refused
