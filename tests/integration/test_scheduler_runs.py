"""Schedulers over the real book of runs: due, sent, sent again after a failure, once however many there are."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

import pytest
from sqlalchemy import Engine, text
from structlog.testing import capture_logs

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.task import Queue, Task
from coupon_workers.scheduling.job import Job
from coupon_workers.scheduling.last_run import last_runs
from coupon_workers.scheduling.leader import Leader
from coupon_workers.scheduling.scheduler import Scheduler
from coupon_workers.scheduling.trigger import Daily, Every

NOON = datetime(2026, 11, 11, 12, tzinfo=UTC)


def named(name: str, trigger: Every | Daily) -> Job:
    """A job whose task carries name and logical instant, so that a test sees which run it was."""
    return Job(name, trigger, lambda at: Task("run", Queue.CARE, (name, at.isoformat())))


SWEEP = named("sweep", Every(2))
CLOSE = named("close", Daily(time(3), "Asia/Shanghai"))


@dataclass
class HandClock:
    """What every scheduler of a test takes for the database's clock."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Wire:
    """A broker that may be away; keeps which runs it took."""

    taken: list[tuple[str, str]] = field(default_factory=list)
    away: bool = False
    attempts: int = 0
    then: Callable[[], None] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, task: Task) -> None:
        with self.lock:
            self.attempts += 1
            if self.away:
                raise StoreUnavailable("broker", "pulled out")
            self.taken.append((str(task.args[0]), str(task.args[1])))
        if self.then:
            self.then()

    def runs_of(self, job: Job) -> list[datetime]:
        return [datetime.fromisoformat(at) for name, at in self.taken if name == job.name]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def schedulers(
    count: int, engine: Engine, wire: Wire, clock: HandClock, jobs: Sequence[Job] = (SWEEP, CLOSE), lease_s: float = 3.0
) -> list[Scheduler]:
    return [Scheduler(jobs, engine, wire, Leader(engine, lease_s=lease_s), clock) for _ in range(count)]


def test_what_is_due_is_recorded_sent_and_marked(engine: Engine, wire: Wire, clock: HandClock) -> None:
    """In the book stand the logical instant, the epoch and both moments."""
    [scheduler] = schedulers(1, engine, wire, clock)

    scheduler.tick()
    scheduler.tick()

    assert [NOON] == wire.runs_of(SWEEP)
    assert [NOON - timedelta(hours=17)] == wire.runs_of(CLOSE)
    with engine.connect() as connection:
        book = connection.execute(
            text("SELECT job, logical_at, epoch FROM job_run WHERE enqueued_at >= recorded_at ORDER BY job")
        ).all()
    assert [("close", NOON - timedelta(hours=17), 1), ("sweep", NOON, 1)] == [tuple(row) for row in book]


def test_without_a_clock_given_the_database_s_decides(engine: Engine, wire: Wire) -> None:
    """Whatever this machine's clock shows."""
    scheduler = Scheduler([SWEEP], engine, wire)

    scheduler.tick()

    with engine.connect() as connection:
        now = connection.scalar(text("SELECT clock_timestamp()"))
    assert timedelta(0) <= now - wire.runs_of(SWEEP)[0] < timedelta(seconds=30)


