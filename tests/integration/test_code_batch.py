"""A batch of codes: its units set aside as a whole, and given back once (DESIGN 3.1, 11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import text

from coupon_workers.campaigns.reservation import free_units
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_batch_reading import read_one
from coupon_workers.codes.code_form import CodeForm
from coupon_workers.codes.code_lookup import CodeState, look_up_code
from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.codes.new_code_batch import NewCodeBatch, create_code_batch
from coupon_workers.errors import CapacityError, Conflict, InvalidInput
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.code_batch import hand_out_codes, plan_codes
from tests.support.gift import Refusal, at_once, refusal
from tests.support.sale import assert_sound, open_sale


def test_codes_take_their_units_from_the_stock_at_once(services: Services) -> None:
    """What claims may take is less by them, in the books and at the gate; a campaign finds as many fewer."""
    sale = open_sale(services, total_quantity=10)

    plan_codes(sale, 6)

    with services.engine.begin() as connection:
        assert 4 == free_units(services, connection, sale.template_id)
    assert (4, 6) == (sale.stock, sale.books["reserved_quantity"])
    assert_sound(services)


def test_more_codes_than_units_are_refused_as_a_whole(services: Services) -> None:
    """Queued claims have their units already."""
    sale = open_sale(services, total_quantity=10)
    sale.claim_each(["u1", "u2", "u3"])

    refused = refusal(lambda: plan_codes(sale, 8))

    assert Refusal("NOT_ENOUGH_STOCK", (("available", 7),)) == refused
    assert [] == sale.rows("SELECT code_batch_id FROM code_batch")
    plan_codes(sale, 7)
    sale.drain()
    assert_sound(services)


def test_codes_that_could_be_guessed_are_refused(services: Services) -> None:
    """A million of length 4; and those of one form are counted together (CASES 27)."""
    sale = open_sale(services, total_quantity=1_000_000)
    form = CodeForm(8)
    plan_codes(sale, form.allowed - 1, form)

    with pytest.raises(CapacityError) as short:
        plan_codes(sale, 1_000_000, CodeForm(4))
    with pytest.raises(CapacityError) as full:
        plan_codes(sale, 2, form)

    assert (23**3, 0) == (short.value.space, short.value.allowed)
    assert (23**7, 1) == (full.value.space, full.value.allowed)
    plan_codes(sale, 2, CodeForm(8, "OTHER"))


def test_batches_made_at_once_are_no_more_codes_than_may_be_alive(services: Services) -> None:
    """Of several templates: nothing else keeps their makers apart."""
    form = CodeForm(8)
    sales = [open_sale(services, template_id=number, total_quantity=1_000_000) for number in range(1, 5)]

    made = at_once(*[partial(plan_codes, sale, form.allowed // 2 + 1, form) for sale in sales])

    assert 3 == sum(isinstance(each, CapacityError) for each in made)
    [(alive,)] = sales[0].rows("SELECT sum(quantity) FROM code_batch")
    assert form.allowed // 2 + 1 == alive


def test_the_same_batch_again_is_the_same(services: Services) -> None:
    """A request that is sent again after its process died sets nothing aside twice."""
    sale = open_sale(services, total_quantity=10)
    batch = NewCodeBatch(services.next_id(0), sale.template_id, 6, CodeForm())

    at_once(*[lambda: create_code_batch(services, batch, "key-1")] * 5)

    assert 6 == sale.books["reserved_quantity"]
    assert_sound(services)


@pytest.mark.parametrize("status", ["draft", "pending_approval", "offline", "archived", "ended"])
def test_codes_are_for_a_template_that_is_published_and_not_over(services: Services, status: str) -> None:
    """Else nobody could ever exchange them."""
    sale = open_sale(services, total_quantity=10)
    gone = "claim_end = now() - interval '1 s'" if status == "ended" else f"status = '{status}'"
    with services.engine.begin() as connection:
        connection.execute(text(f"UPDATE coupon_template SET {gone}"))

    with pytest.raises(Conflict) as refused:
        plan_codes(sale, 1)

    assert ("TEMPLATE_NOT_ACTIVE", status) == (refused.value.code, refused.value.evidence["current_status"])


def test_codes_end_within_their_templates_time(services: Services) -> None:
    """An end that has passed, or lies after the template's, is none."""
    sale = open_sale(services, total_quantity=10)

    for end in (utc_now() - timedelta(seconds=1), sale.books["claim_end"] + timedelta(seconds=1)):
        with pytest.raises(InvalidInput) as refused:
            plan_codes(sale, 1, expires_at=end)
        assert ["expires_at"] == [field for field, _ in refused.value.errors]


