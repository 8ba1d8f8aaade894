"""Pages kept in Redis: filled by one reader at a time, never stored after a change, gone within a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest
import redis

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.kept_page import KEEP_MS, KeptPages, Look
from coupon_workers.runtime.lean_redis import LeanThreads
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.services import Services

KEY = "cw:{w1}:wallet:ann"


@pytest.fixture
def pages(services: Services) -> KeptPages:
    """Those of one front."""
    return KeptPages(services.lean, services.redis)


def token_of(pages: KeptPages) -> str:
    """Begin to fill."""
    look = pages.look(KEY)
    assert look.page is None
    assert look.token is not None
    return look.token


class Source:
    """A database that counts how often it is asked, and may take its time."""

    def __init__(self, wait: Callable[[], object] = lambda: None) -> None:
        self.asked = 0
        self._wait = wait
        self._lock = Lock()

    def read(self) -> bytes:
        """The number of this question."""
        with self._lock:
            self.asked += 1
            number = self.asked
        self._wait()
        return b"page %d" % number


def test_the_first_reader_fills_and_the_next_finds(pages: KeptPages) -> None:
    """The database is asked once."""
    source = Source()

    assert [b"page 1"] * 3 == [pages.get(KEY, source.read) for _ in range(3)]
    assert 1 == source.asked


def test_a_page_is_gone_a_second_after_its_reader_began(pages: KeptPages, redis_client: redis.Redis) -> None:
    """However long he read: the page has what was left of his token's life, by the clock of Redis."""
    token = token_of(pages)
    redis_client.pexpire(KEY, 120)
    pages.keep(KEY, token, b"page")

    assert 0 < redis_client.pttl(KEY) <= 120
    token_of_next = None
    while token_of_next is None:
        token_of_next = pages.look(KEY).token
    assert 0 < redis_client.pttl(KEY) <= KEEP_MS < 1_000


def test_a_page_read_before_a_change_is_not_kept_after_it(pages: KeptPages, redis_client: redis.Redis) -> None:
    """The change took the token away; also when another reader has begun since."""
    stale = token_of(pages)
    redis_client.unlink(KEY)
    pages.keep(KEY, stale, b"stale")
    fresh = token_of(pages)
    pages.keep(KEY, stale, b"stale")
    pages.keep(KEY, fresh, b"fresh")

    assert Look(page=b"fresh") == pages.look(KEY)


@pytest.mark.parametrize("fronts", [1, 2])
def test_a_thousand_readers_of_a_cold_page_ask_the_database_once(services: Services, fronts: int) -> None:
    """In one front and in several: whoever does not fill it waits for whoever does."""
    each = [KeptPages(services.lean, services.redis) for _ in range(fronts)]
    source = Source(lambda: time.sleep(0.02))  # a read takes its time
    with ThreadPoolExecutor(64) as threads:
        read = list(threads.map(lambda number: each[number % fronts].get(KEY, source.read), range(1_000)))

    # They may take longer than a page lives, on a busy machine; but nobody reads beside another.
    assert 1 <= source.asked <= 5
    assert {b"page %d" % number for number in range(1, source.asked + 1)} == set(read)


def test_a_reader_who_fails_leaves_the_turn_to_the_next(pages: KeptPages) -> None:
    """At once; his error is his own."""

    def broken() -> bytes:
        raise StoreUnavailable("PostgreSQL", "away")

    with pytest.raises(StoreUnavailable):
        pages.get(KEY, broken)

    assert pages.look(KEY).token is not None


def test_the_turn_of_a_reader_who_died_comes_round(pages: KeptPages) -> None:
    """Whoever has waited for him reads for himself, and once the token has run out the page is kept again."""
    token_of(pages)
    source = Source()

    assert b"page 1" == pages.get(KEY, source.read)
    while pages.get(KEY, source.read) != pages.get(KEY, source.read):
        pass
    assert pages.look(KEY).page is not None


def test_readers_go_on_while_another_hangs(pages: KeptPages) -> None:
    """His database does not answer him; theirs may."""
    release, begun = Event(), Event()

    def hang() -> bytes:
        begun.set()
        assert release.wait(10)
        return b"late"

    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(pages.get, KEY, hang)
        assert begun.wait(10)
        assert b"page 1" == pages.get(KEY, Source().read)
        release.set()
        assert b"late" == late.result()


def test_without_redis_readers_of_a_front_share_their_reads() -> None:
    """Nothing is kept, nothing fails, and nobody gets what was read before he asked."""
    nowhere = "unix:///nonexistent/valkey.sock"
    pages = KeptPages(LeanThreads(nowhere, 100), client_without_retries(nowhere, 100))
    source = Source(lambda: time.sleep(0.05))
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(lambda _: pages.get(KEY, source.read), range(320)))

    assert source.asked < 160
    before = source.asked
    assert b"page %d" % (before + 1) == pages.get(KEY, source.read)
    assert Look(is_away=True) == pages.look(KEY)
    pages.keep(KEY, "token", b"page")


def test_a_redis_that_answers_with_an_error_keeps_nothing(services: Services, redis_client: redis.Redis) -> None:
    """As one that is full does, or one that is loading."""
    redis_client.lpush(KEY, "not a page")
    pages = KeptPages(services.lean, services.redis)

    assert b"page 1" == pages.get(KEY, Source().read)
    assert Look(is_away=True) == pages.look(KEY)
