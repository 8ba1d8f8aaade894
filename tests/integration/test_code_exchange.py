"""Exchanging a code: one coupon, once, whoever asks how often (DESIGN 3, 11)."""

from __future__ import annotations

import pytest

from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.services import Services
from tests.support.code_batch import hand_out_codes
from tests.support.gift import Refusal, coupon_row, events, flow, refusal
from tests.support.sale import assert_sound, open_sale


def test_a_code_becomes_a_coupon_of_its_own(services: Services) -> None:
    """With its history, its event, and its unit moved from what was set aside to what is issued."""
    sale = open_sale(services, total_quantity=10, per_user_limit=2)
    desk = hand_out_codes(sale, 3)

    exchanged = desk.exchange(desk.codes[0], "u-1", "form-1", channel="app")

    row = coupon_row(sale, exchanged.coupon_id)
    assert not exchanged.replayed
    assert ("u-1", str(desk.code_batch_id), 1, "code\tform-1", "unused", "code") == (
        row["user_id"],
        row["batch_no"],
        row["claim_seq"],
        row["request_id"],
        row["status"],
        row["source"],
    )
    assert [(1, "issue", None, "unused", "code")] == flow(sale, exchanged.coupon_id)
    assert [("u-1", exchanged.coupon_id)] == events(sale, "coupon.issued")
    assert (1, 2, 1) == tuple(sale.books[name] for name in ("issued_quantity", "reserved_quantity", "granted_quantity"))
    assert (7, "1 0") == (sale.stock, sale.taker("u-1"))
    assert_sound(services)


def test_the_owner_gets_his_coupon_again(services: Services) -> None:
    """With the same request or another; after the batch was revoked, too (DESIGN 3.3)."""
    desk = hand_out_codes(open_sale(services, total_quantity=10), 1)
    first = desk.exchange(desk.codes[0], "u-1", "form-1")
    revoke_code_batch(services, desk.code_batch_id, "key-1")

    again = [desk.exchange(desk.codes[0].lower(), "u-1", request) for request in ("form-1", "form-2")]

    assert [(first.coupon_id, True)] * 2 == [(each.coupon_id, each.replayed) for each in again]
    assert_sound(services)


def test_a_request_is_for_one_code(services: Services) -> None:
    """Whatever the other code is worth: nothing is told of it, and nothing used up."""
    desk = hand_out_codes(open_sale(services, total_quantity=10), 2)
    desk.exchange(desk.codes[0], "u-1", "form-1")

    refused = [refusal(lambda code=code: desk.exchange(code, "u-1", "form-1")) for code in (desk.codes[1], "X")]

    assert [Refusal("REQUEST_REUSED")] * 2 == refused
    assert 1 == desk.books["used_count"]


@pytest.mark.parametrize("limit", ["per_user_limit", "per_user_daily_limit"])
def test_a_limit_refuses_a_code_and_leaves_it_unused(services: Services, limit: str) -> None:
    """It is another user's to use then (DESIGN 3.4)."""
    sale = open_sale(services, total_quantity=10, **{limit: 1})
    desk = hand_out_codes(sale, 2)
    desk.exchange(desk.codes[0], "u-1", "form-1")

    refused = refusal(lambda: desk.exchange(desk.codes[1], "u-1", "form-2"))
    other = desk.exchange(desk.codes[1], "u-2", "form-1")

    code = "LIMIT_REACHED" if limit == "per_user_limit" else "DAILY_LIMIT_REACHED"
    assert Refusal(code) == refused
    assert not other.replayed
    assert_sound(services)


def test_a_claim_counts_what_codes_have_given(services: Services) -> None:
    """The gate knows of each use, once, and so does a preheat."""
    sale = open_sale(services, total_quantity=10, per_user_limit=3)
    desk = hand_out_codes(sale, 4)
    desk.exchange(desk.codes[0], "u-1", "form-1")
    sale.preheat()
    desk.exchange(desk.codes[1], "u-1", "form-2")

    sale.claim("u-1", "r1")
    outcome = sale.claim("u-1", "r2").outcome

    assert ("limit_reached", "3 2") == (outcome.value.lower(), sale.taker("u-1"))
    sale.drain()
    assert_sound(services)


def test_a_code_of_a_template_that_is_stopped_or_not_open_stays_unused(services: Services) -> None:
    """It is right, and its owner is told so."""
    sale = open_sale(services, total_quantity=10)
    desk = hand_out_codes(sale, 1)
    sale.rows("SELECT 1")
    with services.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE coupon_template SET status = 'paused'")

    with pytest.raises(Conflict) as refused:
        desk.exchange(desk.codes[0], "u-1")

    assert "PAUSED" == refused.value.code
    with services.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE coupon_template SET status = 'offline'")
    with pytest.raises(NotFound):
        desk.exchange(desk.codes[0], "u-1")
    assert 0 == desk.books["used_count"]
