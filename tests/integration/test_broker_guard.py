"""Messages that fail or kill: retried, dead-lettered after three deliveries, never lost (FAULTS 12 and 13)."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from coupon_workers.runtime import broker as broker_module
from coupon_workers.runtime.broker_guard import MAX_DELIVERIES
from coupon_workers.runtime.settings import Settings
from tests.support.workshop import SETTLE, Workshop, abandon_next, eventually

HEARTBEAT_MS = 300


@pytest.fixture
def workshop(settings: Settings, redis_client: redis.Redis) -> Workshop:
    """Empty queues."""
    return Workshop(settings)


def fail(*_: object) -> None:
    """Do nothing but raise."""
    raise RuntimeError("no luck")


def only_dead(workshop: Workshop) -> dict[str, Any]:
    """The only dead letter, read."""
    (content,) = workshop.dead().values()
    letter: dict[str, Any] = json.loads(content)
    return letter


@pytest.mark.parametrize("deadly", [True, False])
def test_a_message_whose_workers_die_is_set_aside_after_three_deliveries(
    settings: Settings, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, deadly: bool
) -> None:
    """With two deaths it is tried again, and done; whatever waits behind it is done in any case."""
    monkeypatch.setattr(broker_module, "HEARTBEAT_MS", HEARTBEAT_MS)
    last = Workshop(settings)
    actor = last.actor("settle_claims")
    actor.send(1, 0)
    for _ in range(MAX_DELIVERIES if deadly else MAX_DELIVERIES - 1):
        abandon_next(Workshop(settings).broker)
    actor.send(2, 0)

    with last.working():
        done = {last.next_done() for _ in range(1 if deadly else 2)}
        assert eventually(lambda: not last.left())

    first, second = ("settle_claims", 1, 0), ("settle_claims", 2, 0)
    assert ({second} if deadly else {first, second}) == done
    assert ([[1, 0]] if deadly else []) == [json.loads(content)["args"] for content in last.dead().values()]
    assert [] == last.client.keys("cw:begun:*")


def test_a_worker_that_was_killed_gives_its_messages_back_in_seconds(
    settings: Settings, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fetch looks for dead workers: an idle queue does not wait for a lucky one (CASES 37)."""
    monkeypatch.setattr(broker_module, "HEARTBEAT_MS", HEARTBEAT_MS)
    living = Workshop(settings)
    living.actor("settle_claims").send(1, 0)
    abandon_next(Workshop(settings).broker)

    with living.working():
        assert ("settle_claims", 1, 0) == living.next_done()


def test_a_message_that_fails_is_tried_again_and_then_dead_lettered(workshop: Workshop) -> None:
    """A failure is no death: the cap on deliveries does not count it."""
    tries: list[object] = []

    def note_and_fail(*args: object) -> None:
        tries.append(args)
        fail()

    workshop.actor("settle_claims", note_and_fail, max_retries=4, min_backoff=1, max_backoff=5).send(1, 0)

    with workshop.working():
        assert eventually(workshop.dead)
        assert eventually(lambda: not workshop.left())

    assert (5, [1, 0]) == (len(tries), only_dead(workshop)["args"])
    assert [] == workshop.client.keys("cw:begun:*")


def test_an_expected_failure_is_dead_lettered_at_once(workshop: Workshop) -> None:
    """Trying again would not help."""
    workshop.actor("settle_claims", fail, throws=(RuntimeError,)).send(1, 0)

    with workshop.working():
        assert eventually(workshop.dead)

    assert "retries" not in only_dead(workshop)["options"]


def test_a_message_whose_retry_cannot_be_enqueued_is_dead_lettered(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As shipped it would be acknowledged and lost."""
    workshop.actor("settle_claims", fail, max_retries=3).send(1, 0)

    def refuse(*_: object, **__: object) -> None:
        raise redis.ConnectionError("the broker is away")

    monkeypatch.setattr(workshop.broker, "enqueue", refuse)
    with workshop.working():
        assert eventually(workshop.dead)

    assert [1, 0] == only_dead(workshop)["args"]
    assert 0 == workshop.left()


def test_a_worker_that_is_stopped_finishes_what_it_has_begun(workshop: Workshop) -> None:
    """An interruption would dead-letter a drain that was about to end by itself."""
    begun, go_on = threading.Event(), threading.Event()

    def work(*_: object) -> None:
        begun.set()
        assert go_on.wait(10)

    workshop.actor("settle_claims", work, max_retries=0).send(1, 0)

    with workshop.working() as worker:
        assert begun.wait(10)
        stop = threading.Thread(target=worker.stop, args=(10_000,))
        stop.start()
        assert eventually(lambda: not any(thread.running for thread in worker.workers))
        go_on.set()
        stop.join()

    assert ("settle_claims", 1, 0) == workshop.next_done()
    assert ({}, 0) == (workshop.dead(), workshop.left())


def test_a_message_too_old_to_matter_is_dropped(workshop: Workshop) -> None:
    """Sweeps pile up while no worker runs. The log alone tells of it: where it is the clocks' fault, it is no other way
    to be seen."""
    actor = workshop.actor("sweep_gates", max_age=1_000)
    workshop.broker.enqueue(actor.message().copy(message_timestamp=1))
    actor.send()

    with capture_logs() as told, workshop.working():
        assert ("sweep_gates",) == workshop.next_done()
        assert eventually(lambda: not workshop.left())

    assert {} == workshop.dead()
    assert workshop.done.empty()
    assert ["sweep_gates"] == [line["actor"] for line in told if line["event"] == "too old, dropped"]


def test_a_broker_that_comes_back_finds_its_worker_at_work(workshop: Workshop) -> None:
    """Its connections were cut: the worker fetches again, and what was under way is acknowledged."""
    actor = workshop.actor("settle_claims")

    with workshop.working():
        actor.send(1, 0)
        first = workshop.next_done()
        workshop.client.client_kill_filter(_type="normal", skipme=True)
        actor.send(2, 0)
        second = workshop.next_done()
        assert eventually(lambda: not workshop.left())

    assert [("settle_claims", 1, 0), ("settle_claims", 2, 0)] == [first, second]
    assert {} == workshop.dead(SETTLE)
