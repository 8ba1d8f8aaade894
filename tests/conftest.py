"""Servers for the tests: one set of real, embedded servers a worker, an empty database and Redis for every test."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import redis
import structlog
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr
from sqlalchemy import Engine

from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL, EmbeddedServers
from coupon_workers.runtime.clock import utc_now
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.lean_redis import lean_threads
from coupon_workers.runtime.redis_client import client_without_retries, make_redis
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from coupon_workers.runtime.task import Task
from coupon_workers.runtime.worker_number import LeasedIds
from coupon_workers.schema.migration import upgrade
from tests.support.empty_database import empty_database
from tests.support.machine_turn import MachineTurn
from tests.support.seen_facts import tell_facts

# Whoever runs the tests in the background, or by nohup, has signals ignored, and so would every process of theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # the run itself outlives its terminal: no process inherits a handler

# A busy machine is no failure: what takes how long is for the bench to say.
hypothesis_settings.register_profile("coupon-workers", deadline=None)
hypothesis_settings.load_profile("coupon-workers")

_TURN = pytest.StashKey[MachineTurn]()


def pytest_configure(config: pytest.Config) -> None:
    """The workers of a run, whose folders lie side by side, take turns at the machine."""
    if hasattr(config, "workerinput"):
        config.stash[_TURN] = MachineTurn(Path(config.getoption("basetemp")).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who gives ``-n`` gets shares that keep together what belongs together; ``--dist`` is for other wishes."""
    if config.option.dist != "load":
        return None
    from tests.support.worker_share import WorkerShares

    return WorkerShares(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # first: the time that a test waits for its turn is not its own
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test marked ``alone`` runs beside no other."""
    turn = item.config.stash.get(_TURN, None)
    alone = item.get_closest_marker("alone") is not None
    with turn.taken(alone=alone) if turn else nullcontext():
        return (yield)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the experiments have seen."""
    tell_facts(terminalreporter, "fault experiments")


class PostBox:
    """A post that keeps what was sent, for tests that play the worker themselves."""

    def __init__(self) -> None:
        self.sent: list[Task] = []

    def send(self, task: Task) -> None:
        """Keep the task."""
        self.sent.append(task)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where Python is told to keep nothing that it compiled, each of our hundreds of processes would compile anew."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.getbasetemp().parent / "compiled")


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """What a command that a test runs in this process sets up for its logs ends with the test."""
    loggers = [logging.getLogger(name) for name in (None, "pika", "dramatiq")]
    root = loggers[0]
    handlers, levels, config = root.handlers[:], [logger.level for logger in loggers], structlog.get_config()
    yield
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    structlog.configure(**config)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """PostgreSQL and two Valkeys for the whole run of a worker, in a folder of their own, not durable."""
    with EmbeddedServers(tmp_path_factory.mktemp("servers"), durable=False) as started:
        yield started


@pytest.fixture(scope="session")
def settings(servers: EmbeddedServers) -> Settings:
    """Settings that point to the run's servers."""
    urls = servers.urls()
    return Settings(
        database_url=SecretStr(urls[DATABASE_URL]),
        redis_url=SecretStr(urls[REDIS_URL]),
        broker_url=SecretStr(urls[BROKER_URL]),
        code_pepper=SecretStr("a-pepper-for-tests"),
    )


@pytest.fixture(scope="session")
def migrated_engine(settings: Settings) -> Iterator[Engine]:
    """The run's database, at the newest schema."""
    engine = make_engine(settings)
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(migrated_engine: Engine) -> Engine:
    """The run's database with every table empty."""
    empty_database(migrated_engine)
    return migrated_engine


@pytest.fixture
def redis_client(settings: Settings) -> Iterator[redis.Redis]:
    """The stock's Redis and the broker's, both empty; the client is the stock's."""
    assert settings.broker_url is not None
    broker = client_without_retries(settings.broker_url.get_secret_value(), 2_000)
    broker.flushall()
    broker.close()
    client = make_redis(settings)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def post() -> PostBox:
    """A post whose box the test may look into."""
    return PostBox()


@pytest.fixture
def services(settings: Settings, engine: Engine, redis_client: redis.Redis, post: PostBox) -> Iterator[Services]:
    """Services on the empty stores; what they send lies in ``post``."""
    ids = LeasedIds(redis_client)
    yield Services(settings, engine, redis_client, post, ids.next_id, utc_now, lean_threads(settings))
    ids.close()  # its thread would go on to write into the Redis of other tests
