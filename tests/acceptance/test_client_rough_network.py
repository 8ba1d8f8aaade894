"""The client over a network that cuts connections, before a real installation: whatever is lost, the effect is once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from coupon_workers.client import CouponClient, NoAnswer, RetryPolicy
from coupon_workers.client.order_answer import OrderBody
from tests.support.http_desk import template_body
from tests.support.http_faulty_way import FaultyWay, Loss, faulty_way
from tests.support.http_system import System

QUICK = RetryPolicy(timeout_s=10, deadline_s=30, backoff_s=0.02, backoff_cap_s=0.1)

SCOPES = ("storefront", "orders", "admin", "ops")

PAIRS = list(product(Loss, repeat=2))
"""What happens to the first attempt and to the second; the third gets through."""


@pytest.fixture(scope="module")
def key(system: System) -> str:
    """A key that opens everything."""
    made = system.command("keys", "create", "--name", "client", *(word for s in SCOPES for word in ("--scope", s)))
    return made.stdout.strip()


@pytest.fixture
def way(system: System) -> Iterator[FaultyWay]:
    """The way to the front."""
    with faulty_way(system.base_url) as way:
        yield way


@pytest.fixture
def client(way: FaultyWay, key: str) -> Iterator[CouponClient]:
    """The client behind it."""
    with CouponClient(way.base_url, key, retry=QUICK) as client:
        yield client


@pytest.mark.parametrize("losses", PAIRS, ids=str)
def test_a_write_is_done_once(client: CouponClient, way: FaultyWay, losses: tuple[Loss, ...]) -> None:
    """A template with a key made by the client; its audit log tells of one."""
    name = " ".join(loss.name for loss in losses)
    way.plan(*losses)

    made = client.templates.create(template_body(name=name))

    assert 3 == way.requests
    assert [made["template_id"]] == [each["template_id"] for each in client.templates.every() if each["name"] == name]
    assert 1 == len(list(client.back_office.audit_log(subject=f"template:{made['template_id']}")))


def test_a_claim_and_its_order_are_done_once(client: CouponClient, way: FaultyWay) -> None:
    """Claim, lock, payment and return, each with both kinds of loss before it."""
    template_id = client.templates.create(template_body(per_user_limit=None))["template_id"]
    client.templates.publish(template_id)
    user = f"客 {template_id}".replace(" ", "/")
    order: OrderBody = {
        "user_id": user,
        "currency": "CNY",
        "lines": [{"line_id": "1", "product_id": "p9", "unit_price": 10_000, "quantity": 3}],
    }

    for loss in Loss:
        number = f"{template_id}-{loss.name}"
        way.plan(loss)
        claim_id = client.claims.claim(template_id, user, number)["claim_id"]
        assert "issued" == client.claims.read(claim_id, wait_s=10)["status"]
        way.plan(loss, Loss.OF_THE_ANSWER)
        client.orders.lock(number, order, [claim_id])
        way.plan(loss, Loss.OF_THE_ANSWER)
        client.orders.redeem(number, user, f"P-{number}")
        way.plan(loss, Loss.OF_THE_ANSWER)
        client.orders.refund(number, user, f"R-{number}", [{"line_id": "1", "quantity": 1}])

    for loss in Loss:
        whole = client.orders.read(f"{template_id}-{loss.name}", user)
        assert ("redeemed", 1, 2_000) == (whole["status"], len(whole["refunds"]), whole["discount"])
    assert len(Loss) == len(list(client.wallet.coupons(user))) == client.templates.read(template_id)["stock"]["issued"]


def test_a_call_that_had_no_answer_can_be_taken_up_later(
    system: System, client: CouponClient, way: FaultyWay, key: str
) -> None:
    """By another client, with the identity that the error tells."""
    body = template_body()
    way.plan(*[Loss.OF_THE_ANSWER] * 50)
    hasty = CouponClient(way.base_url, key, retry=RetryPolicy(deadline_s=0.5, backoff_s=0.1))
    with hasty, pytest.raises(NoAnswer) as lost:
        hasty.templates.create(body)

    with CouponClient(system.base_url, key) as other:
        made = other.templates.create(body, idempotency_key=lost.value.identity)
        log = list(other.back_office.audit_log(subject=f"template:{made['template_id']}"))

    assert 1 == len(log)
    assert way.requests > 1
