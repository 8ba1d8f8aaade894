"""Which runs of a job are due: whatever the clocks do, each logical run once (case 36)."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.task import Queue, Task, sweep_gates
from coupon_workers.scheduling.job import Job, due_runs, whenever
from coupon_workers.scheduling.trigger import Daily, Every, Trigger

ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo")


def job(trigger: Trigger, misfire_grace: timedelta | None = None) -> Job:
    return Job("a job", trigger, whenever(sweep_gates), misfire_grace)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs_while_watched(watched: Job, start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """All runs when the job is looked at every ``step``."""
    runs: list[datetime] = []
    now = start
    while now <= end:
        runs += due_runs(watched, runs[-1] if runs else start, now)
        now += step
    return runs


def test_an_interval_job_is_due_at_the_multiples_since_1970() -> None:
    """However late somebody looks, the logical instant is the multiple."""
    every_two_seconds = job(Every(2))

    assert [utc("2026-11-11 00:00:02")] == due_runs(
        every_two_seconds, utc("2026-11-11 00:00:00"), utc("2026-11-11 00:00:03.999")
    )
    assert [] == due_runs(every_two_seconds, utc("2026-11-11 00:00:02"), utc("2026-11-11 00:00:03.999"))


def test_of_the_missed_runs_of_an_interval_job_the_newest_stands_for_all() -> None:
    """A scheduler that was away for an hour sends one sweep, not 1,800."""
    due = due_runs(job(Every(2)), utc("2026-11-11 00:00:00"), utc("2026-11-11 01:00:01"))

    assert [utc("2026-11-11 01:00:00")] == due


def test_where_each_run_counts_every_missed_one_is_due() -> None:
    """In order, as far back as the job is caught up; a run between two multiples does not shift them."""
    hourly = Every(3600, each=True)
    now = utc("2026-11-11 03:30:00")

    hours = [utc(f"2026-11-11 0{hour}:00:00") for hour in (1, 2, 3)]
    assert hours == due_runs(job(hourly), utc("2026-11-11 00:00:00"), now)
    assert hours == due_runs(job(hourly), utc("2026-11-11 00:20:00"), now)
    assert hours[1:] == due_runs(job(hourly, timedelta(hours=2)), utc("2026-11-01 00:00:00"), now)
    assert [] == due_runs(job(hourly), hours[2], now)
    assert [] == due_runs(job(hourly), utc("2026-11-11 04:00:00"), now)
    assert hours[2:] == due_runs(job(hourly), None, now)


def test_a_job_that_never_ran_is_due_once() -> None:
    """The newest instant, for an interval and for a daily job."""
    now = utc("2026-11-11 12:00:01")

    assert [utc("2026-11-11 12:00:00")] == due_runs(job(Every(2)), None, now)
    assert [utc("2026-11-11 03:00:00")] == due_runs(job(Daily(time(3))), None, now)
    assert [utc("2026-11-10 13:00:00")] == due_runs(job(Daily(time(13))), None, now)


def test_a_clock_that_steps_back_brings_no_run_twice() -> None:
    """What has run lies ahead of the clock: nothing is due until it has been passed."""
    ran = utc("2026-11-11 03:00:00")

    for trigger in (Every(3600), Daily(time(3))):
        assert [] == due_runs(job(trigger), ran, utc("2026-11-11 02:00:00"))
        assert [] == due_runs(job(trigger), ran, ran)


def test_a_clock_that_skips_an_hour_misses_no_daily_job() -> None:
    """It jumps from before the time to after it: the run is due, with its own logical instant."""
    daily = job(Daily(time(3, 0)))
    ran = utc("2026-11-10 03:00:00")

    with freeze_time("2026-11-11 02:59:59") as machine:
        before = due_runs(daily, ran, utc_now())
        machine.tick(timedelta(hours=1))
        after = due_runs(daily, ran, utc_now())

    assert [] == before
    assert [utc("2026-11-11 03:00:00")] == after


def test_each_missed_day_of_a_daily_job_is_due() -> None:
    """A weekend of outage: three closes, in order."""
    due = due_runs(job(Daily(time(3), "Asia/Shanghai")), utc("2026-11-06 19:00:00"), utc("2026-11-09 19:00:00"))

    assert [utc("2026-11-07 19:00:00"), utc("2026-11-08 19:00:00"), utc("2026-11-09 19:00:00")] == due


def test_a_time_that_the_spring_day_skips_runs_once_after_the_skip() -> None:
    """02:30 does not exist on 2026-03-08 in New York; the run is at 03:30 EDT, and the next at 02:30 EDT."""
    daily = job(Daily(time(2, 30), "America/New_York"))

    runs = runs_while_watched(daily, utc("2026-03-07 12:00"), utc("2026-03-09 12:00"), timedelta(minutes=7))

    assert [utc("2026-03-08 07:30"), utc("2026-03-09 06:30")] == runs


def test_a_time_that_the_autumn_day_repeats_runs_when_it_first_occurs() -> None:
    """01:30 comes twice on 2026-11-01 in New York: the run is at 01:30 EDT, and not again at 01:30 EST."""
    daily = job(Daily(time(1, 30), "America/New_York"))

    runs = runs_while_watched(daily, utc("2026-10-31 12:00"), utc("2026-11-02 12:00"), timedelta(minutes=7))

    assert [utc("2026-11-01 05:30"), utc("2026-11-02 06:30")] == runs


def test_a_zone_that_skipped_a_whole_date_runs_the_next_one_once() -> None:
    """Samoa had no 2011-12-30: no double run on the 31st."""
    daily = job(Daily(time(3), "Pacific/Apia"))

    runs = runs_while_watched(daily, utc("2011-12-29 12:00"), utc("2012-01-01 12:00"), timedelta(hours=1))

    assert [utc("2011-12-29 13:00"), utc("2011-12-30 13:00"), utc("2011-12-31 13:00")] == runs


@given(
    zone=st.sampled_from(ZONES),
    at=st.times().map(lambda at: at.replace(microsecond=0)),
    year=st.integers(2024, 2028),
    steps=st.lists(st.integers(1, 5 * 86_400), min_size=20, max_size=40),
)
def test_a_daily_job_runs_once_for_each_local_date_however_it_is_watched(
    zone: str, at: time, year: int, steps: list[int]
) -> None:
    """Looked at in steps of seconds to days, over changes of the clocks: no date is left out or doubled."""
    daily = job(Daily(at, zone))
    now = datetime(year, 3, 1, tzinfo=UTC)
    runs: list[datetime] = []

    last = now
    for step_s in steps:
        now += timedelta(seconds=step_s)
        due = due_runs(daily, last, now)
        runs += due
        last = due[-1] if due else last

    dates = [run.astimezone(ZoneInfo(zone)).date() for run in runs]
    assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(dates))
    assert all(run <= now for run in runs)


@given(period_s=st.integers(1, 10_000), steps=st.lists(st.integers(0, 20_000), min_size=1, max_size=40))
def test_an_interval_job_never_repeats_and_is_never_behind(period_s: int, steps: list[int]) -> None:
    """After each look, the last run is the newest multiple."""
    interval = job(Every(period_s))
    now = utc("2026-11-11 00:00:00.5")
    last: datetime | None = None

    for step_s in steps:
        now += timedelta(seconds=step_s)
        for run in due_runs(interval, last, now):
            assert last is None or last < run
            last = run

        assert last is not None
        assert timedelta(0) <= now - last < timedelta(seconds=period_s)


def test_runs_older_than_the_books_are_not_caught_up() -> None:
    """Whether they ran nobody knows any more: 90 days back, and no further."""
    due = due_runs(job(Daily(time(3))), utc("2026-01-01 03:00"), utc("2026-11-11 12:00"))

    assert 90 == len(due)


def test_a_job_with_a_misfire_grace_drops_what_is_too_late() -> None:
    """The table's jobs have none; a job whose late run would be wrong may have one."""
    impatient = job(Daily(time(3)), timedelta(hours=1))

    assert [] == due_runs(impatient, utc("2026-11-10 03:00"), utc("2026-11-11 04:00"))
    assert [utc("2026-11-11 03:00")] == due_runs(impatient, utc("2026-11-10 03:00"), utc("2026-11-11 03:59"))


