"""A worker that dies or loses its server while it stages, and two that stage at once: the result is that of one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Event, Thread

import pytest
from sqlalchemy import text

from coupon_workers.campaigns import staging
from coupon_workers.campaigns.staging import stage_batch
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.services import Services
from tests.support.lost_commit import commit_lost
from tests.support.staging_batch import Staged, csv_of, staged, waiting_batch
from tests.support.staging_child import stage_in_child

USERS = [f"u{n % 25_000}" if n % 1_000 else "a b" for n in range(30_000)]
PATIENCE_S = 30


def undisturbed(services: Services) -> Staged:
    """What becomes of the same file where nothing goes wrong."""
    batch_id = waiting_batch(services, csv_of(USERS))
    stage_batch(services, batch_id)
    return staged(services, batch_id)


def test_a_worker_that_is_killed_before_the_commit_leaves_the_batch_as_it_was(services: Services) -> None:
    """The next one begins anew, with the same result (FAULTS 2)."""
    batch_id = waiting_batch(services, csv_of(USERS))
    before = staged(services, batch_id)

    killed = stage_in_child(services.settings, batch_id, crash_at="stage.before_commit")
    left = staged(services, batch_id)
    ended = stage_in_child(services.settings, batch_id)

    assert -signal.SIGKILL == killed.returncode
    assert before == left
    assert ended.told is not None and "ready" == ended.told["status"]
    assert undisturbed(services) == staged(services, batch_id)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_a_session_that_ends_while_blocks_are_copied(
    services: Services, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """The worker hears of it as of any server that is away, and the batch is as it was."""
    batch_id = waiting_batch(services, csv_of(USERS))
    before = staged(services, batch_id)
    with monkeypatch.context() as patch:
        at_block(patch, block, lambda: end_session_of_staging(services))
        with pytest.raises(StoreUnavailable):
            stage_batch(services, batch_id)
    left = staged(services, batch_id)

    assert "ready" == stage_batch(services, batch_id)

    assert before == left
    assert undisturbed(services) == staged(services, batch_id)


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_whose_answer_is_lost(services: Services, done: bool) -> None:
    """Whoever comes again finds it done, or does it."""
    batch_id = waiting_batch(services, csv_of(USERS))
    with commit_lost(services.engine, done=done), pytest.raises(StoreUnavailable):
        stage_batch(services, batch_id)

    assert "ready" == stage_batch(services, batch_id)

    assert undisturbed(services) == staged(services, batch_id)


def test_of_two_that_stage_at_once_one_does(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other returns at once, without waiting for it."""
    batch_id = waiting_batch(services, csv_of(USERS))
    reached, go_on, statuses = Event(), Event(), list[str]()

    def hold() -> None:
        reached.set()
        assert go_on.wait(PATIENCE_S)

    at_block(monkeypatch, 1, hold)
    first = Thread(target=lambda: statuses.append(stage_batch(services, batch_id)))
    first.start()
    assert reached.wait(PATIENCE_S)

    meanwhile = stage_batch(services, batch_id)
    go_on.set()
    first.join(PATIENCE_S)

    assert ("staging", ["ready"]) == (meanwhile, statuses)
    assert undisturbed(services) == staged(services, batch_id)


def test_two_batches_are_staged_at_once(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither waits for the other."""
    one, other = (waiting_batch(services, csv_of(USERS)) for _ in range(2))
    answers = list[str]()
    with monkeypatch.context() as patch:
        at_block(patch, 1, lambda: answers.append(stage_batch(services, other)))
        answers.append(stage_batch(services, one))

    assert ["ready", "ready"] == answers
    assert staged(services, one) == staged(services, other) == undisturbed(services)


def at_block(monkeypatch: pytest.MonkeyPatch, block: int, action: Callable[[], object]) -> None:
    """Have something happen before a block is copied, once; they are counted from 1."""
    copy_in, blocks = staging.copy_in, iter(range(1, 10**6))

    def act_and_copy(*arguments: object) -> None:
        if next(blocks) == block:
            action()
        copy_in(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(staging, "copy_in", act_and_copy)


def end_session_of_staging(services: Services) -> None:
    """As a failing server does: the session that has staging's lock is ended."""
    with services.engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND classid = :kind"
            ),
            {"kind": staging._KIND},
        )
