"""Campaign batches are reconciled: what their books contradict is found once, and what is safe is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.batch_control import cancel_batch, pause_batch
from coupon_workers.errors import Conflict
from coupon_workers.reconciliation.batch_differences import batch_differences
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.recon_reading import differences, found, only, repair, work
from tests.support.sale import Sale, assert_sound, open_sale

USERS = [f"u{number}" for number in range(8)]


@dataclass
class Scene:
    """Batches of one template: done with a refusal, running, paused, cancelled, ready."""

    sale: Sale
    batches: dict[str, Campaign]

    def sql(self, statement: str) -> Scene:
        """Change the database behind everyone's back; batches by their states: ``:done``. The scene, for what comes
        next."""
        named = {name: batch.batch_id for name, batch in self.batches.items() if f":{name}" in statement}
        with self.sale.services.engine.begin() as connection:
            connection.execute(text(statement), named)
        return self

    def only(self) -> Difference:
        """The one difference there is."""
        return only(self.sale.services)


@pytest.fixture
def scene(services: Services) -> Scene:
    """One batch of each kind; u1 has had all he may."""
    sale = open_sale(services, total_quantity=50, per_user_limit=5)
    for number in range(5):
        sale.claim("u1", f"r{number}")
    sale.drain()
    batches = {name: plan_campaign(sale, USERS) for name in ("done", "running", "paused", "cancelled", "ready")}
    for name in ("running", "paused", "cancelled"):
        batches[name].start()
        batches[name].work(most=1)
        services.post.sent.clear()  # type: ignore[attr-defined]
    batches["done"].start()
    batches["done"].work()
    pause_batch(services, batches["paused"].batch_id, "key-2")
    cancel_batch(services, batches["cancelled"].batch_id, "key-2")
    services.post.sent.clear()  # type: ignore[attr-defined]
    return Scene(sale, batches)


STUCK = "UPDATE issue_batch SET updated_at = now() - interval '16 minutes' WHERE batch_id = :running"

DAMAGE: dict[str, tuple[Callable[[Scene], object], str, RepairName | None]] = {
    "a count of issued coupons moved": (
        lambda s: s.sql("UPDATE issue_batch SET issued_count = issued_count - 1 WHERE batch_id = :cancelled"),
        "batch_counts_differ",
        None,
    ),
    "a refusal lost": (
        lambda s: s.sql("DELETE FROM batch_failure WHERE batch_id = :done"),
        "batch_counts_differ",
        None,
    ),
    "a shard lost": (
        lambda s: s.sql("DELETE FROM issue_shard WHERE batch_id = :ready AND shard = 0"),
        "batch_counts_differ",
        None,
    ),
    "a batch that keeps less than it should": (
        lambda s: s.sql("UPDATE issue_batch SET left_quantity = left_quantity - 1 WHERE batch_id = :paused"),
        "batch_counts_differ",
        None,
    ),
    "a coupon of a batch that is none": (
        lambda s: s.sql("UPDATE coupon SET batch_no = '4711' WHERE batch_no = CAST(:done AS text) AND user_id = 'u0'"),
        "stray_coupons",
        None,
    ),
    "a batch that stands still": (lambda s: s.sql(STUCK), "batch_stuck", RepairName.WAKE_BATCH),
    "units kept by what does not issue": (
        lambda s: s.sql("UPDATE issue_batch SET reserved_quantity = 3, left_quantity = 3 WHERE batch_id = :ready"),
        "reservation_kept",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a template that keeps what no batch has": (
        lambda s: s.sql("UPDATE coupon_template SET reserved_quantity = reserved_quantity + 2"),
        "reserved_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a template that keeps less than its batches": (
        lambda s: s.sql("UPDATE coupon_template SET reserved_quantity = reserved_quantity - 2"),
        "reserved_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a gate that was built from a wrong book": (
        lambda s: (s.sql("UPDATE coupon_template SET reserved_quantity = reserved_quantity + 2"), s.sale.preheat()),
        "reserved_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
    "a template that has given what no batch gave": (
        lambda s: s.sql("UPDATE coupon_template SET granted_quantity = granted_quantity - 1"),
        "granted_counter_differs",
        RepairName.RECOUNT_TEMPLATE,
    ),
}


def test_batches_in_every_state_have_no_differences(scene: Scene) -> None:
    """What was examined are the batches."""
    reading = batch_differences(scene.sale.services, scene.sale.services.clock(), None)

    assert (5, []) == (reading.examined, reading.differences)
    assert [] == found(scene.sale.services)
    assert_sound(scene.sale.services)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_is_found_once(scene: Scene, damage: str) -> None:
    """One root, one difference, the same when it is read again."""
    act, finding_class, proposed = DAMAGE[damage]
    act(scene)

    difference = scene.only()

    assert (finding_class, proposed) == (difference.finding_class, difference.repair)
    assert [difference] == differences(scene.sale.services)


@pytest.mark.parametrize("damage", [name for name, (_, _, proposed) in DAMAGE.items() if proposed])
def test_what_is_mended_is_gone(scene: Scene, damage: str) -> None:
    """After the repair, done twice, the readers find nothing, and every invariant holds."""
    DAMAGE[damage][0](scene)
    difference = scene.only()

    for _ in range(2):
        repair(scene.sale.services, difference)
    work(scene.sale.services)

    assert [] == found(scene.sale.services)
    assert_sound(scene.sale.services)


def test_a_batch_whose_template_is_paused_waits(scene: Scene) -> None:
    """It is not stuck: it goes on with its template."""
    scene.sql(STUCK).sql("UPDATE coupon_template SET status = 'paused'")
    scene.sale.preheat()

    assert [] == found(scene.sale.services)


def test_a_batch_that_has_ended_meanwhile_is_not_woken(scene: Scene) -> None:
    """It was found stuck, and is through by now."""
    scene.sql(STUCK)
    difference = scene.only()
    repair(scene.sale.services, difference)
    work(scene.sale.services)

    with pytest.raises(Conflict) as refusal:
        repair(scene.sale.services, difference)

    assert ("INVALID_STATUS", "done") == (refusal.value.code, refusal.value.evidence["current_status"])


def test_a_batch_made_after_the_moment_is_not_judged(scene: Scene) -> None:
    """Whatever is wrong with it now."""
    scene.sql(STUCK)

    reading = batch_differences(scene.sale.services, scene.sale.services.clock() - timedelta(hours=1), None)

    assert [] == reading.differences