@pytest.mark.parametrize("count", [2, 10])
def test_many_schedulers_with_one_clock_send_each_logical_run_once(
    count: int, engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """They tick at the same time, at each of 40 instants, over the night in which New York's 01:30 comes twice."""
    night = named("night", Daily(time(1, 30), "America/New_York"))
    many = schedulers(count, engine, wire, clock, [SWEEP, night])
    start = datetime(2026, 10, 31, 12, tzinfo=UTC)
    instants = [start + timedelta(hours=1.5 * n) for n in range(40)]
    coming = iter(instants)
    together = threading.Barrier(count, action=lambda: setattr(clock, "now", next(coming)))

    def run(scheduler: Scheduler) -> None:
        for _ in instants:
            together.wait()
            scheduler.tick()

    threads = [threading.Thread(target=run, args=(scheduler,)) for scheduler in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert instants == wire.runs_of(SWEEP)
    assert [(31, 5), (1, 5), (2, 6)] == [(run.day, run.hour) for run in wire.runs_of(night)]


def test_leaders_that_come_and_go_at_random_lose_and_double_no_run(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """Five schedulers in changing order, each of which may let the lease go after its tick; seeded."""
    chance = random.Random(36)
    many = schedulers(5, engine, wire, clock, [SWEEP])
    for n in range(60):
        clock.now = NOON + timedelta(seconds=2 * n)
        for scheduler in chance.sample(many, 5):
            scheduler.tick()
            if chance.random() < 0.5:
                scheduler.stop()

    with engine.connect() as connection:
        epochs = connection.scalar(text("SELECT count(DISTINCT epoch) FROM job_run"))
    assert [NOON + timedelta(seconds=2 * n) for n in range(60)] == wire.runs_of(SWEEP)
    assert epochs > 10


def test_a_leader_that_is_followed_while_it_sends_writes_nothing_more(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """Its mark is refused, and told; the heir, who cannot know, sends the run again: tasks are safe to run twice."""
    slow, heir = schedulers(2, engine, wire, clock, [SWEEP])

    def stop_in_mid_send() -> None:
        wire.then = None
        with engine.begin() as connection:
            connection.execute(text("UPDATE scheduler_lease SET expires_at = clock_timestamp()"))
        heir.tick()

    wire.then = stop_in_mid_send
    with capture_logs() as told:
        slow.tick()
        slow.tick()

    assert 1 == [line["event"] for line in told].count("job_run_mark_refused")
    assert [NOON, NOON] == wire.runs_of(SWEEP)
    with engine.connect() as connection:
        assert 1 == connection.scalar(text("SELECT count(*) FROM job_run"))


def test_a_run_that_could_not_be_sent_is_sent_when_the_broker_is_back(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """By the same scheduler or by the next leader; meanwhile no further runs pile up."""
    first, second = schedulers(2, engine, wire, clock)
    wire.away = True
    for n in range(10):
        clock.now = NOON + timedelta(seconds=2 * n)
        first.tick()
    first.stop()
    wire.away = False

    second.tick()
    second.tick()

    assert [NOON, NOON + timedelta(seconds=18)] == wire.runs_of(SWEEP)
    assert {1} == set(Counter(wire.taken).values())


def test_after_the_clock_was_set_back_the_runs_to_come_can_be_forgotten(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """Nothing is due until the old time has come again, unless somebody does what the runbook says."""
    [scheduler] = schedulers(1, engine, wire, clock, [SWEEP])
    scheduler.tick()
    clock.now = back = NOON - timedelta(hours=1)

    scheduler.tick()
    before = wire.runs_of(SWEEP)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM job_run WHERE logical_at > :now"), {"now": back})
    scheduler.tick()

    assert ([NOON], [NOON, back]) == (before, wire.runs_of(SWEEP))


def test_every_missed_day_is_sent_in_order_after_the_broker_is_back(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """Three days without a broker: three closes, none lost, none twice."""
    [scheduler] = schedulers(1, engine, wire, clock, [CLOSE])
    scheduler.tick()
    wire.away = True
    for _ in range(3):
        clock.now += timedelta(days=1)
        scheduler.tick()
    wire.away = False

    scheduler.tick()

    assert [NOON + timedelta(hours=-17 + 24 * n) for n in range(4)] == wire.runs_of(CLOSE)


def test_an_outage_of_the_broker_is_told_once(engine: Engine, wire: Wire, clock: HandClock) -> None:
    """One line when it begins and one when it is over, with one attempt a tick in between."""
    [scheduler] = schedulers(1, engine, wire, clock, [SWEEP])
    wire.away = True

    with capture_logs() as told:
        for _ in range(5):
            scheduler.tick()
        wire.away = False
        scheduler.tick()

    events = [line["event"] for line in told if line["event"].startswith("store")]
    assert ["store_is_away", "store_is_back"] == events
    assert 6 == wire.attempts


def test_a_job_whose_task_cannot_be_made_does_not_hold_up_the_others(
    engine: Engine, wire: Wire, clock: HandClock
) -> None:
    """A mistake in one row of the table, told once."""

    def mistake(_at: datetime) -> Task:
        raise ZeroDivisionError

    [scheduler] = schedulers(1, engine, wire, clock, [Job("mistaken", Every(2), mistake), SWEEP])

    with capture_logs() as told:
        scheduler.tick()
        scheduler.tick()

    assert [NOON] == wire.runs_of(SWEEP)
    assert ["job_not_sent"] == [line["event"] for line in told if line["log_level"] == "error"]


def test_the_scheduler_goes_on_after_its_backends_were_ended(engine: Engine, wire: Wire, clock: HandClock) -> None:
    """The lease is a row, not a session: the same leader, in the same epoch."""
    [scheduler] = schedulers(1, engine, wire, clock, [SWEEP])
    scheduler.tick()

    with engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    clock.now += timedelta(seconds=2)
    scheduler.tick()
    scheduler.tick()

    with engine.connect() as connection:
        epochs = connection.scalars(text("SELECT epoch FROM job_run ORDER BY logical_at")).all()
    assert [1, 1] == epochs
    assert [NOON, NOON + timedelta(seconds=2)] == wire.runs_of(SWEEP)


def test_the_last_runs_tell_when_each_job_was_due_and_last_sent(engine: Engine, wire: Wire, clock: HandClock) -> None:
    """While the broker is away the last run grows older than the last sending."""
    [scheduler] = schedulers(1, engine, wire, clock)
    nothing = last_runs(engine)
    scheduler.tick()
    wire.away = True
    clock.now += timedelta(seconds=2)
    scheduler.tick()

    close, sweep = last_runs(engine)

    assert [] == nothing
    assert ("close", NOON - timedelta(hours=17)) == (close.job, close.logical_at)
    assert ("sweep", NOON + timedelta(seconds=2)) == (sweep.job, sweep.logical_at)
    assert close.enqueued_at is not None and close.enqueued_at == close.sent_at
    assert sweep.enqueued_at is None
    assert sweep.sent_at is not None and sweep.sent_at < sweep.recorded_at
