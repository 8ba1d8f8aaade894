"""The three servers of an installation start together, belong to one owner, and survive him."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import redis
from sqlalchemy import NullPool, create_engine, text

from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL, EmbeddedServers
from coupon_workers.embedded.servers_file import running_settings
from coupon_workers.errors import EmbeddedServerError

OWNER = """
import sys
from pathlib import Path
from coupon_workers.embedded.servers import EmbeddedServers

servers = EmbeddedServers(Path(sys.argv[1]), durable=False)
servers.start()
print(*servers.pids().values(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: making it is the slow part."""
    return tmp_path_factory.mktemp("installation")


@pytest.fixture
def servers(data_dir: Path) -> Iterator[EmbeddedServers]:
    """Running ones."""
    with EmbeddedServers(data_dir, durable=False) as started:
        yield started


def test_each_address_leads_to_a_server_of_its_own(servers: EmbeddedServers) -> None:
    """PostgreSQL, Valkey for stock, another Valkey for messages."""
    urls = servers.urls()

    stock, broker = redis.Redis.from_url(urls[REDIS_URL]), redis.Redis.from_url(urls[BROKER_URL])
    with create_engine(urls[DATABASE_URL], poolclass=NullPool).connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    assert stock.info("server")["run_id"] != broker.info("server")["run_id"]


def test_other_shells_find_what_runs(servers: EmbeddedServers) -> None:
    """servers.json holds addresses and processes, for us only; nothing is left of it afterwards."""
    file = servers.data_dir / "servers.json"
    content = json.loads(file.read_text())

    assert servers.urls() == running_settings(servers.data_dir)
    assert servers.pids() == content["pids"]
    assert os.getpid() == content["owner"]
    assert file.stat().st_mode & 0o777 == 0o600

    servers.stop()
    assert running_settings(servers.data_dir) is None
    assert not file.exists()


def test_many_restarts_at_once_leave_one_whole_file(servers: EmbeddedServers) -> None:
    """Each is noted by a thread of its own; what is noted after the end leaves nothing behind."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: servers.record(), range(200)))

    assert servers.urls() == running_settings(servers.data_dir)
    servers.stop()
    servers.record()
    assert not (servers.data_dir / "servers.json").exists()


def test_a_second_start_on_the_same_folder_is_refused(servers: EmbeddedServers) -> None:
    """It names the owner, and does him no harm, not even when it is stopped."""
    second = EmbeddedServers(servers.data_dir, durable=False)

    with pytest.raises(EmbeddedServerError, match=f"in use by process {os.getpid()}"):
        second.start()
    second.stop()

    assert servers.urls() == running_settings(servers.data_dir)


def test_who_has_the_folder_is_told_before_what_has_the_port(servers: EmbeddedServers) -> None:
    """Mostly it is the same one."""
    with socket.create_server(("127.0.0.1", 0)) as front:
        second = RunningSystem(servers.data_dir, port=front.getsockname()[1], durable=False)

        with pytest.raises(EmbeddedServerError, match=f"in use by process {os.getpid()}"):
            second.start()


def test_given_servers_are_used_and_not_started(tmp_path: Path) -> None:
    """Only what has no address is ours to run."""
    given = {DATABASE_URL: "postgresql://db.example/coupon", REDIS_URL: "redis://cache.example", BROKER_URL: ""}

    with EmbeddedServers(tmp_path, durable=False, given=given) as servers:
        assert {"broker"} == set(servers.pids())
        assert given[DATABASE_URL] == servers.urls()[DATABASE_URL]
        assert given[REDIS_URL] == servers.urls()[REDIS_URL]
        assert servers.urls()[BROKER_URL].startswith("unix://")


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A file lies where the folder should be."""
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedServerError, match=f"COUPON_DATA_DIR {tmp_path}/file/data cannot be used"):
        EmbeddedServers(tmp_path / "file" / "data").start()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans are ended by the next start")
def test_a_killed_owner_takes_its_servers_along_and_the_next_one_starts(data_dir: Path) -> None:
    """kill -9 runs no code of ours: the kernel tells the servers, the next start cleans up."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    servers = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
    assert len(servers) == 3

    owner.kill()
    owner.wait()

    with EmbeddedServers(data_dir, durable=False) as next_ones:  # at once: it must not depend on their being gone
        assert len(next_ones.pids()) == 3
    assert psutil.wait_procs(servers, timeout=10)[1] == []


def test_a_failed_start_leaves_nothing_running(tmp_path: Path) -> None:
    """One server cannot start: the others are stopped, and the folder is free."""
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "note.txt").touch()
    servers = EmbeddedServers(tmp_path, durable=False)

    with pytest.raises(EmbeddedServerError, match="no PostgreSQL data"):
        servers.start()

    assert servers.pids() == {}
    assert running_settings(tmp_path) is None
