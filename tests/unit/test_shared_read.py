"""Reads that callers of one moment share: few of them, and none older than its question."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest

from coupon_workers.runtime.shared_read import SharedReads

CALLERS = 40


class Source:
    """A store that can be held up; it counts the reads, and each answers its number."""

    def __init__(self) -> None:
        self.count = 0
        self.begun, self.go_on = Event(), Event()
        self._lock = Lock()

    def read(self) -> bytes:
        """The number of this read, once the test lets it go on."""
        with self._lock:
            self.count += 1
            number = self.count
        self.begun.set()
        assert self.go_on.wait(10)
        return b"%d" % number


def test_those_who_come_during_a_read_share_the_one_after_it() -> None:
    """It may have begun before a change that they know of; one of them reads for all."""
    reads, source = SharedReads(), Source()
    with ThreadPoolExecutor(CALLERS + 1) as threads:
        first = threads.submit(reads.read, "ann", source.read)
        assert source.begun.wait(10)
        others = [threads.submit(reads.read, "ann", source.read) for _ in range(CALLERS)]
        while "ann" not in reads._next:  # one of them is there, and the others join him or come later
            pass
        source.go_on.set()
        answers = {other.result() for other in others}

    assert b"1" == first.result()
    assert b"1" not in answers
    assert source.count < CALLERS


def test_reads_of_different_things_do_not_wait_for_one_another() -> None:
    """Each key has its own."""
    reads, held, free = SharedReads(), Source(), Source()
    free.go_on.set()
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(reads.read, "ann", held.read)
        assert held.begun.wait(10)

        assert b"1" == reads.read("bob", free.read)
        held.go_on.set()
        slow.result()


def test_whoever_waits_too_long_reads_for_himself() -> None:
    """A store that hangs holds nobody longer than the pool of its connections would."""
    reads, hanging, answering = SharedReads(), Source(), Source()
    answering.go_on.set()
    with ThreadPoolExecutor(2) as threads:
        stuck = threads.submit(reads.read, "ann", hanging.read)
        assert hanging.begun.wait(10)

        assert b"1" == reads.read("ann", answering.read)
        assert b"2" == reads.read("ann", answering.read)
        hanging.go_on.set()
        assert b"1" == stuck.result()
    assert not reads._next


def test_what_a_read_raises_is_told_and_not_remembered() -> None:
    """The next one reads again."""
    reads = SharedReads()

    def broken() -> bytes:
        raise ValueError("away")

    for _ in range(2):
        with pytest.raises(ValueError, match="away"):
            reads.read("ann", broken)
    assert b"there" == reads.read("ann", lambda: b"there")
