"""A whole installation: `up` starts it, nothing that is killed stays dead, nothing outlives it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import redis
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from coupon_workers.embedded.procfile import read_procfile
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.errors import EmbeddedServerError
from tests.support.mortal import mortal

PROCFILE = """\
release: python release.py
web: python front.py
worker: python -c 'import time; time.sleep(600)'
"""
RELEASE = """
import os, psycopg2
from urllib.parse import parse_qs, urlsplit
host = parse_qs(urlsplit(os.environ["COUPON_DATABASE_URL"]).query)["host"][0]
psycopg2.connect(host=host, user="postgres", dbname="coupon").close()
open("released.txt", "a").write("once\\n")
"""
FRONT = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Front(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ("/livez", "/readyz") else 404)
        self.end_headers()
HTTPServer((os.environ["COUPON_HTTP_HOST"], int(os.environ["COUPON_HTTP_PORT"])), Front).serve_forever()
"""
EMBEDDED = {"COUPON_DATABASE_URL": "", "COUPON_REDIS_URL": "", "COUPON_BROKER_URL": ""}
UP = "from coupon_workers.cli.up import up; up()"
ENV = "from coupon_workers.cli.env import env; env()"


def eventually(holds: Callable[[], bool], timeout_s: float = 20) -> None:
    """Wait until ``holds``."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-in programs and one data folder."""
    folder = tmp_path_factory.mktemp("installation")
    for name, content in (("Procfile", PROCFILE), ("release.py", RELEASE), ("front.py", FRONT)):
        (folder / name).write_text(content)
    return folder


def free_port() -> int:
    """One nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path, port: int) -> dict[str, str]:
    """Ours, without the servers of whoever runs the tests."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
    return {**ours, "COUPON_DATA_DIR": str(folder / "data"), "COUPON_HTTP_PORT": str(port)}


@pytest.fixture
def up(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`coupon-workers up`, ready."""
    process = subprocess.Popen(
        mortal(sys.executable, "-c", UP, "--procfile", str(folder / "Procfile")),
        env=environment(folder, free_port()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """All processes below it, without the helpers of PostgreSQL, which come and go."""
    return psutil.Process(process.pid).children()


def test_up_says_ready_once_and_ends_everything_when_told(up: subprocess.Popen[str], folder: Path) -> None:
    """One line on standard output; SIGTERM ends all of it, and that is a success."""
    assert up.stdout is not None
    line = up.stdout.readline()
    below = family(up)
    answer = urllib.request.urlopen(line.split()[1] + "/readyz", timeout=5).status

    up.send_signal(signal.SIGTERM)
    rest, _ = up.communicate(timeout=30)

    assert line.startswith("ready http://127.0.0.1:")
    assert (answer, rest, up.returncode) == (200, "", 0)
    assert len(below) == 5  # PostgreSQL, two Valkeys, front, worker
    assert psutil.wait_procs(below, timeout=5)[1] == []
    assert not (folder / "data" / "servers.json").exists()


def test_another_shell_reaches_the_servers_of_up(up: subprocess.Popen[str], folder: Path) -> None:
    """By lines it can evaluate."""
    assert up.stdout is not None
    port = int(up.stdout.readline().rpartition(":")[2])

    shown = subprocess.run(
        [sys.executable, "-c", ENV, "--urls"], env=environment(folder, 1), capture_output=True, text=True, check=True
    ).stdout
    script = f'{shown}\nprintf "%s\\n" "$COUPON_DATABASE_URL" "$COUPON_REDIS_URL" "$COUPON_HTTP_PORT"'
    database, stock, http_port = subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.split()

    with create_engine(database, poolclass=NullPool).connect() as connection:
        assert connection.execute(text("SELECT current_database()")).scalar_one() == "coupon"
    assert redis.Redis.from_url(stock).ping()
    assert int(http_port) == port


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which signals are ignored")
def test_up_that_was_started_by_nohup_outlives_its_terminal(folder: Path) -> None:
    """Whoever had SIGHUP ignored did not mean it to be an order."""
    process = subprocess.Popen(
        mortal("nohup", sys.executable, "-c", UP, "--procfile", str(folder / "Procfile")),
        env=environment(folder, free_port()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("ready ")
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.terminate()
        process.communicate(timeout=30)

    (ignored,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:"))
    assert ignored & 1 << signal.SIGHUP - 1
    assert 0 == process.returncode


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans are ended by the next start")
def test_a_killed_up_takes_everything_along(up: subprocess.Popen[str]) -> None:
    """kill -9 runs no code of ours; nothing is left on the machine all the same."""
    assert up.stdout is not None
    up.stdout.readline()
    below = family(up)

    up.kill()

    assert psutil.wait_procs(below, timeout=20)[1] == []


def test_up_ended_while_it_starts_leaves_nothing(up: subprocess.Popen[str], folder: Path) -> None:
    """Ctrl-C in the middle of the start is an order like any other."""
    eventually(lambda: len(family(up)) > 0)
    below = family(up)

    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=30)

    assert (output, up.returncode) == ("", 0)
    assert psutil.wait_procs(below, timeout=5)[1] == []


def test_a_taken_port_is_refused_before_anything_starts(folder: Path, tmp_path: Path) -> None:
    """The message names the setting."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        environ = environment(tmp_path, taken.getsockname()[1])

        done = subprocess.run(
            mortal(sys.executable, "-c", UP, "--procfile", str(folder / "Procfile")),
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stdout) == (1, "")
    assert "COUPON_HTTP_PORT" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_failed_release_stops_the_start(folder: Path, tmp_path: Path) -> None:
    """Nothing runs on a half-migrated database."""
    (tmp_path / "Procfile").write_text("release: python -c 'raise SystemExit(3)'\nweb: python front.py\n")
    system = RunningSystem(
        folder / "data", procfile=read_procfile(tmp_path / "Procfile"), overrides=EMBEDDED, durable=False
    )

    with pytest.raises(EmbeddedServerError, match="ended with code 3"):
        system.start()

    assert system.servers.pids() == {}


def test_every_killed_process_of_a_system_comes_back(folder: Path) -> None:
    """Front, worker, PostgreSQL and both Valkeys, all at once; what was written is still there."""
    with RunningSystem(
        folder / "data", procfile=read_procfile(folder / "Procfile"), overrides=EMBEDDED, durable=False
    ) as system:
        assert system.supervisor is not None
        engine = create_engine(system.env["COUPON_DATABASE_URL"], poolclass=NullPool)
        stock = redis.Redis.from_url(system.env["COUPON_REDIS_URL"], decode_responses=True)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE kept AS SELECT 42 AS value"))
        stock.set("stock", "7")
        before = system.supervisor.pids()
        assert set(before) == {"web", "worker", "postgres", "redis", "broker"}

        for pid in before.values():
            psutil.Process(pid).kill()

        def all_back() -> bool:
            assert system.supervisor is not None
            now = system.supervisor.pids()
            return set(now) == set(before) and not set(now.values()) & set(before.values())

        def row() -> int:
            try:
                with engine.connect() as connection:
                    return int(connection.execute(text("SELECT value FROM kept")).scalar_one())
            except OperationalError:
                return 0

        def value() -> str | None:
            try:
                return stock.get("stock")
            except redis.RedisError:
                return None

        def answers() -> bool:
            try:
                return urllib.request.urlopen(f"{system.base_url}/readyz", timeout=5).status == 200
            except (urllib.error.URLError, OSError):
                return False

        eventually(all_back)
        eventually(lambda: row() == 42)
        eventually(lambda: value() == "7")
        eventually(answers)
