"""Pruning: what is kept, what goes, and that an index serves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from coupon_workers.runtime.chunked_deletion import CHUNK
from coupon_workers.runtime.services import Services
from coupon_workers.scheduling import history
from coupon_workers.scheduling.history import KEEP_ANSWERS, Pruned, prune_history
from coupon_workers.scheduling.job import FREQUENT, KEEP_FREQUENT_RUNS, KEEP_RUNS

NOW = datetime(2026, 11, 11, 12, tzinfo=UTC)


def write_runs(engine: Engine, job: str, every: timedelta, count: int, newest: datetime = NOW) -> None:
    """``count`` runs of ``job``, the newest at ``newest``, each recorded when it was due."""
    with engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO job_run (job, logical_at, epoch, recorded_at, enqueued_at)
                SELECT :job, at, 1, at, at FROM (
                    SELECT CAST(:newest AS timestamptz) - n * CAST(:every AS interval) AS at
                    FROM generate_series(0, :count - 1) AS n
                ) AS runs
            """),
            {"job": job, "every": every, "count": count, "newest": newest},
        )


def write_answers(engine: Engine, ages: list[timedelta]) -> None:
    with engine.begin() as connection:
        for number, age in enumerate(ages):
            connection.execute(
                text("""
                    INSERT INTO idempotency
                           (key_id, idempotency_key, fingerprint, state, deadline, subject_id, created_at)
                    VALUES ('a key', :number, '', 'done', :at, 1, :at)
                """),
                {"number": str(number), "at": NOW - age},
            )


def runs_of(engine: Engine, job: str) -> list[datetime]:
    with engine.connect() as connection:
        rows = connection.scalars(text("SELECT logical_at FROM job_run WHERE job = :job ORDER BY 1"), {"job": job})
        return list(rows)


def test_runs_of_a_frequent_job_are_kept_for_a_day(services: Services) -> None:
    """A run every minute for three days: the last day stays."""
    write_runs(services.engine, "sweep", timedelta(minutes=1), 3 * 1440)

    pruned = prune_history(services, NOW)

    left = runs_of(services.engine, "sweep")
    assert Pruned(job_runs=3 * 1440 - 1441, answers=0) == pruned
    assert (NOW - timedelta(days=1), NOW) == (left[0], left[-1])


@pytest.mark.parametrize("every", [timedelta(hours=1), timedelta(days=1)])
def test_runs_of_other_jobs_are_kept_for_ninety_days(services: Services, every: timedelta) -> None:
    """Hourly is not frequent."""
    write_runs(services.engine, "close", every, timedelta(days=100) // every)

    prune_history(services, NOW)

    assert NOW - timedelta(days=90) == runs_of(services.engine, "close")[0]


def test_the_newest_run_of_a_job_stays_for_ever(services: Services) -> None:
    """It says what has run: without it the job would run once more for nothing, or forget what it missed."""
    long_ago = NOW - timedelta(days=400)
    write_runs(services.engine, "sweep", timedelta(minutes=1), 100, newest=long_ago)

    prune_history(services, NOW)

    assert [long_ago] == runs_of(services.engine, "sweep")


def test_extra_runs_are_kept_for_ninety_days(services: Services) -> None:
    """Of every job, sent or not."""
    with services.engine.begin() as connection:
        for run_id, age in enumerate((timedelta(days=91), timedelta(days=89))):
            connection.execute(
                text("""
                    INSERT INTO job_extra_run (job, run_id, logical_at, asked_by, recorded_at)
                    VALUES ('sweep', :run_id, :at, 'key', :at)
                """),
                {"run_id": run_id, "at": NOW - age},
            )

    pruned = prune_history(services, NOW)

    assert Pruned(job_runs=1, answers=0) == pruned


def test_stored_answers_are_kept_for_seven_days(services: Services) -> None:
    """A request that is repeated within a week is answered as before."""
    write_answers(services.engine, [timedelta(days=8), timedelta(days=7), timedelta(days=6)])

    first = prune_history(services, NOW)
    second = prune_history(services, NOW)

    assert Pruned(job_runs=0, answers=1) == first
    assert Pruned(job_runs=0, answers=0) == second


def test_chunks_are_taken_from_an_index(services: Services) -> None:
    """No pass over the whole table, however long the history is."""
    engine = services.engine
    write_runs(engine, "sweep", timedelta(seconds=30), 20_000)
    with engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO idempotency
                       (key_id, idempotency_key, fingerprint, state, deadline, subject_id, created_at)
                SELECT 'a key', n::text, '', 'done', :now, 1, CAST(:now AS timestamptz) - n * interval '1 minute'
                FROM generate_series(1, 20_000) AS n
            """),
            {"now": NOW},
        )
        connection.execute(text("ANALYZE job_run, idempotency"))

    plans = []
    for statement, named in (
        (history._FREQUENT_RUNS, {"before": NOW - KEEP_FREQUENT_RUNS, "frequent": FREQUENT}),
        (history._OLD_RUNS, {"before": NOW - KEEP_RUNS}),
        (history._OLD_ANSWERS, {"before": NOW - KEEP_ANSWERS}),
    ):
        with engine.begin() as connection:
            plan = connection.scalars(text(f"EXPLAIN {statement.text}"), named | {"chunk": CHUNK})
            plans.append("\n".join(plan))

    assert [] == [plan for plan in plans if "Seq Scan" in plan]
    assert ["ix_job_run_recorded_at" in plan or "ix_idempotency_created_at" in plan for plan in plans] == [True] * 3
