"""Threads that share round trips: each has its own answer, and nobody is left behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from queue import Queue
from typing import Any

import pytest

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.shared_trip import MOST_TOGETHER, SharedTrip

PATIENCE_S = 20


class Interruption(BaseException):
    """Of a thread that waits."""


def _interrupt(*_: object) -> None:
    raise Interruption


class Server:
    """Answers a question with itself, reversed; a trip waits until the test lets it go, or fails it."""

    def __init__(self) -> None:
        self.trips: list[list[bytes]] = []
        self.begun: Queue[None] = Queue()
        self.fate: Queue[BaseException | None] = Queue()

    def ask(self, commands: Sequence[bytes]) -> list[Any]:
        """One trip."""
        self.trips.append(list(commands))
        self.begun.put(None)
        fate = self.fate.get(timeout=PATIENCE_S)
        if fate is not None:
            raise fate
        return [command[::-1] for command in commands]


class Crowd:
    """Threads that ask, one after the other."""

    def __init__(self, server: Server, pool: ThreadPoolExecutor) -> None:
        self._trip = SharedTrip(server.ask)
        self._server = server
        self._pool = pool

    def leads(self, command: bytes) -> Future[Any]:
        """One who goes at once; returns when he is under way."""
        asked = self._pool.submit(self._trip.ask, command)
        self._server.begun.get(timeout=PATIENCE_S)
        return asked

    def waits(self, *commands: bytes) -> list[Future[Any]]:
        """Some who come while he is under way; returns when all of them wait."""
        waiting = len(self._trip._waiting)
        asked = []
        for command in commands:
            asked.append(self._pool.submit(self._trip.ask, command))
            waiting += 1
            while len(self._trip._waiting) < waiting:
                assert not asked[-1].done()
                time.sleep(0)
        return asked

    def interrupted(self, command: bytes) -> None:
        """Ask in this thread, the main one, which is interrupted when it waits."""
        waiting = len(self._trip._waiting)

        def interrupt() -> None:
            while len(self._trip._waiting) == waiting:
                time.sleep(0)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, _interrupt)
        try:
            self._pool.submit(interrupt)
            self._trip.ask(command)
        finally:
            signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def server() -> Server:
    """It holds every trip."""
    return Server()


@pytest.fixture
def crowd(server: Server) -> Iterator[Crowd]:
    """As many threads as a front has."""
    with ThreadPoolExecutor(MOST_TOGETHER + 8) as pool:
        yield Crowd(server, pool)


def test_who_comes_while_one_is_under_way_travels_together_on_the_next_trip(crowd: Crowd, server: Server) -> None:
    """Two trips for four questions, and each thread hears the answer to its own."""
    first = crowd.leads(b"one")
    others = crowd.waits(b"two", b"three", b"four")

    server.fate.put(None)
    server.fate.put(None)

    assert [b"eno", b"owt", b"eerht", b"ruof"] == [each.result(PATIENCE_S) for each in (first, *others)]
    assert [[b"one"], [b"two", b"three", b"four"]] == server.trips


def test_a_quiet_process_asks_at_once_and_alone(crowd: Crowd, server: Server) -> None:
    """Nobody waits for company."""
    for command in (b"one", b"two"):
        server.fate.put(None)
        assert command[::-1] == crowd.leads(command).result(PATIENCE_S)

    assert [[b"one"], [b"two"]] == server.trips


def test_a_trip_takes_so_many_and_the_rest_go_on_the_one_after(crowd: Crowd, server: Server) -> None:
    """The first of a crowd does not wait for the answer to the last."""
    commands = [b"%d" % number for number in range(MOST_TOGETHER + 3)]
    first = crowd.leads(b"first")
    others = crowd.waits(*commands)

    for _ in range(3):
        server.fate.put(None)

    assert b"tsrif" == first.result(PATIENCE_S)
    assert [command[::-1] for command in commands] == [each.result(PATIENCE_S) for each in others]
    assert [1, MOST_TOGETHER, 3] == [len(trip) for trip in server.trips]


def test_a_trip_that_fails_fails_for_all_who_wait_too_and_the_next_one_goes(crowd: Crowd, server: Server) -> None:
    """While Redis is away nobody waits out more than one time-out before he may ask again."""
    first = crowd.leads(b"one")
    others = crowd.waits(b"two", b"three")

    server.fate.put(StoreUnavailable("Redis", "timed out"))

    for each in (first, *others):
        with pytest.raises(StoreUnavailable, match="timed out"):
            each.result(PATIENCE_S)
    server.fate.put(None)
    assert b"ruof" == crowd.leads(b"four").result(PATIENCE_S)
    assert [[b"one"], [b"four"]] == server.trips


def test_a_leader_who_is_interrupted_leaves_nobody_waiting(crowd: Crowd, server: Server) -> None:
    """He alone hears of it; the others learn that nothing is known, and ask again."""
    first = crowd.leads(b"one")
    (other,) = crowd.waits(b"two")

    server.fate.put(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        first.result(PATIENCE_S)
    with pytest.raises(StoreUnavailable):
        other.result(PATIENCE_S)
    server.fate.put(None)
    assert b"eerht" == crowd.leads(b"three").result(PATIENCE_S)


def test_a_thread_that_is_interrupted_while_it_waits_holds_nobody_up(crowd: Crowd, server: Server) -> None:
    """Its question is taken back, and whoever comes after it goes."""
    first = crowd.leads(b"one")

    with pytest.raises(Interruption):
        crowd.interrupted(b"two")
    (other,) = crowd.waits(b"three")
    server.fate.put(None)
    server.fate.put(None)

    assert [b"eno", b"eerht"] == [first.result(PATIENCE_S), other.result(PATIENCE_S)]
    assert [[b"one"], [b"three"]] == server.trips


def test_of_a_crowd_that_asks_without_end_each_hears_its_own_answer_or_that_nothing_is_known() -> None:
    """Whatever trips fail: nobody hears another's answer, and nobody waits for ever."""
    trips = count()

    def ask(commands: Sequence[bytes]) -> list[Any]:
        if next(trips) % 7 == 3:
            raise StoreUnavailable("Redis", "gone")
        return [command[::-1] for command in commands]

    trip = SharedTrip(ask)

    def asked(thread: int) -> list[tuple[bytes, Any]]:
        heard = []
        for number in range(200):
            command = b"%d-%d" % (thread, number)
            try:
                heard.append((command, trip.ask(command)))
            except StoreUnavailable:
                heard.append((command, None))
        return heard

    with ThreadPoolExecutor(16) as pool:
        heard = [each for part in pool.map(asked, range(16), timeout=PATIENCE_S) for each in part]

    assert 16 * 200 == len(heard)
    assert all(answer in (command[::-1], None) for command, answer in heard)
    assert any(answer is None for _, answer in heard) and any(answer is not None for _, answer in heard)
