"""Generating codes: exactly as many as were asked for, whoever dies in their midst (CASES 27, 28)."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
from pydantic import SecretStr

from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.code_drawing import draw_codes
from coupon_workers.codes.code_form import CodeForm
from coupon_workers.codes.code_generation import generate_chunk, run_generation
from coupon_workers.codes.code_sweep import FORGOTTEN, sweep_codes
from coupon_workers.codes.pepper_ring import pepper_ring
from coupon_workers.errors import Conflict
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.services import Services
from tests.support.code_batch import CodeDesk, hand_out_codes, plan_codes
from tests.support.code_crash import in_child
from tests.support.gift import at_once
from tests.support.sale import Sale, assert_sound, open_sale

LARGE = 100_000


@pytest.fixture
def sale(services: Services) -> Sale:
    """Units for every code of these tests."""
    return open_sale(services, total_quantity=1_000_000)


def assert_each_text_is_a_stored_code(desk: CodeDesk) -> None:
    """As many as were asked for, all different, and the hashes of the texts are the hashes that are stored."""
    pepper = pepper_ring(desk.services.settings).newest
    stored = {bytes(row[0]) for row in desk.sale.rows("SELECT code_hash FROM code")}
    assert desk.books["quantity"] == len(desk.codes) == len(set(desk.codes))
    assert stored == {pepper.hash_of(code.replace("-", "")) for code in desk.codes}


def test_as_many_codes_as_were_asked_for_and_their_texts(sale: Sale) -> None:
    """In chunks that do not divide them evenly; the stock is set aside from the beginning."""
    desk = plan_codes(sale, 100, CodeForm(16, "VXP-"))
    before = sale.stock

    desk.generate(chunk=7)
    desk.fetch()

    assert 1_000_000 - 100 == before == sale.stock
    assert {"VXP-"} == {code[:4] for code in desk.codes}
    assert {20} == {len(code) for code in desk.codes}
    assert_each_text_is_a_stored_code(desk)
    assert_sound(sale.services)


def test_what_is_stored_of_a_code_is_its_keyed_hash_alone(sale: Sale) -> None:
    """A stolen database tells no code, not before they were fetched and not after (DESIGN 3.10)."""
    desk = plan_codes(sale, 50)
    desk.generate()
    kept = b"".join(bytes(row[0]) for row in sale.rows("SELECT content FROM code_export_part"))

    desk.fetch()

    everything = repr(sale.rows("SELECT code::text FROM code") + sale.rows("SELECT b::text FROM code_batch b"))
    assert kept
    assert [] == [code for code in desk.codes if code.encode() in kept or code in everything]
    assert [] == sale.rows("SELECT part_no FROM code_export_part")


@pytest.mark.parametrize("point", ["codes.before_commit", "codes.after_commit"])
def test_killed_at_forty_percent_it_goes_on_to_the_exact_number(sale: Sale, point: str) -> None:
    """A hundred thousand codes: neither a code whose text is lost, nor a text whose code is not stored; the sweep sends
    what the killed worker had in hand."""
    desk = plan_codes(sale, LARGE)

    killed, _ = in_child(sale.services.settings, f"{point}:4", code_batch_id=desk.code_batch_id, chunk=10_000)
    generated = desk.books["generated_count"]
    late = replace(sale.services, clock=lambda: utc_now() + FORGOTTEN * 2)
    sale.services.post.sent.clear()  # type: ignore[attr-defined]
    assert 1 == sweep_codes(late)["woken"]
    [task] = sale.services.post.sent  # type: ignore[attr-defined]
    run_generation(sale.services, *task.args)
    desk.fetch()

    assert -signal.SIGKILL == killed
    assert (30_000 if point == "codes.before_commit" else 40_000) == generated
    assert ("done", LARGE) == (desk.books["status"], desk.stored())
    assert_each_text_is_a_stored_code(desk)
    assert_sound(sale.services)


def test_memory_does_not_grow_with_the_number_of_codes(sale: Sale) -> None:
    """A chunk is in memory, however many there are."""
    desk = plan_codes(sale, 2 * LARGE)

    ended, growth_mib = in_child(sale.services.settings, "", code_batch_id=desk.code_batch_id, chunk=10_000)

    assert (0, "done") == (ended, desk.books["status"])
    assert growth_mib < 32


def test_a_code_that_is_there_already_is_drawn_again(sale: Sale) -> None:
    """Of an earlier batch or of the same chunk: the number is exact (CASES 27)."""
    first = hand_out_codes(sale, 3)
    desk = plan_codes(sale, 6)
    drawn = [[*draw_codes(CodeForm(), 5), first.codes[1]], ["K7WX3MPD9RTC"] * 6, draw_codes(CodeForm(), 6)]
    expected = sorted(drawn[-1])

    assert not generate_chunk(sale.services, desk.code_batch_id, draw=lambda form, count: drawn.pop(0))

    assert ([], expected) == (drawn, sorted(desk.fetch()))
    assert (6, "done") == (desk.stored(), desk.books["status"])
    assert_sound(sale.services)


def test_a_code_under_an_older_pepper_is_drawn_again(sale: Sale) -> None:
    """Its hash differs, and yet it would be the same code for two coupons."""
    first = hand_out_codes(sale, 2)
    ring = sale.services.settings.model_copy(update={"code_pepper": SecretStr("pepper-of-tomorrow,a-pepper-for-tests")})
    tomorrow = replace(sale, services=replace(sale.services, settings=ring))
    desk = plan_codes(tomorrow, 2)
    fresh = draw_codes(CodeForm(), 2)
    drawn = [[first.codes[0], fresh[0]], fresh]

    generate_chunk(tomorrow.services, desk.code_batch_id, draw=lambda form, count: drawn.pop(0))

    assert sorted(fresh) == sorted(desk.fetch())
    assert not desk.exchange(first.codes[0], "u-1").replayed
    assert not desk.exchange(fresh[0], "u-1", "r2").replayed


def test_two_workers_at_once_make_no_code_too_many(sale: Sale) -> None:
    """One has the batch at a time; the other finds nothing to do, or goes on."""
    desk = plan_codes(sale, 500)

    while desk.books["status"] == "generating":
        at_once(*[lambda: run_generation(sale.services, desk.code_batch_id, chunk=9)] * 4)

    desk.fetch()
    assert_each_text_is_a_stored_code(desk)


def test_a_turn_hands_over_to_the_next_message(sale: Sale) -> None:
    """So that batches take turns, and a shutdown is short."""
    desk = plan_codes(sale, 30)
    sale.services.post.sent.clear()  # type: ignore[attr-defined]

    run_generation(sale.services, desk.code_batch_id, chunk=10, turn_s=0)

    assert 10 == desk.books["generated_count"]
    assert [("generate_codes", (desk.code_batch_id,))] == [
        (task.name, task.args)
        for task in sale.services.post.sent  # type: ignore[attr-defined]
    ]


def test_a_batch_whose_pepper_left_the_ring_waits_for_it(sale: Sale) -> None:
    """Its codes are not hashed under another one."""
    desk = plan_codes(sale, 5)
    other = sale.services.settings.model_copy(update={"code_pepper": SecretStr("another-pepper-16")})

    with pytest.raises(Conflict, match="pepper"):
        run_generation(replace(sale.services, settings=other), desk.code_batch_id)

    desk.generate()
    assert 5 == len(desk.fetch())


def test_a_batch_that_is_revoked_meanwhile_generates_nothing_more(sale: Sale) -> None:
    """What was generated stays as it is, and is worth nothing."""
    desk = plan_codes(sale, 30)
    generate_chunk(sale.services, desk.code_batch_id, chunk=10)

    revoke_code_batch(sale.services, desk.code_batch_id, "key-1")

    assert not generate_chunk(sale.services, desk.code_batch_id)
    assert (10, "revoked") == (desk.books["generated_count"], desk.books["status"])
    assert_sound(sale.services)
