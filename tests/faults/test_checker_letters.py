"""The checker must bite: what each letter of FAULTS.md forbids, done by hand, is seen under that letter."""

from __future__ import annotations

from typing import Any

import pytest

from coupon_workers.claiming.gate import Decision
from coupon_workers.claiming.outcome import ClaimOutcome
from tests.support.fault_bites import UNITS
from tests.support.fault_post import encode, put
from tests.support.history_shop import SECRET, HistoryShop, OpenShop


def test_a_coupon_beyond_the_total_is_seen(open_shop: OpenShop) -> None:
    """A, and E with it: a unit more than there are cannot be accounted for."""
    shop = open_shop()
    for number in range(UNITS):
        shop.claim(f"u{number}", "r1")
    shop.sale.drain()

    execute(
        shop,
        'INSERT INTO coupon SELECT (jsonb_populate_record(c, \'{"coupon_id": 4711, "claim_seq": 9,'
        ' "request_id": "r9"}\')).* FROM coupon c LIMIT 1',
        "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, to_status, operator)"
        " SELECT user_id, coupon_id, 1, 'issue', 'unused', 'claim' FROM coupon WHERE coupon_id = 4711",
    )

    assert "AE" == shop.broken_letters()


def test_a_coupon_without_its_history_is_seen(open_shop: OpenShop) -> None:
    """F, whether a row is missing or tells of a step that does not exist."""
    shop = open_shop()
    shop.claim("ann", "r1")
    shop.claim("bob", "r1")
    shop.sale.drain()

    execute(shop, "DELETE FROM coupon_flow WHERE user_id = 'ann'")
    missing = shop.broken_letters()
    execute(shop, "DELETE FROM coupon WHERE user_id = 'ann'", "UPDATE coupon_template SET issued_quantity = 1")
    shop.history.path.write_text("")
    shop.sale.preheat()
    mended = shop.broken_letters()
    execute(
        shop,
        "INSERT INTO coupon_flow (user_id, coupon_id, flow_no, action, from_status, to_status, operator)"
        " SELECT user_id, coupon_id, 2, 'redeem', 'locked', 'redeemed', 'x' FROM coupon",
    )

    assert ("F", "", "F") == (missing, mended, shop.broken_letters())


def execute(shop: HistoryShop, *statements: str) -> None:
    """Do in the database what no code of ours does."""
    with shop.sale.services.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_a_message_that_somebody_took_and_forgot_is_seen(open_shop: OpenShop) -> None:
    """G."""
    shop = open_shop()
    message_id = put(shop.broker, "settle", encode("settle_claims", [1, 0], "settle"))
    queued = shop.broken_letters()

    shop.broker.lpop("dramatiq:settle")
    shop.broker.sadd("dramatiq:__acks__.nobody.settle", message_id)

    assert ("", "G") == (queued, shop.broken_letters())


@pytest.mark.parametrize(
    ("status", "answer", "headers", "letters"),
    [
        (500, {"code": "INTERNAL_ERROR"}, {}, "H"),
        (502, "<html>bad gateway</html>", {}, "H"),
        (503, {"code": "BACKLOG_FULL"}, {}, "H"),
        (503, {"code": "BACKLOG_FULL"}, {"retry-after": "1"}, ""),
        (409, {"code": "SOLD_OUT", "detail": f"key {SECRET}"}, {}, "I"),
        (409, {"code": "SOLD_OUT", "detail": "postgresql+psycopg2://postgres@/coupon"}, {}, "I"),
        (409, {"code": "SOLD_OUT", "detail": 'File "/x/y.py", line 3'}, {}, "I"),
    ],
)
def test_an_answer_no_client_may_get_is_seen(
    open_shop: OpenShop, status: int, answer: Any, headers: dict[str, str], letters: str
) -> None:
    """H for its kind, I for what it tells."""
    shop = open_shop()
    body = {"template_id": str(shop.sale.template_id), "user_id": "ann", "request_id": "r1"}

    shop.history.hears(shop.history.sends("claim", body), status, answer, headers)

    assert letters == shop.broken_letters()


@pytest.mark.parametrize(
    "line", [f"who has {SECRET}?", "Traceback (most recent call last):", "amqp://shop:secret@broker/ is away"]
)
def test_a_log_that_tells_too_much_is_seen(open_shop: OpenShop, line: str) -> None:
    """I."""
    shop = open_shop()
    shop.logs.append(f"all is well\n{line}\n")

    assert "I" == shop.broken_letters()


def test_an_accepted_claim_that_is_denied_later_is_seen(open_shop: OpenShop) -> None:
    """C when it is refused, D when it is not found."""
    shop = open_shop()
    decision = shop.claim("ann", "r1")
    shop.sale.drain()
    assert decision is not None

    shop.claim("ann", "r1", lambda: Decision(ClaimOutcome.SOLD_OUT))
    refused = shop.broken_letters()
    look = shop.history.sends("status", {"target": f"/v1/claims/{decision.claim_id}"})
    shop.history.hears(look, 404, {"code": "CLAIM_NOT_FOUND"}, {})

    assert ("C", "CD") == (refused, shop.broken_letters())