@pytest.mark.parametrize(
    ("trigger", "days"), [(Every(2), 1), (Every(3599), 1), (Every(3600), 90), (Daily(time(3)), 90)]
)
def test_runs_of_frequent_jobs_are_kept_for_a_day_and_others_for_ninety(trigger: Trigger, days: int) -> None:
    """A run of a sweep says little by tomorrow."""
    assert timedelta(days=days) == job(trigger).keep_runs


def test_a_task_may_be_made_from_the_logical_instant() -> None:
    """A daily close must know its day, however late it runs."""
    closing = Job("close", Daily(time(1)), lambda at: Task("close_day", Queue.CARE, (at.date().isoformat(),)))

    assert Task("close_day", Queue.CARE, ("2026-11-11",)) == closing.task(utc("2026-11-11 01:00"))


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Every(1), "every second"),
        (Every(2), "every 2 seconds"),
        (Every(60), "every minute"),
        (Every(90), "every 90 seconds"),
        (Every(3_600, each=True), "every hour, each missed one too"),
        (Every(86_400), "every day"),
        (Daily(time(3), "Asia/Shanghai"), "every day at 03:00 Asia/Shanghai, each missed one too"),
    ],
)
def test_a_trigger_is_told_in_words(trigger: Trigger, words: str) -> None:
    """As the table of jobs shows it."""
    assert words == trigger.words


@given(
    now=st.timedeltas(timedelta(0), timedelta(days=730)).map(lambda passed: utc("2026-01-01") + passed),
    trigger=st.one_of(
        st.builds(Every, st.integers(1, 100_000)),
        st.builds(Daily, st.times().map(lambda at: at.replace(microsecond=0)), st.sampled_from(ZONES)),
    ),
)
def test_the_following_instant_is_the_first_that_becomes_due(now: datetime, trigger: Trigger) -> None:
    """Nothing is due before it, and it is due when it comes."""
    following = trigger.following(now)

    moment = timedelta(microseconds=1)
    assert (True, []) == (following > now, trigger.due(now, following - moment))
    assert [following] == trigger.due(now, following)


def test_the_following_instant_is_right_where_a_zone_skips_a_date() -> None:
    """Samoa had no 30 December 2011."""
    trigger = Daily(time(12), "Pacific/Apia")
    now = datetime(2011, 12, 29, 22, 30, tzinfo=UTC)

    assert [trigger.following(now)] == trigger.due(now, now + timedelta(days=1))[:1]
