"""Extra runs: sent at once and noted apart, so that what is due stays due."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from coupon_workers.errors import NotFound, StoreUnavailable
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.task import Task, warn_of_expiry
from coupon_workers.scheduling.extra_run import newest_extra_runs, run_now
from coupon_workers.scheduling.job_reading import read_job_ages, read_jobs
from coupon_workers.scheduling.job_table import TABLE
from coupon_workers.scheduling.scheduler import Scheduler
from tests.conftest import PostBox

NOW = datetime(2026, 11, 11, 20, 34, 56, tzinfo=UTC)
"""Every daily job has been due within hours."""
HOUR = NOW.replace(minute=0, second=0)


class NoPost:
    """A broker that is away."""

    def send(self, task: Task) -> None:
        """Refuse the task."""
        raise StoreUnavailable("broker", f"{task.name} was not taken")


@pytest.fixture
def at(services: Services) -> Services:
    """Services whose clock stands at ``NOW``."""
    return replace(services, clock=lambda: NOW)


def _logical_runs(services: Services) -> list[tuple[object, ...]]:
    with services.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT * FROM job_run ORDER BY job, logical_at"))]


def test_an_extra_run_repeats_the_newest_logical_instant(at: Services, post: PostBox) -> None:
    """A job whose runs have an hour each looks at the hour it would have looked at."""
    run = run_now(at, "warn_of_expiry", 7, "key")

    assert [warn_of_expiry(HOUR)] == post.sent
    assert ("warn_of_expiry", 7, HOUR, "key") == (run.job, run.run_id, run.logical_at, run.asked_by)
    assert run.enqueued_at is not None and run.enqueued_at >= run.recorded_at
    assert {"warn_of_expiry": run} == newest_extra_runs(at.engine)


def test_what_is_due_stays_due(at: Services, post: PostBox) -> None:
    """Before and after an extra run the scheduler sends exactly the logical runs it would have sent without."""
    scheduler = Scheduler(TABLE, at.engine, post, clock=lambda: NOW)
    for number, job in enumerate(TABLE):
        run_now(at, job.name, number, "key")
    assert [] == _logical_runs(at)
    post.sent.clear()
    scheduler.tick()
    logical = _logical_runs(at)

    for number, job in enumerate(TABLE):
        run_now(at, job.name, 100 + number, "key")

    assert (len(TABLE), 2 * len(TABLE)) == (len(logical), len(post.sent))
    assert logical == _logical_runs(at)


def test_a_run_that_is_asked_for_again_is_sent_once(at: Services, post: PostBox) -> None:
    """By its number, which the idempotency key allots."""
    first = run_now(at, "sweep_gates", 7, "key")

    second = run_now(at, "sweep_gates", 7, "key")

    assert (first, 1) == (second, len(post.sent))


def test_a_run_that_the_broker_did_not_take_is_noted_and_may_be_asked_for_again(at: Services, post: PostBox) -> None:
    """It is not sent by itself later: whoever asked knows, and asks again."""
    with pytest.raises(StoreUnavailable, match="not taken"):
        run_now(replace(at, post=NoPost()), "sweep_gates", 7, "key")
    unsent = newest_extra_runs(at.engine)["sweep_gates"]

    sent = run_now(replace(at, clock=lambda: NOW + timedelta(hours=1)), "sweep_gates", 7, "other")

    assert (None, 1) == (unsent.enqueued_at, len(post.sent))
    assert sent == replace(unsent, enqueued_at=sent.enqueued_at) and sent.enqueued_at is not None


def test_many_who_ask_at_once_get_a_run_each(at: Services, post: PostBox) -> None:
    """Each noted, each sent."""
    with ThreadPoolExecutor(5) as threads:
        runs = list(threads.map(lambda number: run_now(at, "sweep_gates", number, "key"), range(10)))

    assert (10, 10) == (len(post.sent), len({run.run_id for run in runs if run.enqueued_at is not None}))
    assert 9 == newest_extra_runs(at.engine)["sweep_gates"].run_id


@pytest.mark.parametrize("name", ["", "settle_claims", "sweep_gates ", "SWEEP_GATES", "\x00", "'; --"])
def test_only_jobs_of_the_table_can_be_run(at: Services, post: PostBox, name: str) -> None:
    """Not every task is a job."""
    with pytest.raises(NotFound, match="no such job"):
        run_now(at, name, 7, "key")

    assert ([], {}) == (post.sent, newest_extra_runs(at.engine))


def test_jobs_are_told_with_their_last_and_next_runs(at: Services, post: PostBox) -> None:
    """In the order of the table, whether they ever ran or not."""
    before = read_jobs(at)
    Scheduler(TABLE, at.engine, post, clock=lambda: NOW).tick()

    after = {job.name: job for job in read_jobs(at)}

    assert [job.name for job in TABLE] == [job.name for job in before] == list(after)
    assert {(None, None)} == {(job.last, job.last_extra) for job in before}
    hourly = after["warn_of_expiry"]
    assert hourly.last is not None and hourly.last.enqueued_at is not None
    assert (HOUR, HOUR + timedelta(hours=1)) == (hourly.last.logical_at, hourly.next_at)
    assert "every hour, each missed one too" == hourly.trigger


def test_the_age_of_a_job_counts_from_what_a_scheduler_sent(services: Services, post: PostBox) -> None:
    """An extra run makes no dead scheduler look alive."""
    run_now(services, "sweep_gates", 7, "key")
    never = {job.name: job.age_s for job in read_job_ages(services)}
    Scheduler(TABLE, services.engine, post).tick()
    later = replace(services, clock=lambda: services.clock() + timedelta(minutes=5))

    ages = {job.name: (job.age_s, job.period_s) for job in read_job_ages(later)}

    assert {None} == set(never.values())
    age_s, period_s = ages["sweep_gates"]
    assert age_s is not None and 299 < age_s < 400
    assert 2 == period_s


def test_a_job_that_was_sent_in_time_to_come_is_late(services: Services, post: PostBox) -> None:
    """PostgreSQL's clock was set back: nothing is due until it is there again, and an alert should say so."""
    Scheduler(TABLE, services.engine, post).tick()
    earlier = replace(services, clock=lambda: services.clock() - timedelta(minutes=5))

    ages = {job.name: job.age_s for job in read_job_ages(earlier)}

    assert 200 < (ages["sweep_gates"] or 0) <= 301