def test_a_revoked_batch_gives_back_the_units_of_unused_codes_once(services: Services) -> None:
    """However often and by how many it is revoked; coupons of used ones stay."""
    sale = open_sale(services, total_quantity=10)
    desk = hand_out_codes(sale, 6)
    desk.exchange(desk.codes[0], "u-1")

    at_once(*[lambda: revoke_code_batch(services, desk.code_batch_id, "key-2")] * 6)

    assert (9, 0, 1) == (sale.stock, sale.books["reserved_quantity"], sale.books["issued_quantity"])
    assert ("revoked", 0, "key-2") == tuple(desk.books[name] for name in ("status", "left_quantity", "ended_by"))
    assert Refusal("CODE_INVALID") == refusal(lambda: desk.exchange(desk.codes[1], "u-2"))
    assert ["u-1"] == list(sale.coupons().values())
    assert_sound(services)


def test_exchanges_and_a_revocation_at_once_add_up(services: Services) -> None:
    """Each code is used or given back, never both."""
    sale = open_sale(services, total_quantity=40)
    desk = hand_out_codes(sale, 24)
    tries = [lambda n=n: desk.exchange(desk.codes[n], f"u-{n}") for n in range(24)]

    at_once(*tries[:12], lambda: revoke_code_batch(services, desk.code_batch_id, "key-2"), *tries[12:])

    used = desk.books["used_count"]
    assert (40 - used, used) == (sale.stock, sale.books["issued_quantity"])
    assert_sound(services)


def test_a_batch_that_is_over_gives_its_units_back(services: Services) -> None:
    """By the sweep, at its own end or its template's; a code reads expired before the sweep has come."""
    sale = open_sale(services, total_quantity=10)
    end = utc_now() + timedelta(hours=1)
    desk = hand_out_codes(sale, 3, expires_at=end)
    whole = hand_out_codes(sale, 2)
    later = replace(services, clock=lambda: end)

    assert CodeState.UNUSED == look_up_code(services, desk.codes[0]).state
    assert CodeState.EXPIRED == look_up_code(later, desk.codes[0]).state
    swept = [sweep_codes(later)["expired"], sweep_codes(later)["expired"]]

    assert [1, 0] == swept
    assert ("expired", "done") == (desk.books["status"], whole.books["status"])
    assert (8, 2) == (sale.stock, sale.books["reserved_quantity"])
    with pytest.raises(Conflict, match="cannot be revoked"):
        revoke_code_batch(services, desk.code_batch_id, "key-2")
    assert_sound(services)


def test_a_batch_tells_how_far_it_is(services: Services) -> None:
    """And never a code."""
    desk = plan_codes(open_sale(services, total_quantity=30), 30)
    waiting = read_one(services, desk.code_batch_id)
    desk.generate(chunk=10)

    done = read_one(services, desk.code_batch_id)

    assert ("generating", 0, 0.0, 30) == (waiting.status, waiting.generated, waiting.percent, waiting.reserved)
    assert ("done", 30, 100.0, "kept", None) == (
        done.status,
        done.generated,
        done.percent,
        done.export,
        done.eta_seconds,
    )
    assert [] == [code for code in desk.fetch() if code in done.model_dump_json()]


def test_a_code_is_looked_up_by_what_was_typed(services: Services) -> None:
    """Who has used it, and for which coupon; its text is in no answer."""
    desk = hand_out_codes(open_sale(services, total_quantity=30), 2)
    exchanged = desk.exchange(desk.codes[0], "u-1")

    used = look_up_code(services, f" {desk.codes[0].lower()} ")

    assert ("used", "u-1", str(exchanged.coupon_id)) == (used.state, used.user_id, used.coupon_no)
    assert desk.codes[0] not in used.model_dump_json()
    assert Refusal("CODE_NOT_FOUND") == refusal(lambda: look_up_code(services, "K7WX-3MPD-9RTC"))
    assert Refusal("CODE_NOT_FOUND") == refusal(lambda: look_up_code(services, "?"))
    revoke_code_batch(services, desk.code_batch_id, "key-2")
    assert ["used", "revoked"] == [look_up_code(services, code).state for code in desk.codes]
