"""Valkey from a wheel keeps what it was told, and starts after any crash."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from coupon_workers.embedded.valkey import EmbeddedValkey
from coupon_workers.errors import EmbeddedServerError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    """A running one."""
    with EmbeddedValkey("redis", tmp_path / "with space" / "redis") as started:
        yield started


def client(server: EmbeddedValkey) -> redis.Redis:
    """By its address."""
    return redis.Redis.from_url(server.url, decode_responses=True)


def test_it_keeps_an_append_only_file_and_never_evicts(server: EmbeddedValkey) -> None:
    """An evicted or lost key would be a lost claim."""
    settings = client(server).config_get("append*", "maxmemory-policy", "save", "port")

    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert settings["maxmemory-policy"] == "noeviction"
    assert settings["save"] == ""
    assert settings["port"] == "0"


def test_a_killed_server_comes_back_with_its_data(server: EmbeddedValkey) -> None:
    """Its socket and its process number are left behind, and do not block."""
    client(server).set("stock", "7")
    psutil.Process(server.pid).send_signal(signal.SIGKILL)
    server.wait()

    server.start()

    assert client(server).get("stock") == "7"


def test_a_torn_append_only_file_is_loaded_up_to_the_tear(server: EmbeddedValkey) -> None:
    """A crash of the machine cuts the last command short: those before it count."""
    client(server).set("first", "1")
    client(server).set("last", "2")
    server.stop()
    (written,) = (server.data_dir / "appendonlydir").glob("*.incr.aof")
    written.write_bytes(written.read_bytes()[:-3])

    server.start()

    assert client(server).mget("first", "last") == ["1", None]


def test_an_orphan_server_of_the_folder_is_ended_first(server: EmbeddedValkey) -> None:
    """The one an earlier owner left running would write into the same file."""
    orphan = psutil.Process(server.pid)
    client(server).set("stock", "7")

    with EmbeddedValkey("redis", server.data_dir) as second:
        assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
        assert client(second).get("stock") == "7"


def test_a_long_path_works(tmp_path: Path) -> None:
    """More than the 107 bytes a socket's path may have."""
    with EmbeddedValkey("redis", tmp_path / ("long " * 12) / ("longer " * 10) / "redis") as server:
        assert client(server).ping()
        short = server.socket_path.parent

    assert not short.exists()


def test_a_server_that_cannot_start_says_why(server: EmbeddedValkey) -> None:
    """The end of its log is in the error."""
    server.stop()
    (manifest,) = (server.data_dir / "appendonlydir").glob("*.manifest")
    manifest.write_text("nonsense\n")

    with pytest.raises(EmbeddedServerError, match=r"(?s)redis ended at its start.*manifest"):
        server.start()
