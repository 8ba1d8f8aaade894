"""A call of the order centre that is not heard to its end: sent again, it has one effect and answer (DESIGN 3.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coupon_workers.errors import StoreUnavailable
from coupon_workers.orders.unlock_sweep import settle_met_events
from coupon_workers.runtime.services import Services
from tests.support.crash import dies_at
from tests.support.lost_commit import commit_lost
from tests.support.order_books import books, nothing_written, refused_without_a_trace
from tests.support.order_shop import START, Json, OrderShop
from tests.support.sale import assert_sound

Call = Callable[[OrderShop, int], Json]

CALLS: dict[str, tuple[list[Call], Call]] = {
    # what goes before, and the call
    "lock": ([], lambda shop, coupon: shop.lock("o1", [coupon])),
    "redeem": ([lambda shop, coupon: shop.lock("o1", [coupon])], lambda shop, _: shop.pay("o1")),
    "redeem directly": ([], lambda shop, coupon: shop.pay_directly("o1", [coupon])),
    "release": ([lambda shop, coupon: shop.lock("o1", [coupon])], lambda shop, _: shop.release("o1")),
    "unlock": ([lambda shop, coupon: shop.lock("o1", [coupon])], lambda shop, coupon: shop.unlock(coupon)),
    "refund": (
        [lambda shop, coupon: shop.pay_directly("o1", [coupon])],
        lambda shop, _: shop.refund("o1", "ref-1", [("1", 1)]),
    ),
    "event": (
        [lambda shop, coupon: shop.lock("o1", [coupon])],
        lambda shop, _: shop.tell("e1", "o1", "paid", START, payment_no="pay-1"),
    ),
    "event that waits": ([], lambda shop, _: shop.tell("e1", "o1", "paid", START)),
}


@pytest.fixture
def shop(services: Services) -> OrderShop:
    """A shop at noon."""
    return OrderShop(services)


def prepared(shop: OrderShop, name: str) -> tuple[Callable[[], Json], dict[str, list[str]]]:
    """The call, with all that goes before it done; and the books by then."""
    before, call = CALLS[name]
    coupon = shop.issue(shop.template())
    for step in before:
        step(shop, coupon)
    return lambda: call(shop, coupon), books(shop.services)


@pytest.mark.parametrize("point", ["order.before_commit", "order.after_commit"])
@pytest.mark.parametrize("name", CALLS)
def test_a_front_that_dies_leaves_all_or_nothing(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch, name: str, point: str
) -> None:
    """Before the commit nothing has happened, after it everything; sent again it is the same, and so once more."""
    call, before = prepared(shop, name)

    with dies_at(monkeypatch, point):
        call()
    left = books(shop.services)
    shop.clock.pass_by(seconds=1)
    first = call()
    with nothing_written(shop.services):
        again = call()

    assert (point == "order.before_commit") == (before == left)
    assert (point == "order.after_commit") == (left == books(shop.services))
    assert first == again
    assert 2 >= len(shop.ledger())
    assert_sound(shop.services)


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("name", CALLS)
def test_a_commit_of_which_nothing_is_heard_is_asked_again(shop: OrderShop, name: str, done: bool) -> None:
    """PostgreSQL went away at the COMMIT: the caller is told that nothing is known, and asks again."""
    call, before = prepared(shop, name)

    with commit_lost(shop.services.engine, done=done), pytest.raises(StoreUnavailable):
        call()
    left = books(shop.services)
    first = call()
    with nothing_written(shop.services):
        again = call()

    assert (not done) == (before == left)
    assert done == (left == books(shop.services))
    assert first == again
    assert_sound(shop.services)


def test_a_front_that_dies_over_a_lock_that_its_payment_waited_for_has_paid(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is refused then, as any lock of a paid order, and says by which payment."""
    coupon = shop.issue(shop.template())
    shop.tell("e1", "o1", "paid", START, payment_no="pay-1")

    with dies_at(monkeypatch, "order.after_commit"):
        shop.lock("o1", [coupon])

    assert ("ALREADY_REDEEMED", {"payment_no": "pay-1"}) == refused_without_a_trace(
        shop, lambda: shop.lock("o1", [coupon])
    )
    assert ("redeemed", 2_000) == (shop.read("o1")["status"], shop.expense())


def test_a_worker_that_dies_over_waiting_events_leaves_them_to_the_next(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after the commit: they are settled once."""
    template = shop.template()
    for number in range(3):
        shop.tell(f"e{number}", f"x{number}", "paid", START)
        shop.lock(f"o{number}", [shop.issue(template)])
    shop.execute("UPDATE order_event SET order_no = replace(order_no, 'x', 'o')")

    for point in ("order.before_commit", "order.after_commit"):
        with dies_at(monkeypatch, point):
            settle_met_events(shop.services)

    assert (2, 0) == (settle_met_events(shop.services), settle_met_events(shop.services))
    assert (6_000, 3) == (shop.expense(), len(shop.ledger()))
    assert_sound(shop.services)
