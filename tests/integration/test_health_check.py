"""Readiness: each part is asked at once, and a server that hangs costs a second and a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis
from pydantic import SecretStr
from sqlalchemy import insert

from coupon_workers.claiming.key import WARM_TEMPLATES, BucketKeys
from coupon_workers.runtime.broker_queues import BrokerQueues
from coupon_workers.runtime.clock import to_ms, utc_now
from coupon_workers.runtime.health import HealthCheck
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.schema import JobRun

PARTS = {"redis", "postgresql", "broker", "queued_claims", "scheduler"}


def _check(services: Services) -> HealthCheck:
    return HealthCheck(services, BrokerQueues(services.settings))


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The path of a server that takes connections and says nothing."""
    with TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "s")
        listener.bind(path)
        listener.listen(64)
        yield path


def test_all_parts_are_ok_when_all_servers_answer(services: Services) -> None:
    """With nothing queued and a scheduler that ran just now."""
    with services.engine.begin() as connection:
        connection.execute(insert(JobRun).values(job="sweep", logical_at=utc_now(), epoch=1))

    health = _check(services).check()

    assert dict.fromkeys(PARTS, "ok") == {name: part.state for name, part in health.parts.items()}
    assert "ok" == health.status


def test_a_scheduler_that_has_not_run_is_late_and_the_front_ready(services: Services) -> None:
    """Never, or not for long: claims are accepted all the same."""
    assert "late" == _check(services).check().parts["scheduler"].state
    with services.engine.begin() as connection:
        past = utc_now() - timedelta(minutes=10)
        connection.execute(insert(JobRun).values(job="sweep", logical_at=past, recorded_at=past, epoch=1))

    health = _check(services).check()

    assert "late" == health.parts["scheduler"].state
    assert "ok" == health.status


def test_a_scheduler_that_ran_in_time_to_come_is_late(services: Services) -> None:
    """PostgreSQL's clock was set back: nothing is due until it is there again."""
    with services.engine.begin() as connection:
        to_come = utc_now() + timedelta(minutes=10)
        connection.execute(insert(JobRun).values(job="sweep", logical_at=to_come, recorded_at=to_come, epoch=1))

    assert "late" == _check(services).check().parts["scheduler"].state


def test_the_age_of_the_oldest_queued_claim_is_told(services: Services, redis_client: redis.Redis) -> None:
    """By the clock that wrote it; late from a minute on."""
    keys = BucketKeys(7)
    redis_client.sadd(WARM_TEMPLATES, "7.0", "8.0")
    old_ms = to_ms(utc_now()) - 90_000
    redis_client.xadd(keys.pending, {"c": "1"}, id=f"{old_ms}-0")
    redis_client.xadd(keys.pending, {"c": "2"})

    part = _check(services).check().parts["queued_claims"]

    assert ("late", 2) == (part.state, part.detail["queued"])
    assert 89_000 <= int(str(part.detail["oldest_age_ms"])) <= 100_000


@pytest.mark.parametrize(
    ("setting", "url", "down"),
    [
        ("broker_url", "redis://127.0.0.1:1/0", {"broker"}),
        ("redis_url", "redis://127.0.0.1:1/0", {"redis", "queued_claims"}),
        ("database_url", "postgresql://127.0.0.1:1/x", {"postgresql", "scheduler"}),
        ("broker_url", "amqp://127.0.0.1:1/", {"broker"}),
    ],
)
def test_a_server_that_is_not_there_is_down(services: Services, setting: str, url: str, down: set[str]) -> None:
    """Its part says so, and only without Redis is the front not ready; the others are as they were."""
    settings = services.settings.model_copy(update={setting: SecretStr(url)})

    health = _check(make_services(settings)).check()

    assert down == {name for name, part in health.parts.items() if part.state == "down"}
    assert ("down" if setting == "redis_url" else "degraded") == health.status


@pytest.mark.parametrize(
    ("setting", "scheme", "down"),
    [
        ("broker_url", "unix://{}", {"broker"}),
        ("redis_url", "unix://{}", {"redis", "queued_claims"}),
        ("database_url", "postgresql://u@/x?host={}", {"postgresql", "scheduler"}),
    ],
)
def test_a_server_that_hangs_is_down_within_a_second(
    services: Services, silent_server: str, setting: str, scheme: str, down: set[str]
) -> None:
    """However often it is asked for, it holds as many threads as it has probes."""
    if setting == "database_url":
        Path(silent_server).rename(Path(silent_server).parent / ".s.PGSQL.5432")
        silent_server = str(Path(silent_server).parent)
    check = _check(
        make_services(services.settings.model_copy(update={setting: SecretStr(scheme.format(silent_server))}))
    )
    before = threading.active_count()

    started_s = time.monotonic()
    first = check.check()
    took_s = time.monotonic() - started_s
    for _ in range(2):
        check.check()

    assert down == {name for name, part in first.parts.items() if part.state == "down"}
    assert took_s < 1.5
    assert threading.active_count() - before <= len(down)


def test_what_a_server_says_is_not_told(services: Services) -> None:
    """Anybody may ask: no address, no user, no message of the server."""
    settings = services.settings.model_copy(update={"database_url": SecretStr("postgresql://me:pass@127.0.0.1:1/x")})

    parts = _check(make_services(settings)).check().parts

    assert {"reason": "no answer"} == parts["postgresql"].detail
