"""The lease and the fence, against the real database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, text

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.settings import Settings
from coupon_workers.scheduling.job_run import Recording, mark_enqueued, newest_runs, record_run
from coupon_workers.scheduling.leader import Leader, Leadership, statement_at_once

LOGICAL_AT = datetime(2026, 11, 11, 3, tzinfo=UTC)


def until(happened: Callable[[], bool], within_s: float = 15.0) -> None:
    """Wait for an event; fail when it does not come."""
    deadline = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def led(leader: Leader) -> Leadership:
    leadership = leader.lead()
    assert leadership is not None
    return leadership


def end_lease(engine: Engine) -> None:
    """As if the lease's seconds had passed."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE scheduler_lease SET expires_at = clock_timestamp()"))


def test_the_first_leads_and_the_second_does_not(engine: Engine) -> None:
    """And the first goes on leading, in the same epoch, whenever it renews."""
    first, second = Leader(engine), Leader(engine)

    leadership = led(first)

    assert second.lead() is None
    assert leadership.epoch == led(first).epoch


def test_of_ten_that_start_together_one_leads(engine: Engine) -> None:
    """Also when there is no lease row yet."""
    leaders = [Leader(engine) for _ in range(10)]
    together = threading.Barrier(10)
    leading: list[Leadership] = []

    def run(leader: Leader) -> None:
        together.wait()
        if leadership := leader.lead():
            leading.append(leadership)

    threads = [threading.Thread(target=run, args=(leader,)) for leader in leaders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [1] == [leadership.epoch for leadership in leading]


def test_a_silent_leader_is_followed_when_its_lease_ends(engine: Engine) -> None:
    """Not before, and with a higher epoch."""
    dead, heir = Leader(engine, lease_s=0.4), Leader(engine)
    before = led(dead)
    began_s = time.monotonic()

    until(lambda: heir.lead() is not None)

    assert 0.3 < time.monotonic() - began_s < 5
    assert before.epoch + 1 == led(heir).epoch


def test_a_released_lease_is_taken_at_once(engine: Engine) -> None:
    """And the former leader leads no more."""
    leaving, heir = Leader(engine), Leader(engine)
    before = led(leaving)

    leaving.release()

    assert before.epoch + 1 == led(heir).epoch
    assert leaving.lead() is None


def test_releasing_what_another_holds_takes_nothing_from_it(engine: Engine) -> None:
    """A former leader that ends late does not end its heir's lease."""
    former, heir = Leader(engine), Leader(engine)
    led(former)
    end_lease(engine)
    led(heir)

    former.release()

    assert former.lead() is None


def test_a_leader_whose_lease_has_ended_leads_again_in_a_new_epoch(engine: Engine) -> None:
    """What it began before is refused: it may have been followed meanwhile."""
    leader = Leader(engine)
    before = led(leader)
    end_lease(engine)

    assert before.epoch + 1 == led(leader).epoch
    assert Recording.FENCED == record_run(engine, before, "a job", LOGICAL_AT)


def test_a_run_is_recorded_once(engine: Engine) -> None:
    """The second attempt is told that it is known."""
    leadership = led(Leader(engine))

    first = record_run(engine, leadership, "a job", LOGICAL_AT)
    second = record_run(engine, leadership, "a job", LOGICAL_AT)

    assert (Recording.RECORDED, Recording.KNOWN) == (first, second)


def test_a_recorded_run_is_unsent_until_it_is_marked(engine: Engine) -> None:
    """And marked once."""
    leadership = led(Leader(engine))
    record_run(engine, leadership, "a job", LOGICAL_AT)

    unsent = newest_runs(engine, ["a job", "another"])
    marks = [mark_enqueued(engine, leadership, "a job", LOGICAL_AT) for _ in range(2)]
    sent = newest_runs(engine, ["a job"])["a job"]

    assert ["a job"] == list(unsent)
    assert unsent["a job"].enqueued_at is None
    assert [True, False] == marks
    assert sent.enqueued_at is not None


def test_a_former_leader_writes_nothing(engine: Engine) -> None:
    """Neither a run nor a mark: the database refuses its epoch, and it is told."""
    former, heir = Leader(engine), Leader(engine)
    old = led(former)
    record_run(engine, old, "a job", LOGICAL_AT)
    end_lease(engine)
    new = led(heir)

    recorded = record_run(engine, old, "another job", LOGICAL_AT)
    marked = mark_enqueued(engine, old, "a job", LOGICAL_AT)

    assert (Recording.FENCED, False) == (recorded, marked)
    assert {"a job"} == set(newest_runs(engine, ["a job", "another job"]))
    assert newest_runs(engine, ["a job"])["a job"].enqueued_at is None
    assert mark_enqueued(engine, new, "a job", LOGICAL_AT)


def test_a_leader_whose_lease_has_ended_writes_nothing_though_nobody_followed(engine: Engine) -> None:
    """The epoch is the same: the lease's end alone refuses it."""
    leadership = led(Leader(engine))
    end_lease(engine)

    assert Recording.FENCED == record_run(engine, leadership, "a job", LOGICAL_AT)


def test_a_write_that_began_before_a_take_over_does_not_slip_in_beside_it(engine: Engine) -> None:
    """The statement of the former leader meets a take-over that is not committed: it waits for it, and is refused."""
    former, heir = Leader(engine), Leader(engine)
    old = led(former)
    recordings: list[Recording] = []

    with engine.begin() as taking_over:
        taking_over.execute(text("UPDATE scheduler_lease SET holder = :heir, epoch = epoch + 1"), {"heir": heir.holder})
        late = threading.Thread(target=lambda: recordings.append(record_run(engine, old, "a job", LOGICAL_AT)))
        late.start()
        until(lambda: _somebody_waits_for_a_lock(engine))
    late.join(15)

    assert [Recording.FENCED] == recordings
    assert {} == newest_runs(engine, ["a job"])


def _somebody_waits_for_a_lock(engine: Engine) -> bool:
    with statement_at_once(engine) as connection:
        waiting = connection.scalar(text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
    return bool(waiting)


def test_a_fresh_lease_is_not_renewed_and_a_stale_one_is(engine: Engine) -> None:
    """Within a tick the leader asks before each job, and the database only when a second has passed."""
    now_s = [100.0]
    leader = Leader(engine, monotonic_s=lambda: now_s[0])
    leadership = led(leader)
    end_lease(engine)

    fresh = leader.still_leads(leadership)
    now_s[0] += 1.0
    stale = leader.still_leads(leadership)

    assert (True, False) == (fresh, stale)


def test_a_database_that_is_away_is_told_as_such(engine: Engine, settings: Settings) -> None:
    """``StoreUnavailable``, not an error of the driver; and the next attempt works."""
    leader = Leader(engine)
    led(leader)
    with engine.connect() as connection:
        with pytest.raises(StoreUnavailable):
            with statement_at_once(engine) as doomed:
                own = doomed.scalar(text("SELECT pg_backend_pid()"))
                connection.execute(text("SELECT pg_terminate_backend(:own)"), {"own": own})
                doomed.execute(text("SELECT 1"))

    assert leader.lead() is not None
