"""Leased identities against a real Redis: data loss, outage, close, and clocks gone wrong."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from coupon_workers.errors import StoreUnavailable, WorkerNumbersExhausted
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.snowflake import issued_at_ms, wall_clock_ms, worker_number_in
from coupon_workers.runtime.worker_number import WORKER_NUMBERS_KEY, LeasedIds, LeaseTerms

QUICK = LeaseTerms(lease_s=30.0, renew_s=0.02, retry_s=0.02)


class HandClock:
    """A clock that is as far from the machine's as it is told to be."""

    def __init__(self) -> None:
        self.shift_ms = 0

    def __call__(self) -> int:
        return wall_clock_ms() + self.shift_ms


class HandMonotonic:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def until(happened: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for an event; fail when it does not come."""
    deadline = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def holder_of(client: redis.Redis, number: int | None) -> bytes:
    record = client.hget(WORKER_NUMBERS_KEY, str(number))
    assert isinstance(record, bytes)
    return record.split()[0]


@pytest.fixture
def leased(redis_client: redis.Redis) -> Iterator[Callable[..., LeasedIds]]:
    """Makes leased identities and closes them at the end."""
    made: list[LeasedIds] = []

    def make(client: redis.Redis = redis_client, **options: object) -> LeasedIds:
        made.append(LeasedIds(client, **({"terms": QUICK} | options)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for ids in made:
        ids.close()


def test_a_number_is_leased_at_the_first_identity_and_not_before(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """A process that makes no identities takes no number."""
    ids = leased()
    before = redis_client.exists(WORKER_NUMBERS_KEY)

    identity = ids.next_id(0)

    assert 0 == before
    assert ids.worker_number == worker_number_in(identity)


def test_threads_that_all_come_first_lease_one_number(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """Eight threads at once: one lease, no identity twice."""
    ids = leased()
    taken: list[int] = []
    together = threading.Barrier(8)

    def take() -> None:
        together.wait()
        taken.extend([ids.next_id(0) for _ in range(100)])

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 800 == len(set(taken))
    assert 2 == redis_client.hlen(WORKER_NUMBERS_KEY)  # the number, and when the hash was born


def test_many_processes_hold_different_numbers(leased: Callable[..., LeasedIds]) -> None:
    """Twenty of them, each with its own."""
    numbers = [worker_number_in(leased().next_id(0)) for _ in range(20)]

    assert 20 == len(set(numbers))


def test_redis_that_lost_its_data_gets_the_number_again(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """The next renewal writes it; identities go on rising."""
    ids = leased()
    before = ids.next_id(0)

    redis_client.flushall()
    until(lambda: bool(redis_client.hexists(WORKER_NUMBERS_KEY, str(ids.worker_number))))

    assert before < ids.next_id(0)


def test_a_number_that_another_took_is_given_up_for_a_new_one(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """No identity of the two is equal, and they go on rising, though the clock was set back meanwhile."""
    clock = HandClock()
    clock.shift_ms = 5_000
    ids = leased(clock_ms=clock)
    before = [ids.next_id(0) for _ in range(50)]
    number = ids.worker_number
    clock.shift_ms = 0

    redis_client.hset(WORKER_NUMBERS_KEY, "born", 0)
    redis_client.hset(WORKER_NUMBERS_KEY, str(number), f"another {wall_clock_ms() + 30_000} {wall_clock_ms()}")
    until(lambda: ids.worker_number != number)
    after = [ids.next_id(0) for _ in range(50)]

    assert b"another" == holder_of(redis_client, number)
    assert sorted(before + after) == before + after


def test_after_a_loss_a_newcomer_with_the_same_number_does_not_repeat_an_identity(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """The old holder has not noticed yet: the newcomer's identities are dated beyond it."""
    redis_client.hset(WORKER_NUMBERS_KEY, "born", 0)
    old = leased(terms=LeaseTerms(lease_s=30.0, renew_s=25.0))
    old.next_id(0)
    redis_client.flushall()
    new = leased(terms=LeaseTerms())
    new._search_from = old.worker_number or 0

    of_the_new = {new.next_id(0) for _ in range(500)}
    of_the_old = {old.next_id(0) for _ in range(500)}

    assert old.worker_number == new.worker_number
    assert set() == of_the_new & of_the_old


def test_without_redis_identities_go_on_until_the_lease_ends(leased: Callable[..., LeasedIds]) -> None:
    """By the monotonic clock; then they are refused."""
    monotonic = HandMonotonic()
    ids = leased(terms=LeaseTerms(lease_s=30.0, renew_s=25.0), monotonic_s=monotonic)
    ids.next_id(0)

    monotonic.now_s += 29.9
    ids.next_id(0)
    monotonic.now_s += 0.2

    with pytest.raises(StoreUnavailable, match="lease of the worker number has ended"):
        ids.next_id(0)


def test_identities_come_back_when_redis_does(redis_client: redis.Redis, leased: Callable[..., LeasedIds]) -> None:
    """A server that refuses every script, then answers again: within a retry."""
    monotonic = HandMonotonic()
    ids = leased(monotonic_s=monotonic)
    ids.next_id(0)

    redis_client.delete(WORKER_NUMBERS_KEY)
    redis_client.set(WORKER_NUMBERS_KEY, "not a hash: every lease fails")
    until(lambda: "WRONGTYPE" in str(ids._refusal))
    monotonic.now_s += 31
    with pytest.raises(StoreUnavailable):
        ids.next_id(0)
    redis_client.delete(WORKER_NUMBERS_KEY)

    def heals() -> bool:
        try:
            return ids.next_id(0) > 0
        except StoreUnavailable:
            return False

    until(heals)


def test_a_redis_that_is_not_there_is_told_and_not_waited_for_twice(leased: Callable[..., LeasedIds]) -> None:
    """The first caller waits for the first attempt; the others are refused at once."""
    nobody = client_without_retries("redis://127.0.0.1:9/0", 500)
    ids = leased(nobody, terms=LeaseTerms(retry_s=60.0))

    for _ in range(3):
        with pytest.raises(StoreUnavailable, match=r"refused|Connect"):
            ids.next_id(0)


def test_when_all_numbers_are_held_the_process_is_told(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """512 living processes; a freed number heals it."""
    lasting = f"another {wall_clock_ms() + 60_000} {wall_clock_ms()}"
    redis_client.hset(WORKER_NUMBERS_KEY, mapping={str(number): lasting for number in range(512)})
    ids = leased()

    with pytest.raises(WorkerNumbersExhausted):
        ids.next_id(0)
    redis_client.hdel(WORKER_NUMBERS_KEY, "77")
    until(lambda: ids.worker_number == 77)

    assert 77 == worker_number_in(ids.next_id(0))


def test_close_gives_the_number_back_at_once(redis_client: redis.Redis, leased: Callable[..., LeasedIds]) -> None:
    """The next holder begins above the newest identity, and the closed one gives nothing more."""
    ids = leased()
    newest = ids.next_id(0)
    number = ids.worker_number

    ids.close()
    following = leased()
    following._search_from = number or 0

    assert newest < following.next_id(0)
    assert number == following.worker_number
    with pytest.raises(StoreUnavailable, match="closed"):
        ids.next_id(0)


def test_a_clock_that_fell_an_hour_back_costs_the_number_and_not_the_service(
    redis_client: redis.Redis, leased: Callable[..., LeasedIds]
) -> None:
    """It is left to those whose clock is later; another one is taken, dated by the clock as it is now."""
    clock = HandClock()
    ids = leased(clock_ms=clock)
    clock.shift_ms = 3_600_000
    until(lambda: issued_at_ms(ids.next_id(0)) > wall_clock_ms() + 3_000_000)
    abandoned = ids.worker_number

    clock.shift_ms = 0
    until(lambda: ids.worker_number not in {None, abandoned})

    assert issued_at_ms(ids.next_id(0)) < wall_clock_ms() + 60_000


def test_identities_that_nobody_refers_to_leave_no_thread(redis_client: redis.Redis) -> None:
    """Services that are dropped without ``close`` do not renew for ever."""
    ids = LeasedIds(redis_client, terms=QUICK)
    ids.next_id(0)
    thread = ids._thread
    assert thread is not None

    del ids
    gc.collect()

    until(lambda: not thread.is_alive())
