"""Coupons that were won and ended long ago move into the archive; lotteries and books still add up."""

from __future__ import annotations

from datetime import timedelta

from coupon_workers.claiming.preheat import preheat_template
from coupon_workers.reconciliation.kind import ReconKind
from coupon_workers.runtime.clock import to_ms, utc_now
from coupon_workers.runtime.services import Services
from tests.support.archiving import LONG_AFTER, ArchiveShop
from tests.support.lottery import coupon_prize, open_lottery
from tests.support.order_shop import START
from tests.support.reconciling import ReconDesk
from tests.support.sale import assert_sound
from tests.support.template import read_template


def test_coupons_that_were_won_are_archived_and_counted(services: Services) -> None:
    """A draw finds its coupon there, and the template has what it gave."""
    shop = ArchiveShop(services)
    template_id = shop.template(total_quantity=9)
    preheat_template(shop.services, template_id)
    fair = open_lottery(shop.services, [coupon_prize(template_id, 4)], start=START)
    for user in ("ann", "bob"):
        fair.draw(user, now_ms=to_ms(START + timedelta(minutes=5)))
    fair.drain()
    shop.clock.now = START + timedelta(days=10)
    fair.sweep()
    shop.expire()
    shop.clock.now = LONG_AFTER

    moved = shop.archive()

    books = read_template(services.engine, template_id)
    assert (2, 2, 2, 0) == (
        moved, books["archived_quantity"], books["archived_granted_quantity"], books["reserved_quantity"],
    )  # fmt: skip
    assert "ended" == fair.books["status"]
    assert_sound(services)
    desk = ReconDesk(services, utc_now())
    assert [[], []] == [desk.reconcile(kind) for kind in (ReconKind.STOCK, ReconKind.BATCHES)]


def test_a_recount_knows_what_lotteries_keep_and_gave(services: Services) -> None:
    """Counters that are wrong are found and set to what the rows are."""
    shop = ArchiveShop(services)
    template_id = shop.template(total_quantity=9)
    fair = open_lottery(shop.services, [coupon_prize(template_id, 4)], start=START)
    fair.draw("ann", now_ms=to_ms(START + timedelta(minutes=5)))
    fair.drain()
    shop.execute("UPDATE coupon_template SET reserved_quantity = 1, granted_quantity = 0")

    ReconDesk(services, utc_now()).reconcile(ReconKind.BATCHES)

    books = read_template(services.engine, template_id)
    assert (3, 1) == (books["reserved_quantity"], books["granted_quantity"])
