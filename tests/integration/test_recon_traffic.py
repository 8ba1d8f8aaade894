"""The readers under traffic: what is on its way is no difference. And repairs that meet what they repair at work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import text

from coupon_workers.claiming.settlement import drain
from coupon_workers.coupons.expiry import expire_coupons
from coupon_workers.errors import Conflict, CouponWorkersError
from coupon_workers.reconciliation.batch_differences import batch_differences
from coupon_workers.reconciliation.difference import Difference
from coupon_workers.reconciliation.repair_name import RepairName
from coupon_workers.reconciliation.state_differences import state_differences
from coupon_workers.reconciliation.stock_differences import stock_differences
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.campaign import Campaign, plan_campaign
from tests.support.order_shop import OrderShop, ShopClock
from tests.support.recon_reading import found, only, repair, work
from tests.support.sale import Sale, assert_sound, open_sale

READINGS = 6


@contextmanager
def at_work(*jobs: Callable[[int], object]) -> Iterator[None]:
    """Each job again and again, with its turn's number, side by side; what one raises fails the test."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def run(job: Callable[[int], object]) -> None:
        turn = 0
        try:
            while not stop.wait(0.002):
                job(turn)
                turn += 1
        except BaseException as error:  # noqa: BLE001 - told to the test
            raised.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert [] == raised


