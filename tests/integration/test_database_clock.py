"""The clock of all hosts: PostgreSQL's, whatever this machine's says (FAULTS 15)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from freezegun import freeze_time
from pydantic import SecretStr
from sqlalchemy import Engine, event, text

from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.database_clock import REFRESH_S, RETRY_S, ROUND_TRIP_S, DatabaseClock
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.wallet.wallet import read_wallet
from tests.support.sale import Sale, open_sale
from tests.support.workshop import eventually

WRONG = datetime(2001, 1, 1, tzinfo=UTC)
CLOSE = timedelta(seconds=2)
"""Two clocks of one machine are much closer; this bears a busy one."""


@dataclass
class Hand:
    """A monotonic clock that a test moves."""

    ns: int = 1_000_000_000

    def __call__(self) -> int:
        """Nanoseconds."""
        return self.ns

    def move(self, seconds: float) -> None:
        """Forward."""
        self.ns += int(seconds * 1e9)


def by_database(engine: Engine) -> datetime:
    """What PostgreSQL says."""
    with engine.connect() as connection:
        instant: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    return instant


@pytest.fixture
def nowhere(settings: Settings) -> Iterator[Engine]:
    """An engine whose server is away."""
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr("postgresql://u@127.0.0.1:1/x")}))
    yield engine
    engine.dispose()


def test_it_says_what_the_database_says(engine: Engine) -> None:
    """From its first call on, in UTC, whatever the machine's clock says."""
    clock = DatabaseClock(engine, fallback=lambda: WRONG)

    before, said, after = by_database(engine), clock(), by_database(engine)

    assert before - timedelta(milliseconds=500) < said < after + timedelta(milliseconds=500)
    assert UTC is said.tzinfo


def test_every_thread_of_the_first_moment_hears_the_database(engine: Engine) -> None:
    """None is sent away with the machine's clock because another one asks."""
    clock, barrier, heard = DatabaseClock(engine, fallback=lambda: WRONG), Barrier(8), []

    def look() -> None:
        barrier.wait()
        heard.append(clock())

    threads = [Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8 == len(heard)
    assert all(abs(instant - by_database(engine)) < CLOSE for instant in heard)


def test_a_clock_that_steps_has_no_effect(engine: Engine) -> None:
    """Neither ten minutes ahead nor back: only what has passed counts."""
    clock = DatabaseClock(engine)
    clock()

    for step in (timedelta(minutes=10), timedelta(minutes=-10), timedelta(days=400)):
        with freeze_time(by_database(engine) + step):
            assert abs(clock() - by_database(engine)) < CLOSE


def test_between_two_askings_it_goes_on_by_itself(engine: Engine) -> None:
    """By the monotonic clock, to the microsecond."""
    hand = Hand()
    clock = DatabaseClock(engine, monotonic_ns=hand)
    first = clock()

    hand.move(12.345678)

    assert timedelta(seconds=12, microseconds=345_678) == clock() - first


def test_it_asks_again_when_its_knowledge_is_old(engine: Engine) -> None:
    """A monotonic clock that runs too fast is set right."""
    hand = Hand()
    clock = DatabaseClock(engine, monotonic_ns=hand)
    clock()
    hand.move(REFRESH_S - 1)
    assert clock() - by_database(engine) > timedelta(seconds=REFRESH_S - 5)

    hand.move(1)
    clock()

    assert eventually(lambda: abs(clock() - by_database(engine)) < CLOSE)


def test_before_the_first_answer_the_machines_clock_has_to_do(nowhere: Engine) -> None:
    """Without an error, and without waiting again for a server that did not answer."""
    clock = DatabaseClock(nowhere, fallback=lambda: WRONG)

    said = [clock() for _ in range(3)]
    started_s = time.monotonic()
    said += [clock() for _ in range(100)]

    assert {WRONG} == set(said)
    assert time.monotonic() - started_s < 0.5


def test_it_hears_the_database_once_that_is_back(engine: Engine, nowhere: Engine) -> None:
    """A process that started without PostgreSQL asks again after a while."""
    hand = Hand()
    clock = DatabaseClock(nowhere, fallback=lambda: WRONG, monotonic_ns=hand)
    assert WRONG == clock()

    clock._engine = engine
    hand.move(RETRY_S)

    assert eventually(lambda: clock() != WRONG)
    assert abs(clock() - by_database(engine)) < CLOSE


def test_the_last_offset_goes_on_while_the_database_is_away(engine: Engine, nowhere: Engine) -> None:
    """However long: never back to the machine's clock."""
    hand = Hand()
    clock = DatabaseClock(engine, fallback=lambda: WRONG, monotonic_ns=hand)
    first = clock()
    clock._engine = nowhere

    hand.move(3 * REFRESH_S)
    clock()
    hand.move(RETRY_S)

    assert timedelta(seconds=3 * REFRESH_S + RETRY_S) == clock() - first


def test_an_answer_that_was_long_on_its_way_says_less_than_what_is_known(engine: Engine) -> None:
    """Nobody knows at which moment of the way it was right."""
    hand = Hand()
    clock = DatabaseClock(engine, monotonic_ns=hand)
    first = clock()
    hand.move(REFRESH_S)

    def be_slow(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "clock_timestamp" in statement:
            hand.move(2 * ROUND_TRIP_S)

    event.listen(engine, "after_cursor_execute", be_slow)
    try:
        clock()
        assert eventually(lambda: clock._asking is not None and clock._asking.done())
    finally:
        event.remove(engine, "after_cursor_execute", be_slow)

    assert timedelta(seconds=REFRESH_S + 2 * ROUND_TRIP_S) == clock() - first


def test_it_is_made_without_a_word_to_the_database(settings: Settings) -> None:
    """A front starts without PostgreSQL."""
    services = make_services(settings.model_copy(update={"database_url": SecretStr("postgresql://u@127.0.0.1:1/x")}))

    assert isinstance(services.clock, DatabaseClock)
    assert 0 == services.engine.pool.checkedout()  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong_by", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_nothing_ends_early_or_late_on_a_host_whose_clock_is_wrong(sale: Sale, wrong_by: timedelta) -> None:
    """A coupon that ends in five minutes by the database's clock is usable, one that ended five minutes ago is not."""
    services = make_services(sale.services.settings)
    moved = text(
        "UPDATE coupon SET valid_from = clock_timestamp() - interval '1 day',"
        " valid_to = clock_timestamp() + CASE user_id WHEN 'ann' THEN 1 ELSE -1 END * interval '5 minutes'"
    )
    with services.engine.begin() as connection:
        connection.execute(moved)

    with freeze_time(datetime.now(UTC) + wrong_by, tick=True):
        read = {user: read_wallet(services, user, limit=1).items[0]["status"] for user in ("ann", "bob")}

    assert {"ann": "unused", "bob": "expired"} == read
    services.engine.dispose()


@pytest.fixture
def sale(services: Services) -> Sale:
    """Ann and bob have a coupon each."""
    opened = open_sale(services)
    opened.claim_each(["ann", "bob"])
    opened.drain()
    return opened
