"""Orders that end before they begin, and events that cannot be done: what their callers hear."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from coupon_workers.runtime.services import Services
from tests.support.order_shop import OrderShop
from tests.support.sale import assert_sound


def test_a_lock_that_met_the_orders_end_has_the_same_answer_when_it_is_sent_again(services: Services) -> None:
    """The order was closed before the lock came: it holds nothing, however often it is asked."""
    shop = OrderShop(services)
    coupon = shop.issue(shop.template())
    shop.tell("e1", "o1", "closed", shop.clock.now)

    first = shop.lock("o1", [coupon])
    again = shop.lock("o1", [coupon])

    assert "released" == first["status"]
    assert first == again
    assert "unused" == shop.status(coupon)
    assert_sound(shop.services)


def test_an_order_that_was_released_by_its_owner_may_lock_again(services: Services) -> None:
    """It was not closed: the buyer has come back."""
    shop = OrderShop(services)
    coupon = shop.issue(shop.template())
    shop.lock("o1", [coupon])
    shop.release("o1")

    again = shop.lock("o1", [coupon])

    assert ("locked", "locked") == (again["status"], shop.status(coupon))


def test_a_refused_event_says_what_was_wrong(services: Services) -> None:
    """A stable code, and a word for people."""
    shop = OrderShop(services)
    shop.pay_directly("o1", [shop.issue(shop.template())])
    lines = [{"line_id": "1", "quantity": 7}]

    answer = shop.tell("e1", "o1", "refunded", shop.clock.now, lines=lines)

    assert ("refused", "VALIDATION_FAILED") == (answer["state"], answer["code"])
    assert "Only 1 are left" in answer["detail"]


def test_an_order_number_with_a_slash_is_refused_in_events_too(services: Services) -> None:
    """No address could lock or read such an order."""
    shop = OrderShop(services)

    with pytest.raises(ValidationError) as refused:
        shop.tell("e1", "a/b", "closed", shop.clock.now)

    assert [("order_no",)] == [error["loc"] for error in refused.value.errors()]
