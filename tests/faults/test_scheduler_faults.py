"""Real scheduler processes: killed, stopped, cut off from their servers (FAULTS 9, 15, 16, 18)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, create_engine, text

from coupon_workers.embedded.valkey import EmbeddedValkey
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings
from tests.support.mortal import mortal

SOON_S = 20.0


def until(happened: Callable[[], object], within_s: float = SOON_S) -> float:
    """Wait for an event and answer how long it took; fail when it does not come."""
    began = time.monotonic()
    while not happened():
        assert time.monotonic() < began + within_s, "it did not happen in time"
        time.sleep(0.05)
    return time.monotonic() - began


@dataclass
class Process:
    """One ``python -m schedules`` and what it has logged."""

    popen: subprocess.Popen[bytes]
    log: Path

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == name]

    @property
    def leads(self) -> bool:
        return bool(self.events("scheduler_leads"))


Start = Callable[..., Process]


@pytest.fixture
def start(settings: Settings, engine: Engine, redis_client: redis.Redis, tmp_path: Path) -> Iterator[Start]:
    """Starts schedulers on the run's servers; ends them at the end."""
    started: list[Process] = []

    def start_one(**changed: str) -> Process:
        urls = {
            f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value()
            for name in ("database_url", "redis_url", "broker_url")
        }
        log = tmp_path / f"scheduler-{len(started)}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                mortal(sys.executable, "-m", "schedules"), env=os.environ | urls | changed, stdout=output, stderr=output
            )
        started.append(Process(popen, log))
        return started[-1]

    yield start_one
    for process in started:
        if process.popen.poll() is None:
            process.send(signal.SIGCONT)
            process.popen.kill()
        process.popen.wait(SOON_S)


@pytest.fixture
def broker(settings: Settings, redis_client: redis.Redis) -> redis.Redis:
    """The broker's Redis, empty at the start."""
    assert settings.broker_url is not None
    return client_without_retries(settings.broker_url.get_secret_value(), 2_000)


def sent(broker: redis.Redis, task: str = "sweep_gates") -> int:
    """How many messages of ``task`` wait in the broker."""
    messages: dict[bytes, bytes] = broker.hgetall("dramatiq:care.msgs")  # type: ignore[assignment]
    return sum(json.loads(message)["actor_name"] == task for message in messages.values())


def book(engine: Engine, job: str = "sweep_gates") -> list[Any]:
    """The job's runs, in order."""
    with engine.connect() as connection:
        query = text("SELECT logical_at, epoch, enqueued_at, recorded_at FROM job_run WHERE job = :job ORDER BY 1")
        return list(connection.execute(query, {"job": job}))


def led_by(start: Start, **changed: str) -> Process:
    """A scheduler that leads."""
    process = start(**changed)
    until(lambda: process.leads)
    return process


def test_a_killed_leader_is_followed_within_seconds(start: Start, engine: Engine, broker: redis.Redis) -> None:
    """The lease of three seconds runs out, the next tick takes it; every run of the book was sent."""
    leader, heir = led_by(start), start()
    until(lambda: heir.events("scheduler_started") and len(book(engine)) >= 2)

    leader.send(signal.SIGKILL)
    took_s = until(lambda: heir.leads)
    until(lambda: [run for run in book(engine) if run.epoch == 2 and run.enqueued_at])

    assert took_s < 8
    assert len(book(engine)) <= sent(broker) <= len(book(engine)) + 1


def test_a_stopped_leader_that_continues_writes_nothing(start: Start, engine: Engine, broker: redis.Redis) -> None:
    """Stopped until it has been followed, it wakes up a follower: no run of its epoch after the take-over."""
    leader, heir = led_by(start), start()
    until(lambda: heir.events("scheduler_started") and book(engine))

    leader.send(signal.SIGSTOP)
    until(lambda: [run for run in book(engine) if run.epoch == 2])
    leader.send(signal.SIGCONT)
    until(lambda: leader.events("scheduler_lost_the_lease"))
    runs = len(book(engine))
    until(lambda: len(book(engine)) >= runs + 2)

    epochs = [run.epoch for run in book(engine)]
    assert sorted(epochs) == epochs
    assert {1, 2} == set(epochs)
    assert len(book(engine)) - 1 <= sent(broker) <= len(book(engine)) + 1