class Shop:
    """Claims, campaigns, orders and sweeps of one shop."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sale = open_sale(services, total_quantity=1_000_000, per_user_limit=3)
        self.given = open_sale(services, template_id=7_002, total_quantity=100_000)
        self.orders = OrderShop(services, ShopClock(utc_now()))
        self.template = self.orders.template(template_id=7_003)
        self.campaigns: list[Campaign] = []

    def claim(self, turn: int) -> None:
        """Two users, one of whom came before."""
        for number in (turn, turn // 2):
            self.sale.claim(f"u{number}", f"r{turn % 7}")

    def settle(self, turn: int) -> None:
        """As the worker does."""
        drain(self.services, self.sale.template_id, 0)

    def give(self, turn: int) -> None:
        """Small campaigns, step by step."""
        if not self.campaigns or self.campaigns[-1].books["status"] == "done":
            campaign = plan_campaign(self.given, [f"m{turn}-{number}" for number in range(60)])
            campaign.start()
            self.campaigns.append(campaign)
        self.campaigns[-1].work(chunk=5, most=3)
        self.campaigns[-1].sweep()

    def order(self, turn: int) -> None:
        """Lock, and then pay, release or return."""
        self.orders.clock.now = utc_now()
        order, coupon = f"o{turn}", self.orders.issue(self.template)
        self.orders.lock(order, [coupon])
        if turn % 3 == 0:
            self.orders.release(order)
            return
        self.orders.pay(order, f"pay-{turn}")
        if turn % 3 == 1:
            self.orders.refund(order, f"ref-{turn}")

    def end(self, turn: int) -> None:
        """Some coupons run out, and the sweep ends them."""
        with self.services.engine.begin() as connection:
            connection.execute(
                text(
                    "UPDATE coupon SET valid_from = now() - interval '1 day', valid_to = now() - interval '1 second'"
                    " WHERE status = 'unused' AND template_id = :template_id AND coupon_id IN"
                    " (SELECT coupon_id FROM coupon WHERE status = 'unused' AND template_id = :template_id LIMIT 5)"
                ),
                {"template_id": self.sale.template_id},
            )
        expire_coupons(self.services, utc_now())

    def settle_all(self) -> None:
        """Nothing is left to do."""
        self.settle(0)
        for campaign in self.campaigns:
            campaign.work()
            campaign.sweep()


def test_what_is_on_its_way_is_no_difference(services: Services) -> None:
    """Claims, campaigns, orders and sweeps go on while everything is read again and again; nothing is found, as of
    the moment or a moment before. When all is quiet everything is judged, and sound."""
    shop = Shop(services)
    differences: list[Difference] = []

    with at_work(shop.claim, shop.settle, shop.give, shop.order, shop.end):
        for _ in range(READINGS):
            as_of = utc_now()
            differences += stock_differences(services, as_of, None, patience_s=1.0).differences
            differences += state_differences(services, as_of, None).differences
            differences += batch_differences(services, as_of, None).differences
    shop.settle_all()

    assert [] == differences
    assert [] == found(services)
    assert frozenset() == stock_differences(services, utc_now(), None, patience_s=1.0).unjudged
    assert_sound(services)


def test_a_difference_is_found_beside_the_traffic_of_others(services: Services) -> None:
    """A unit lost where nothing moves, and a coupon whose version is wrong."""
    shop = Shop(services)
    coupon_id = shop.orders.issue(shop.template, "bob")
    services.redis.decr(shop.given.keys.stock)
    shop.orders.execute("UPDATE coupon SET version = 2 WHERE coupon_id = :id", id=coupon_id)

    with at_work(shop.claim, shop.settle, shop.order):
        as_of = utc_now()
        stock = stock_differences(services, as_of, None, patience_s=1.0)
        state = state_differences(services, as_of, None)

    assert ["gate_stock_differs"] == [each.finding_class for each in stock.differences]
    assert ["status_differs"] == [each.finding_class for each in state.differences]


@pytest.fixture
def sale(services: Services) -> Sale:
    """Three users a coupon each."""
    sale = open_sale(services, total_quantity=1_000_000)
    sale.claim_each(["ann", "bob", "cid"])
    sale.drain()
    return sale


def test_a_recount_is_exact_while_claims_are_settled(sale: Sale) -> None:
    """The counter is wrong, and moves on while it is counted: again and again it ends as its rows are."""
    services = sale.services
    counter = text("UPDATE coupon_template SET issued_quantity = issued_quantity + 7")

    def settle(turn: int) -> None:
        sale.claim_each([f"u{turn}-{number}" for number in range(20)])
        sale.drain()

    with at_work(settle):
        for _ in range(20):
            with services.engine.begin() as connection:
                connection.execute(counter)
            with suppress(Conflict):  # the turn may be taken: the next run repairs it
                repair(services, _wrong_counter(sale))
    repair(services, _wrong_counter(sale))
    sale.drain()

    assert [] == found(services)
    assert_sound(services)


def _wrong_counter(sale: Sale) -> Difference:
    return Difference(
        finding_class="issued_counter_differs",
        subject=f"template {sale.template_id}",
        evidence={},
        repair=RepairName.RECOUNT_TEMPLATE,
        template_id=sale.template_id,
    )


def test_of_a_payment_and_a_release_at_once_one_comes_first(services: Services) -> None:
    """The order is redeemed, or it is released; either way its coupon is whole."""
    shop = OrderShop(services, ShopClock(utc_now()))
    template = shop.template()
    for turn in range(10):
        order, coupon = f"o{turn}", shop.issue(template)
        shop.lock(order, [coupon])
        shop.clock.pass_by(minutes=31)
        difference = only(shop.services)
        outcomes: list[str] = []

        def pay(order: str = order, outcomes: list[str] = outcomes) -> None:
            with suppress(CouponWorkersError):
                shop.pay(order, f"pay-{order}")
                outcomes.append("paid")

        payer = threading.Thread(target=pay)
        payer.start()
        with suppress(Conflict):
            repair(shop.services, difference)
            outcomes.append("released")
        payer.join()

        assert outcomes
        assert [] == found(shop.services)
    assert_sound(shop.services)


def test_a_gate_is_rebuilt_under_traffic(services: Services) -> None:
    """A unit is lost while claims come: when all is quiet it is found, and the rebuild mends it."""
    shop = Shop(services)
    with at_work(shop.claim, shop.settle):
        services.redis.decr(shop.sale.keys.stock)
        stock_differences(services, utc_now(), None, patience_s=0.5)
    shop.settle_all()
    difference = only(services)

    with at_work(shop.claim, shop.settle):
        repair(services, difference)
        services.post.sent[:] = [t for t in services.post.sent if t.name == "preheat_template"]  # type: ignore[attr-defined]
        work(services)
    shop.settle_all()

    assert "gate_stock_differs" == difference.finding_class
    assert [] == found(services)
    assert_sound(services)
