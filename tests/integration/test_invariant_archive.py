"""The checker bites on the archive: its books are broken on purpose, and exactly what was broken is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from coupon_workers.checking.report import check_all
from coupon_workers.finance.adjustment import Adjustment, book_adjustment
from coupon_workers.runtime.services import Services
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.campaign import plan_campaign
from tests.support.sale import Sale, gate_of

BRIEFLY_S = 0.3


@dataclass
class Scene:
    """A claim, a grant, and a transfer with both its coupons in the archive, and a coupon that lives on."""

    shop: ArchiveShop
    coupons: dict[str, int]

    def sql(self, *statements: str) -> Scene:
        """Change the database behind everyone's back; coupons by their names: ``:claimed``. The scene, for what comes
        next."""
        for statement in statements:
            named = {name: coupon for name, coupon in self.coupons.items() if f":{name}" in statement}
            self.shop.execute(statement, **named)
        return self

    def broken(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {breach.invariant for breach in check_all(self.shop.services, patience_s=BRIEFLY_S).breaches}


@pytest.fixture
def scene(services: Services) -> Scene:
    """Old coupons of one template, archived."""
    shop = ArchiveShop(services)
    template = shop.template(transferable=True)
    batch = plan_campaign(Sale(shop.services, template, gate_of(shop.services)), ["carl"], shards=1)
    batch.start()
    batch.work()
    coupons = {
        "claimed": shop.ended(template),
        "given": shop.ended(template),
        "living": shop.issue(template, valid_to=LONG_AFTER + timedelta(days=9)),
    }
    coupons["received"] = shop.give(coupons["given"], "bob")
    [(coupons["granted"],)] = shop.rows("SELECT coupon_id FROM coupon WHERE user_id = 'carl'")
    shop.execute("UPDATE coupon SET valid_to = :end WHERE user_id = 'carl'", end=shop.clock.now + timedelta(minutes=1))
    shop.execute("UPDATE coupon_template SET updated_at = :now", now=shop.clock.now)
    shop.expire()
    shop.clock.now = LONG_AFTER
    assert 4 == shop.archive()
    return Scene(shop, coupons)


def test_an_archive_breaks_no_rule(scene: Scene) -> None:
    """Its coupons are a fact beside the living ones."""
    report = check_all(scene.shop.services, patience_s=BRIEFLY_S)

    assert report.holds, report.breaches
    assert (1, 4) == (report.facts["coupons"], report.facts["archived"])


def test_an_adjustment_of_an_order_elsewhere_outlives_its_coupon(services: Services) -> None:
    """A coupon that was on no order here may have one, and is archived all the same."""
    shop = ArchiveShop(services)
    coupon = shop.ended(shop.template())
    adjustment = Adjustment(
        reference="a-1",
        user_id=shop.user,
        order_no="elsewhere",
        coupon_id=coupon,
        amount_minor=300,
        reason="used in the old shop",
    )
    book_adjustment(shop.services, adjustment, "key-1")
    shop.expire()
    shop.clock.now = LONG_AFTER
    assert 1 == shop.archive()

    report = check_all(services, patience_s=BRIEFLY_S)

    assert report.holds, report.breaches


NO_LONGER = "DELETE FROM coupon_flow_archive WHERE coupon_id = "

BREAKS: dict[str, tuple[Callable[[Scene], object], set[str]]] = {
    "a counter of the template": (
        lambda s: s.sql("UPDATE coupon_template SET archived_quantity = archived_quantity - 1"),
        {"archive_books", "issued_count"},
    ),
    "a counter of what was granted": (
        lambda s: s.sql("UPDATE coupon_template SET archived_granted_quantity = 0"),
        {"archive_books", "batch_books"},
    ),
    "a counter of the batch": (
        lambda s: s.sql("UPDATE issue_batch SET archived_count = 0"),
        {"archive_books", "batch_books"},
    ),
    "a coupon lost": (
        lambda s: s.sql("DELETE FROM coupon_archive WHERE coupon_id = :claimed", f"{NO_LONGER} :claimed"),
        {"archive_books"},
    ),
    "a received coupon lost": (
        lambda s: s.sql("DELETE FROM coupon_archive WHERE coupon_id = :received", f"{NO_LONGER} :received"),
        {"transfer_link"},
    ),
    "a step lost": (
        lambda s: s.sql(f"{NO_LONGER} :claimed AND flow_no = 2"),
        {"archive_books"},
    ),
    "a history left behind": (
        lambda s: s.sql(
            "INSERT INTO coupon_flow SELECT user_id, coupon_id, flow_no, action, from_status, to_status, order_no,"
            " operator, request_id, at FROM coupon_flow_archive WHERE coupon_id = :claimed",
            f"{NO_LONGER} :claimed",
        ),
        {"archive_books", "flow_history"},
    ),
    "another end": (
        lambda s: s.sql("UPDATE coupon_archive SET status = 'revoked' WHERE coupon_id = :claimed"),
        {"archive_books"},
    ),
    "a coupon that was on an order": (
        lambda s: s.sql(
            "INSERT INTO coupon_use (user_id, order_no, coupon_id, template_id, state, position, discount_minor,"
            " allocations) SELECT user_id, 'o1', coupon_id, template_id, 'released', 1, 1, '[]' FROM coupon_archive"
            " WHERE coupon_id = :claimed"
        ),
        {"archive_books", "use_history", "order_use", "order_money"},
    ),
    "a coupon in both tables": (
        lambda s: s.sql(
            "INSERT INTO coupon SELECT user_id, coupon_id, template_id, batch_no, claim_seq, request_id, status,"
            " version, face_value_minor, template_version, valid_from, valid_to, order_no, source, channel, claimed_at,"
            " issued_at, updated_at FROM coupon_archive WHERE coupon_id = :claimed"
        ),
        {"archive_books", "flow_history", "issued_count", "one_effect"},
    ),
    "one issued beside the archive": (
        lambda s: s.shop.issue(s.shop.rows("SELECT template_id FROM coupon")[0][0], "dora", issued_at=_after(s)),
        {"archive_books"},
    ),
    "a request that has two effects": (
        lambda s: s.sql("UPDATE coupon_archive SET request_id = 'r3' WHERE coupon_id = :claimed"),
        {"one_effect"},
    ),
    "a claim that was rejected too": (
        lambda s: s.sql(
            "INSERT INTO claim_rejection (claim_id, user_id, template_id, request_id, claim_seq, reason, claimed_at)"
            " SELECT coupon_id, user_id, template_id, 'other', 1, 'PAUSED', claimed_at FROM coupon_archive"
            " WHERE coupon_id = :claimed",
            "UPDATE coupon_template SET rejected_quantity = 1",
        ),
        {"one_effect"},
    ),
}


def _after(scene: Scene) -> object:
    return scene.shop.clock.now + timedelta(seconds=1)


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_is_reported(scene: Scene, name: str) -> None:
    """And nothing else."""
    breaks, rules = BREAKS[name]

    breaks(scene)

    assert rules == scene.broken()
