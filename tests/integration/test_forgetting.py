"""What is over is forgotten kind by kind: one that fails holds up no other, and is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from coupon_workers.runtime.services import Services
from coupon_workers.scheduling.forgetting import forget_what_is_over
from tests.support.order_shop import START, OrderShop

LONG_AFTER = timedelta(days=200)


@pytest.fixture
def shop(services: Services) -> Iterator[OrderShop]:
    """A shop whose job runs cannot be deleted, nor those of reconciliations."""
    shop = OrderShop(services)

    def break_off(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        if "DELETE FROM job_run" in statement or "DELETE FROM recon_run" in statement:
            raise InterruptedError("job_run" if "job_run" in statement else "recon_run")

    event.listen(services.engine, "before_cursor_execute", break_off)
    yield shop
    event.remove(services.engine, "before_cursor_execute", break_off)


def test_a_kind_that_cannot_be_forgotten_holds_up_no_other(shop: OrderShop) -> None:
    """Those before it and after it are forgotten all the same; the first failure is told at the end."""
    shop.execute(
        "INSERT INTO order_event (user_id, event_id, order_no, type, occurred_at, body, fingerprint, state, code,"
        " received_at, tried_at)"
        " VALUES ('ann', 'e1', 'o1', 'closed', :at, '{}', '', 'refused', 'ORDER_NOT_FOUND', :at, :at)",
        at=START,
    )
    shop.execute(
        "INSERT INTO risk_list_entry (dimension, value, list, expires_at, version, changed_at)"
        " VALUES ('user', 'bob', 'block', :at, 1, :at)",
        at=START,
    )
    shop.execute("INSERT INTO claim_set_aside VALUES (1, 0, '1-0', 'user=ann', 'no claim', :at)", at=START)
    shop.clock.now += LONG_AFTER

    with pytest.raises(InterruptedError, match="job_run"):
        forget_what_is_over(shop.services)

    assert [] == shop.rows("SELECT event_id FROM order_event")
    assert [] == shop.rows("SELECT value FROM risk_list_entry")
    assert [] == shop.rows("SELECT entry_id FROM claim_set_aside")
