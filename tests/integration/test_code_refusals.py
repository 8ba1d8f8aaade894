"""Wrong codes: one answer for all of them, and not too many tries (CASES 29, DESIGN 3.10)."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from coupon_workers.codes.alphabet import ALPHABET
from coupon_workers.codes.check_digit import is_intact
from coupon_workers.codes.code_batch_end import revoke_code_batch
from coupon_workers.codes.guess_limit import OF_ADDRESS, OF_DEVICE
from coupon_workers.errors import NotFound, TooManyTries
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.network import network_of
from coupon_workers.runtime.services import Services
from tests.support.code_batch import CodeDesk, hand_out_codes, plan_codes
from tests.support.gift import at_once
from tests.support.sale import assert_sound, open_sale

LIMIT = 5
SECRET = "K7WX3MPD9RTC"


@pytest.fixture
def desk(services: Services) -> CodeDesk:
    """A few codes; five wrong ones in ten minutes."""
    few = replace(services, settings=services.settings.model_copy(update={"guess_limit": LIMIT}))
    return hand_out_codes(open_sale(few, total_quantity=100), 10)


def wrong_codes(desk: CodeDesk, services: Services) -> dict[str, str]:
    """A code of each kind that strangers must not tell apart."""
    sale = desk.sale
    desk.exchange(desk.codes[0], "owner")
    foreign = hand_out_codes(sale, 1, channel="h5")
    revoked = hand_out_codes(sale, 1)
    revoke_code_batch(services, revoked.code_batch_id, "key-1")
    expired = hand_out_codes(sale, 1, expires_at=utc_now() + timedelta(seconds=1))
    with services.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE code_batch SET expires_at = now() WHERE code_batch_id = {expired.code_batch_id}"
        )
    return {
        "unknown": "K7WX-3MPD-9RTC",
        "used": desk.codes[0],
        "foreign": foreign.codes[0],
        "revoked": revoked.codes[0],
        "expired": expired.codes[0],
        "malformed": "???",
    }


def test_a_wrong_a_used_a_foreign_and_an_expired_code_are_refused_alike(desk: CodeDesk, services: Services) -> None:
    """One code of refusal, one text, no evidence; and each is charged as a try."""
    for kind, code in wrong_codes(desk, services).items():
        with pytest.raises(NotFound) as refused:
            desk.exchange(code, f"stranger-{kind}", channel="app")
        assert ("CODE_INVALID", "this code cannot be exchanged") == (refused.value.code, str(refused.value)), kind
        assert services.redis.exists(f"cw:{{guess}}:user:stranger-{kind}"), kind
    assert_sound(services)


@pytest.mark.alone
def test_a_code_holds_up_to_the_instant_at_which_it_ends(services: Services) -> None:
    """And not at it: an end is the first instant without."""
    end = utc_now().replace(microsecond=0) + timedelta(hours=1)
    desk = hand_out_codes(open_sale(services), 2, expires_at=end)
    late, timely = [
        replace(desk, sale=replace(desk.sale, services=replace(services, clock=lambda at=at: at)))
        for at in (end, end - timedelta(milliseconds=1))
    ]

    with pytest.raises(NotFound):
        late.exchange(desk.codes[0], "ann")

    assert not timely.exchange(desk.codes[0], "ann").replayed


def test_no_time_tells_a_used_code_from_an_unknown_one(desk: CodeDesk, services: Services) -> None:
    """Side by side in one run: their medians are of one order."""
    codes = wrong_codes(desk, services)
    times: dict[str, list[float]] = {kind: [] for kind in codes}

    for turn in range(60):
        for kind, code in codes.items():
            began = time.perf_counter()
            with pytest.raises(NotFound):
                desk.exchange(code, f"s-{kind}-{turn}", channel="app")
            times[kind].append(time.perf_counter() - began)

    medians = [statistics.median(taken) for taken in times.values()]
    assert max(medians) < 2 * min(medians), dict(zip(times, medians, strict=True))


Try = Callable[[CodeDesk, int], object]
DIMENSIONS: dict[str, tuple[int, Try]] = {
    "user": (LIMIT, lambda desk, n: desk.exchange(SECRET, "u-1", ip=f"198.51.100.{n % 200}", device_id=f"d-{n}")),
    "device": (LIMIT * OF_DEVICE, lambda desk, n: desk.exchange(SECRET, f"u-{n}", device_id="d-1")),
    "address": (LIMIT * OF_ADDRESS, lambda desk, n: desk.exchange(SECRET, f"u-{n}", ip="203.0.113.7")),
    "network": (LIMIT * OF_ADDRESS, lambda desk, n: desk.exchange(SECRET, f"u-{n}", ip=f"2001:db8::{n:x}")),
}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_wrong_codes_are_counted_by_user_device_and_address(desk: CodeDesk, dimension: str) -> None:
    """So many are heard and not one more, however many come at once."""
    most, attempt = DIMENSIONS[dimension]

    heard = at_once(*[lambda n=n: attempt(desk, n) for n in range(most + 8)])

    assert (most, 8) == (
        sum(isinstance(each, NotFound) for each in heard),
        sum(isinstance(each, TooManyTries) for each in heard),
    )


def test_whoever_has_tried_too_often_waits_with_a_right_code_too(desk: CodeDesk) -> None:
    """Else he could go on to guess; the code stays unused, and is his after the wait."""
    for _ in range(LIMIT):
        with pytest.raises(NotFound):
            desk.exchange(SECRET, "u-1")

    with pytest.raises(TooManyTries) as refused:
        desk.exchange(desk.codes[0], "u-1")

    assert 0 < refused.value.wait_ms <= 600_000 / LIMIT
    assert 0 == desk.books["used_count"]


def test_right_codes_are_no_guesses(desk: CodeDesk) -> None:
    """A user with many codes, and one who asks for his coupon again and again, are not held up."""
    for number, code in enumerate(desk.codes):
        desk.exchange(code, "u-1", f"r{number}", ip="203.0.113.7", device_id="d-1")
    for _ in range(LIMIT * 3):
        assert desk.exchange(desk.codes[0], "u-1", "r0", ip="203.0.113.7").replayed

    assert [] == desk.services.redis.keys("cw:{guess}:*")


def test_an_emptied_redis_gives_one_new_allowance(desk: CodeDesk) -> None:
    """It loses the tries that were counted, and nothing else: the limit holds from there on, and no code comes back."""
    desk.exchange(desk.codes[0], "owner")
    tries = [lambda: desk.exchange(SECRET, "u-1")] * (LIMIT + 1)

    before = [type(each) for each in at_once(*tries)]
    desk.services.redis.flushall()
    after = [type(each) for each in at_once(*tries)]

    assert [LIMIT, LIMIT] == [before.count(NotFound), after.count(NotFound)]
    with pytest.raises(NotFound):
        desk.exchange(desk.codes[0], "u-2")
    desk.sale.preheat()
    assert_sound(desk.services)


def test_a_guesser_who_knows_the_form_of_codes_finds_none(desk: CodeDesk) -> None:
    """Ten thousand tries with right check digits from many users and addresses: nearly all are not even heard, and none
    of those that are hits."""
    drawn = random.Random(29)
    hits = heard = 0

    for n in range(10_000):
        code = "".join(drawn.choices(ALPHABET, k=11))
        code = next(code + last for last in ALPHABET if is_intact(code + last))
        try:
            desk.exchange(code, f"u-{n % 50}", ip=f"203.0.113.{n % 4}", device_id=f"d-{n % 10}")
            hits += 1
        except NotFound:
            heard += 1
        except TooManyTries:
            pass

    # Four addresses and ten devices are the bottleneck; a few more are heard while it runs.
    assert (0, 0) == (hits, desk.books["used_count"])
    assert heard <= 10 * LIMIT * OF_DEVICE + 100


def test_nobody_exchanges_a_code_before_it_was_handed_out(services: Services) -> None:
    """Of a batch that still generates."""
    desk = plan_codes(open_sale(services, total_quantity=100), 10)

    with pytest.raises(NotFound):
        desk.exchange(SECRET, "u-1")


def test_an_address_of_ipv6_is_its_network() -> None:
    """An address of IPv4 in the clothes of IPv6 is itself."""
    assert network_of("2001:db8:1:2::1") == network_of("2001:db8:1:2:ffff::9")
    assert "203.0.113.7" == network_of("::ffff:203.0.113.7") == network_of("203.0.113.7")
