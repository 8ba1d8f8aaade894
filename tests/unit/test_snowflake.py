"""Identities: unique whatever the clock does, rising, and readable."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coupon_workers.errors import ClockWentBack
from coupon_workers.runtime.snowflake import (
    BORROW_MS,
    EPOCH_MS,
    FURTHEST_AHEAD_MS,
    Snowflake,
    issued_at_ms,
    of_every_route,
    route_in,
    route_of,
    wall_clock_ms,
    worker_number_in,
)

NOON_MS = EPOCH_MS + 12 * 3_600_000
PER_MS = 32


class HandClock:
    """A clock that shows what it is set to; sleeping before it moves it."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.slept = 0

    def __call__(self) -> int:
        return self.now_ms

    def sleep(self, _seconds: float) -> None:
        self.slept += 1
        self.now_ms += 1


def standing(now_ms: int) -> Callable[[], int]:
    return lambda: now_ms


def no_sleep(_seconds: float) -> None:
    return None


readings = st.lists(
    st.tuples(st.integers(NOON_MS - 500_000, NOON_MS), st.integers(1, 70)),
    min_size=1,
    max_size=30,
)
"""Clock readings within the ten minutes that are bridged, and how many identities are asked at each."""


@given(readings=readings)
def test_any_sequence_of_clock_readings_yields_unique_rising_identities(readings: list[tuple[int, int]]) -> None:
    """The clock may jump to and fro: no identity repeats, and each is above the one before."""
    clock = HandClock(0)
    ids = Snowflake(7, clock, sleep=no_sleep)

    given_out = []
    for clock.now_ms, count in readings:
        given_out += [ids.next_id(5) for _ in range(count)]

    assert given_out == sorted(set(given_out))
    assert all(0 < identity < 2**63 for identity in given_out)


@given(readings=readings, routes=st.lists(st.integers(0, 255), min_size=1, max_size=5))
def test_identities_of_mixed_routes_are_unique_and_never_go_back_a_millisecond(
    readings: list[tuple[int, int]], routes: list[int]
) -> None:
    """Routes share the sequence: two of them never meet, and the milliseconds do not fall."""
    clock = HandClock(0)
    ids = Snowflake(7, clock, sleep=no_sleep)

    given_out = []
    for clock.now_ms, count in readings:
        given_out += [ids.next_id(routes[n % len(routes)]) for n in range(count)]

    stamps = [issued_at_ms(identity) for identity in given_out]
    assert len(given_out) == len(set(given_out))
    assert sorted(stamps) == stamps


@given(numbers=st.lists(st.integers(0, 511), min_size=2, max_size=5, unique=True), count=st.integers(1, 100))
def test_workers_with_different_numbers_never_collide(numbers: list[int], count: int) -> None:
    """At the very same instant, with the same route."""
    workers = [Snowflake(number, standing(NOON_MS)) for number in numbers]

    given_out = [worker.next_id(1) for worker in workers for _ in range(count)]

    assert len(given_out) == len(set(given_out))


@settings(max_examples=200)
@given(
    at_ms=st.integers(EPOCH_MS + 1, EPOCH_MS + 2**41 - 1),
    route=st.integers(0, 255),
    number=st.integers(0, 511),
)
def test_an_identity_says_when_where_and_by_whom_it_was_made(at_ms: int, route: int, number: int) -> None:
    """The decoders give back what went in, from the first millisecond of 2026 to the last of the 41 bits."""
    identity = Snowflake(number, standing(at_ms)).next_id(route)

    assert (at_ms, route, number) == (issued_at_ms(identity), route_in(identity), worker_number_in(identity))


def test_an_identity_stands_for_those_of_every_route_that_nobody_else_is_given() -> None:
    """256 of each, in order, of the same millisecond and worker; beside identities of single routes."""
    ids = Snowflake(5, standing(NOON_MS))

    single = [ids.next_id(route) for route in range(20)]
    blocks = [of_every_route(ids.next_id(0)) for _ in range(50)]
    single += [ids.next_id(route) for route in range(20)]

    given = [identity for block in blocks for identity in block]
    assert len(blocks) * 256 + 40 == len({*given, *single})
    assert [list(range(256))] * 50 == [[route_in(identity) for identity in block] for block in blocks]
    assert [{issued_at_ms(block[0])} for block in blocks] == [set(map(issued_at_ms, block)) for block in blocks]
    assert {5} == set(map(worker_number_in, given))


def test_threads_share_one_generator_without_repeating() -> None:
    """Four threads, one generator: every identity once."""
    ids = Snowflake(3, wall_clock_ms)
    per_thread: list[list[int]] = [[] for _ in range(4)]

    def take(into: list[int]) -> None:
        into.extend(ids.next_id() for _ in range(5_000))

    threads = [threading.Thread(target=take, args=(into,)) for into in per_thread]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    given_out = [identity for one in per_thread for identity in one]
    assert 20_000 == len(set(given_out))
    assert all(sorted(one) == one for one in per_thread)