def test_sigterm_lets_the_lease_go_at_once(start: Start, engine: Engine) -> None:
    """The process ends with 0, and the other leads with its next tick, not when the lease would have ended."""
    leader, heir = led_by(start), start()
    until(lambda: heir.events("scheduler_started"))

    leader.send(signal.SIGTERM)
    assert 0 == leader.popen.wait(SOON_S)

    assert until(lambda: heir.leads) < 2.5
    assert 1 == len(leader.events("scheduler_lease_released"))


@pytest.mark.parametrize(("point", "at_most"), [("scheduler.after_record", 1), ("scheduler.after_send", 2)])
def test_a_run_is_not_lost_when_its_leader_dies_over_it(
    point: str, at_most: int, start: Start, engine: Engine, broker: redis.Redis
) -> None:
    """Died before sending: sent once by the next. Died before noting it: sent again, as nobody can know."""
    dying = start(COUPON_CRASH_AT=f"{point}:1")
    assert -signal.SIGKILL == dying.popen.wait(SOON_S)
    [unsent] = book(engine)

    led_by(start)
    until(lambda: book(engine)[0].enqueued_at)

    assert unsent.enqueued_at is None
    runs = len(book(engine))
    assert runs - 1 <= sent(broker) <= runs + at_most


def test_an_outage_of_the_database_is_told_once_and_heals(start: Start, engine: Engine) -> None:
    """Every session ended and none allowed for some seconds: one line, no hot loop, and runs again within seconds."""
    leader = led_by(start)
    until(lambda: book(engine))

    with closed_database(engine):
        until(lambda: leader.events("store_is_away"))
        time.sleep(3)  # the outage itself: three ticks that find nobody
    before = len(book(engine))
    healed_s = until(lambda: len(book(engine)) > before)

    assert healed_s < 6
    assert leader.popen.poll() is None
    assert 1 == len(leader.events("store_is_away"))
    assert 1 == len(leader.events("store_is_back"))
    assert len(leader.log.read_text().splitlines()) < 20


class closed_database:
    """Nobody is let into the database of ``engine``, and those inside are thrown out."""

    def __init__(self, engine: Engine) -> None:
        self._name = engine.url.database
        self._door = create_engine(engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")

    def _allow(self, allowed: str) -> None:
        with self._door.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{self._name}" ALLOW_CONNECTIONS {allowed}'))

    def __enter__(self) -> None:
        self._allow("false")
        with self._door.connect() as connection:
            ended = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
            connection.execute(ended, {"name": self._name})

    def __exit__(self, *_error: object) -> None:
        self._allow("true")
        self._door.dispose()


def test_an_outage_of_the_broker_is_told_once_and_nothing_is_lost(start: Start, engine: Engine, tmp_path: Path) -> None:
    """A broker that goes and comes back: the unsent run is sent within seconds, and no runs have piled up."""
    with EmbeddedValkey("broker", tmp_path / "own-broker", durable=False) as own:
        leader = led_by(start, COUPON_BROKER_URL=own.url)
        until(lambda: [run for run in book(engine) if run.enqueued_at])

        own.stop()
        until(lambda: leader.events("store_is_away"))
        time.sleep(5)  # the outage itself: two more runs come due
        unsent = [run for run in book(engine) if not run.enqueued_at]
        own.start()
        healed_s = until(lambda: leader.events("store_is_back"))
        until(lambda: book(engine)[-2].enqueued_at)
        told = leader.events("store_is_away")  # before the broker goes with this block, which is an outage too

    assert healed_s < 6
    assert 1 == len(unsent)
    assert 1 == len(told)
