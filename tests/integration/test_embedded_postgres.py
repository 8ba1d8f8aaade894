"""PostgreSQL from a wheel starts anywhere, keeps its data, and is never in its own way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from sqlalchemy import Engine, NullPool, create_engine, text

from coupon_workers.embedded.leftovers import processes_in
from coupon_workers.embedded.postgres import EmbeddedPostgres
from coupon_workers.errors import EmbeddedServerError


def engine(server: EmbeddedPostgres) -> Engine:
    """Connects anew each time: the server is stopped and started in these tests."""
    return create_engine(server.url, poolclass=NullPool)


def write_row(server: EmbeddedPostgres) -> None:
    """One committed row."""
    with engine(server).begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS kept"))
        connection.execute(text("CREATE TABLE kept AS SELECT 42 AS value"))


def read_row(server: EmbeddedPostgres) -> int:
    """The row again."""
    with engine(server).connect() as connection:
        return int(connection.execute(text("SELECT value FROM kept")).scalar_one())


def long_folder(tmp_path: Path) -> Path:
    """A folder of data in which no socket can lie."""
    return tmp_path / ("long " * 12) / ("longer " * 10) / "postgres"


def socket_of(server: EmbeddedPostgres) -> Path:
    """Where it listens."""
    return Path(parse_qs(urlsplit(server.url).query)["host"][0]) / ".s.PGSQL.5432"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for most tests, as making it takes a second: its name has spaces, and only we may enter."""
    closed = tmp_path_factory.mktemp("postgres") / "only ours"
    closed.mkdir(mode=0o700)
    return closed / "postgres"


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A running one."""
    with EmbeddedPostgres(folder, durable=False) as started:
        yield started


def test_it_serves_utc_and_utf8_on_a_socket_only(server: EmbeddedPostgres) -> None:
    """The database is there, the time zone is UTC, the collation is PostgreSQL's own, no port is open."""
    with engine(server).connect() as connection:
        row = connection.execute(
            text(
                "SELECT current_database(), current_setting('TimeZone'), current_setting('listen_addresses'),"
                " pg_encoding_to_char(encoding), datlocale FROM pg_database WHERE datname = 'coupon'"
            )
        ).one()

    assert tuple(row) == ("coupon", "UTC", "", "UTF8", "C.UTF-8")
    assert psutil.Process(server.pid).net_connections("inet") == []


def test_a_restart_finds_the_data(server: EmbeddedPostgres) -> None:
    """Stopping in order and starting again is all it takes."""
    write_row(server)

    server.stop()
    server.start()

    assert read_row(server) == 42


def test_a_killed_postmaster_is_replaced_though_its_family_lives_on(server: EmbeddedPostgres) -> None:
    """The back ends of a killed postmaster hold its shared memory; they are ended first. Committed rows stay."""
    write_row(server)
    for process in psutil.Process(server.pid).children():
        with suppress(psutil.NoSuchProcess):
            process.suspend()  # so that they cannot notice by themselves
    psutil.Process(server.pid).send_signal(signal.SIGKILL)
    server.wait()

    server.start()

    assert read_row(server) == 42


def test_an_orphan_server_of_the_folder_is_ended_first(server: EmbeddedPostgres) -> None:
    """The one an earlier owner left running makes way for ours."""
    orphan = psutil.Process(server.pid)

    with EmbeddedPostgres(server.data_dir, durable=False) as second:
        assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
        assert second.pid is not None


def test_a_pid_file_that_names_another_program_does_not_block(server: EmbeddedPostgres) -> None:
    """Process numbers are given again; the program that has ours now is left alone."""
    server.stop()
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=server.data_dir)
    lines = f"{stranger.pid}\n{server.data_dir}\n1\n5432\n{server.data_dir}\n\n  1 1\nready\n"
    (server.data_dir / "postmaster.pid").write_text(lines)
    (server.data_dir / ".s.PGSQL.5432.lock").write_text(lines)

    server.start()

    try:
        assert server.pid is not None
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n")


def test_a_half_made_folder_is_made_anew(tmp_path: Path) -> None:
    """What a kill in the middle of initdb leaves is thrown away."""
    (tmp_path / "postgres.unfinished").mkdir()
    (tmp_path / "postgres.unfinished" / "PG_VERSION").write_text("18\n")

    with EmbeddedPostgres(tmp_path / "postgres", durable=False) as server:
        write_row(server)

        assert read_row(server) == 42


def test_the_port_of_another_postgresql_leads_nobody_astray(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has one on his machine has its port in his environment, where every client looks for it."""
    monkeypatch.setenv("PGPORT", "6543")

    with EmbeddedPostgres(folder, durable=False, start_timeout_s=10) as server:
        write_row(server)

        assert read_row(server) == 42


def test_a_long_path_works(tmp_path: Path) -> None:
    """More than the 107 bytes a socket's path may have; its short folder goes with the server."""
    with EmbeddedPostgres(long_folder(tmp_path), durable=False) as server:
        write_row(server)

        assert read_row(server) == 42
        sockets = socket_of(server).parent

    assert not sockets.exists()


def test_a_lock_beside_a_socket_that_names_another_program_does_not_block(tmp_path: Path) -> None:
    """A kill has left it, and its number has been given to somebody since; the socket lies far from the data."""
    with EmbeddedPostgres(long_folder(tmp_path), durable=False) as server:
        owner, lock = server.data_dir.stat(), socket_of(server).with_name(".s.PGSQL.5432.lock")
        lines = lock.read_text().splitlines(keepends=True)[1:]
        server.stop()
        lock.parent.mkdir(mode=0o700)
        os.chown(lock.parent, owner.st_uid, owner.st_gid)
        user = owner.st_uid if os.geteuid() == 0 else None
        stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=user)
        lock.write_text(f"{stranger.pid}\n{''.join(lines)}")

        try:
            server.start()

            assert stranger.poll() is None
        finally:
            stranger.communicate()


def test_a_server_that_cannot_start_says_why(server: EmbeddedPostgres) -> None:
    """The end of its log is in the error."""
    server.stop()
    version = (server.data_dir / "PG_VERSION").read_text()
    (server.data_dir / "PG_VERSION").write_text("9\n")

    try:
        with pytest.raises(EmbeddedServerError, match=r"(?s)postgres ended at its start.*incompatible"):
            server.start()
    finally:
        (server.data_dir / "PG_VERSION").write_text(version)


def test_a_server_that_does_not_listen_is_ended_by_force(server: EmbeddedPostgres) -> None:
    """Its family does not stay behind."""
    psutil.Process(server.pid).suspend()
    for process in psutil.Process(server.pid).children():
        with suppress(psutil.NoSuchProcess):
            process.suspend()

    server.stop(grace_s=0.1)

    assert list(processes_in(server.data_dir, frozenset({"postgres"}))) == []


def test_stopping_ends_the_family_of_a_killed_postmaster(server: EmbeddedPostgres) -> None:
    """Though there is no server any more that could be stopped."""
    for process in psutil.Process(server.pid).children():
        with suppress(psutil.NoSuchProcess):
            process.suspend()  # so that they cannot notice by themselves
    psutil.Process(server.pid).kill()
    server.wait()

    server.stop()

    assert list(processes_in(server.data_dir, frozenset({"postgres"}))) == []


def test_stopping_leaves_no_process(server: EmbeddedPostgres) -> None:
    """Neither the postmaster nor one of its family."""
    server.stop()

    assert list(processes_in(server.data_dir, frozenset({"postgres"}))) == []
    assert server.pid is None