def test_a_burst_borrows_from_the_coming_second_and_then_waits_for_the_clock() -> None:
    """32 identities a millisecond, a thousand milliseconds ahead, and not one more."""
    clock = HandClock(NOON_MS)
    ids = Snowflake(1, clock, sleep=clock.sleep)

    burst = [ids.next_id() for _ in range(PER_MS * (BORROW_MS + 1))]
    slept_in_the_burst = clock.slept
    one_more = ids.next_id()

    assert NOON_MS + BORROW_MS == issued_at_ms(burst[-1])
    assert 0 == slept_in_the_burst
    assert 1 == clock.slept
    assert NOON_MS + BORROW_MS + 1 == issued_at_ms(one_more)


def test_a_clock_that_stands_still_is_not_waited_for_for_ever() -> None:
    """When the borrowed second is used up and the clock does not move, the caller is told."""
    ids = Snowflake(1, standing(NOON_MS), sleep=no_sleep)
    for _ in range(PER_MS * (BORROW_MS + 1)):
        ids.next_id()

    with pytest.raises(ClockWentBack, match="stands still"):
        ids.next_id()


def test_a_clock_that_stepped_back_five_minutes_is_bridged_without_waiting() -> None:
    """Logical time goes on from the high water, with the whole borrowed second above it."""
    clock = HandClock(NOON_MS)
    ids = Snowflake(1, clock, sleep=clock.sleep)
    before = ids.next_id()

    clock.now_ms -= 300_000
    after = [ids.next_id() for _ in range(PER_MS * BORROW_MS)]

    assert before < after[0]
    assert 0 == clock.slept


def test_a_clock_that_stepped_back_more_than_ten_minutes_is_refused_until_it_is_near_again() -> None:
    """Identities dated far ahead would be lies; and none repeats when the clock has come near."""
    clock = HandClock(NOON_MS)
    ids = Snowflake(1, clock)
    before = ids.next_id()

    clock.now_ms = NOON_MS - FURTHEST_AHEAD_MS - 1
    with pytest.raises(ClockWentBack):
        ids.next_id()
    clock.now_ms += 1
    after = ids.next_id()

    assert before < after


def test_a_clock_before_2026_is_refused() -> None:
    """A machine that woke in 1970 has no instant to give."""
    with pytest.raises(ClockWentBack):
        Snowflake(1, standing(0)).next_id()


def test_the_next_holder_of_a_number_starts_above_what_the_last_one_gave() -> None:
    """Even when its own clock is behind."""
    first = Snowflake(9, standing(NOON_MS))
    given_before = [first.next_id() for _ in range(100)]

    second = Snowflake(9, standing(NOON_MS - 60_000), start_after_ms=first.high_water_ms)

    assert max(given_before) < second.next_id()
    assert first.high_water_ms < second.high_water_ms


def test_no_identity_is_later_than_its_ceiling() -> None:
    """A clock that leaps beyond the ceiling is not followed: the room below it is counted through instead."""
    clock = HandClock(NOON_MS)
    ids = Snowflake(1, clock, sleep=no_sleep)
    ids.allow_until(NOON_MS + 10)
    ids.next_id()

    clock.now_ms += 3_600_000
    below = [ids.next_id() for _ in range(PER_MS * 11 - 1)]

    assert NOON_MS + 10 == issued_at_ms(below[-1])
    with pytest.raises(ClockWentBack):
        ids.next_id()


def test_a_sealed_generator_gives_nothing_more() -> None:
    """What it answers when sealed is the last millisecond it will ever have used."""
    clock = HandClock(NOON_MS)
    ids = Snowflake(1, clock, sleep=no_sleep)
    last = [ids.next_id() for _ in range(PER_MS)][-1]

    high_water_ms = ids.allow_until(0)
    clock.now_ms += 5

    assert issued_at_ms(last) == high_water_ms
    with pytest.raises(ClockWentBack):
        ids.next_id()


@pytest.mark.parametrize("number", [-1, 512])
def test_a_worker_number_that_does_not_fit_is_refused(number: int) -> None:
    """Nine bits hold 0 to 511."""
    with pytest.raises(ValueError, match="0 to 511"):
        Snowflake(number, wall_clock_ms)


def test_the_route_of_a_template_is_stable_and_fits_eight_bits() -> None:
    """Known values: a release that changed them would look for claims in the wrong place."""
    assert [183, 13, 195] == [route_of(1), route_of(2), route_of(636507967185264641)]
    assert all(0 <= route_of(template_id) <= 255 for template_id in range(1_000))
