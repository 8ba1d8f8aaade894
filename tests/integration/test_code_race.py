"""One code and many hands: one coupon (DESIGN 3.3, 3.4, 3.5)."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from coupon_workers.codes.code_sweep import sweep_codes
from coupon_workers.codes.exchange import Exchange, Exchanged, exchange_code
from coupon_workers.errors import Conflict, NotFound
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.services import Services
from tests.support.code_batch import hand_out_codes
from tests.support.code_crash import in_child
from tests.support.gift import at_once
from tests.support.sale import assert_sound, open_sale

HANDS = 50


@pytest.fixture
def wide(services: Services) -> Services:
    """A connection for each hand."""
    return replace(services, engine=make_engine(services.settings, pool_size=HANDS))


def test_fifty_users_and_one_code_are_one_coupon(wide: Services) -> None:
    """One has it, the others hear what any stranger hears."""
    sale = open_sale(wide, total_quantity=10)
    desk = hand_out_codes(sale, 2)

    heard = at_once(*[lambda n=n: desk.exchange(desk.codes[0], f"u-{n}") for n in range(HANDS)])

    won = [each for each in heard if isinstance(each, Exchanged)]
    assert (1, HANDS - 1) == (len(won), sum(isinstance(each, NotFound) for each in heard))
    assert [won[0].coupon_id] == list(sale.coupons())
    assert_sound(wide)
    wide.engine.dispose()


def test_one_user_who_sends_a_code_fifty_times_has_one_coupon(wide: Services) -> None:
    """Each answer is that coupon, and one of them says that it is new."""
    many = replace(wide, settings=wide.settings.model_copy(update={"guess_limit": HANDS}))
    desk = hand_out_codes(open_sale(many, total_quantity=10), 2)

    heard = at_once(*[lambda: desk.exchange(desk.codes[0], "u-1")] * HANDS)

    assert {Exchanged} == {type(each) for each in heard}, heard
    assert (1, 1) == (len({each.coupon_id for each in heard}), sum(not each.replayed for each in heard))
    assert_sound(wide)
    wide.engine.dispose()


def test_codes_and_claims_of_one_user_at_once_keep_his_limit(wide: Services) -> None:
    """Codes that are too many stay unused; the gate counts what he has."""
    many = replace(wide, settings=wide.settings.model_copy(update={"guess_limit": HANDS}))
    sale = open_sale(many, total_quantity=60, per_user_limit=3)
    desk = hand_out_codes(sale, 20)

    heard = at_once(
        *[lambda n=n: desk.exchange(desk.codes[n], "u-1", f"r{n}") for n in range(20)],
        *[lambda n=n: sale.claim("u-1", f"c{n}") for n in range(10)],
        *[sale.drain] * 5,
    )
    sale.drain()

    assert len(sale.coupons()) <= 3
    refused = {each.code for each in heard if isinstance(each, Conflict)}
    assert refused <= {"LIMIT_REACHED"}
    assert_sound(many)
    wide.engine.dispose()


def test_one_request_with_two_codes_at_once_uses_one(wide: Services) -> None:
    """Of two templates, whose exchanges do not wait for one another."""
    first = hand_out_codes(open_sale(wide, total_quantity=10), 1)
    second = hand_out_codes(open_sale(wide, total_quantity=10, template_id=7002), 1)

    for _ in range(3):
        heard = at_once(
            *[lambda code=desk.codes[0]: first.exchange(code, "u-1") for desk in (first, second) for _ in range(4)]
        )
        assert {"REQUEST_REUSED"} == {each.code for each in heard if isinstance(each, Conflict)}

    assert 1 == first.books["used_count"] + second.books["used_count"]
    assert_sound(wide)
    wide.engine.dispose()


@pytest.mark.parametrize("point", ["exchange.before_commit", "exchange.after_commit"])
def test_a_front_that_is_killed_in_an_exchange_leaves_all_of_it_or_nothing(services: Services, point: str) -> None:
    """The caller's own retry is the same exchange; the gate counts it in the end."""
    sale = open_sale(services, total_quantity=10, per_user_limit=2)
    desk = hand_out_codes(sale, 2)
    code = desk.codes[0]

    killed, _ = in_child(services.settings, point, code=code, user_id="u-1", request_id="r1")
    committed = desk.books["used_count"]
    again = exchange_code(services, Exchange(code, "u-1", "r1"))
    counted = sweep_codes(services)["counted"]

    assert -signal.SIGKILL == killed
    assert (committed == 1) == again.replayed == (point == "exchange.after_commit")
    assert 1 == counted
    assert (1, "1 0") == (desk.books["gate_cursor"], sale.taker("u-1"))
    assert_sound(services)


def test_several_missed_exchanges_of_one_user_are_all_counted(services: Services) -> None:
    """In one go, by whoever makes up for them."""
    sale = open_sale(services, total_quantity=10, per_user_limit=5, per_user_daily_limit=5)
    desk = hand_out_codes(sale, 4)
    for n in range(3):
        in_child(services.settings, "exchange.after_commit", code=desk.codes[n], user_id="u-1", request_id=f"r{n}")

    desk.exchange(desk.codes[3], "u-1", "r3")

    assert "4" == (sale.taker("u-1") or "").split()[0]
    assert_sound(services)


def test_the_next_exchange_counts_what_a_killed_front_has_not(services: Services) -> None:
    """Each use once, in the order of their numbers; also over a preheat."""
    sale = open_sale(services, total_quantity=10, per_user_limit=2)
    desk = hand_out_codes(sale, 4)
    for n in range(2):
        in_child(services.settings, "exchange.after_commit", code=desk.codes[n], user_id=f"u-{n}", request_id="r1")

    desk.exchange(desk.codes[2], "u-2")
    sale.preheat()
    desk.exchange(desk.codes[3], "u-0", "r2")

    assert ["2", "1", "1"] == [(sale.taker(f"u-{n}") or "").split()[0] for n in range(3)]
    assert 1 == sweep_codes(services)["counted"]
    assert_sound(services)
