"""``python -m web``: several processes behind one port, whatever is done to them."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine

from coupon_workers.access.api_key import create_key
from coupon_workers.embedded.servers import EmbeddedServers
from coupon_workers.runtime.database import POOL_WAIT_S
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.mortal import mortal
from tests.support.sale import open_sale

START_S = 30.0
JSON = "Content-Type: application/json"


class Front:
    """A running web server."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        urls = {
            f"COUPON_{name.upper()}": getattr(settings, name).get_secret_value()
            for name in ("database_url", "redis_url", "broker_url")
        }
        self.env = {
            **os.environ,
            **urls,
            "COUPON_HTTP_PORT": str(self.port),
            "COUPON_DATA_DIR": str(folder),
            "COUPON_WEB_WORKERS": "2",
        }
        self.log = (folder / "web.log").open("wb")
        self.master = psutil.Popen(mortal(sys.executable, "-m", "web"), env=self.env, stdout=self.log, stderr=self.log)
        try:
            self.wait_until("it answers", lambda: self.get("/livez")[0] == 200 and len(self.workers()) == 2)
        except BaseException:
            self.stop()
            raise

    def workers(self) -> list[psutil.Process]:
        """The processes that serve."""
        return list(self.master.children())

    def get(self, path: str, key: str = "") -> tuple[int, str]:
        """Status and body over a connection of its own; 0 when none is to be had."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def show_to_all(self, key: str) -> None:
        """Use the key until every process has seen it: each starts in its own time, and marks the ids it gives."""
        marks: set[str] = set()

        def shown() -> bool:
            connection = self.begin("GET /v1/claims/7 HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", "", "")
            found = re.search(r"x-request-id: (\w+)-", _answer(connection)[1].lower())
            connection.close()
            marks.add(found[1] if found else "")
            return len(marks) == len(self.workers())

        self.wait_until("every process has seen the key", shown)

    def begin(self, *lines: str) -> socket.socket:
        """A connection on which the head of a request, and what follows it, has been sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall("\r\n".join(lines).encode())
        return connection

    def wait_until(self, what: str, condition: Callable[[], object]) -> None:
        """Ask again and again until it is so."""
        deadline = time.monotonic() + START_S
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.05)

    def stop(self) -> int:
        """Tell it to end; its exit code."""
        self.master.send_signal(signal.SIGTERM)
        try:
            return int(self.master.wait(20))
        except psutil.TimeoutExpired:
            for process in [*self.master.children(), self.master]:
                process.kill()
            raise
        finally:
            self.log.close()


@pytest.fixture(scope="module")
def front(settings: Settings, migrated_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A front on the run's servers, for all tests of this file that leave it running."""
    started = Front(settings, tmp_path_factory.mktemp("front"))
    yield started
    started.stop()


@pytest.fixture
def own_front(settings: Settings, engine: Engine, tmp_path: Path) -> Iterator[Front]:
    """A front for one test, which may end it."""
    started = Front(settings, tmp_path)
    yield started
    if started.master.is_running():
        started.stop()


@pytest.fixture
def key(engine: Engine) -> str:
    """A key for everything."""
    return create_key(engine, name="test", scopes=["admin", "ops", "storefront"]).key


def _answer(connection: socket.socket) -> tuple[int, str]:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
        head, _, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if length and len(body) >= int(length[1]):
            break
    return int(received[9:12]), received.decode()


def test_the_servers_own_news_is_not_told(front: Front) -> None:
    """It would say that it listens before anything can be answered."""
    told = Path(front.log.name).read_text()

    assert not re.search("granian|Listening|Spawning|Started worker", told)


def test_any_process_tells_the_counts_of_all(front: Front, key: str) -> None:
    """A scrape reaches one of them; the sum is a second old at most."""
    for _ in range(40):
        assert 404 == front.get("/v1/claims/7", key)[0]

    def counted() -> bool:
        text = front.get("/metrics", key)[1]
        return 'coupon_request_seconds_count{endpoint="GET /v1/claims/{claim_id}"} 40.0' in text

    front.wait_until("all are counted", counted)
    assert {True} == {counted() for _ in range(6)}


def test_a_body_in_chunks_has_a_limit(front: Front, key: str) -> None:
    """413 after a mebibyte, and the front serves on."""
    head = ("POST /v1/api-keys HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", JSON, "Transfer-Encoding: chunked")
    chunk = "10000\r\n" + "a" * 65_536 + "\r\n"

    connection = front.begin(*head, "", chunk * 17)

    assert 413 == _answer(connection)[0]
    assert 200 == front.get("/livez")[0]


def test_slow_bodies_hold_nobody_else_up(front: Front, key: str) -> None:
    """As many as there are working threads, several times over."""
    head = ("POST /v1/api-keys HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", JSON, "Content-Length: 100")
    slow = [front.begin(*head, "", "{") for _ in range(60)]
    time.sleep(0.3)

    started_s = time.monotonic()
    statuses = {front.get("/livez")[0] for _ in range(10)}
    took_s = time.monotonic() - started_s
    for connection in slow:
        connection.close()

    assert {200} == statuses
    assert took_s < 2


@pytest.mark.parametrize("head", ["POST /v1/api-keys HTTP/1.1", "POST /console/login HTTP/1.1"])
def test_a_body_that_stops_is_not_waited_for_for_ever(own_front: Front, key: str, head: str) -> None:
    """Its connection is ended, whoever has sent it: JSON with a key, or a form of somebody whom nobody knows."""
    kind = JSON if "/v1/" in head else "Content-Type: application/x-www-form-urlencoded"
    rest = ("Host: x", f"Authorization: Bearer {key}", kind, "Content-Length: 100", "", "{")

    connection = own_front.begin(head, *rest)
    ended = connection.recv(65_536)
    connection.close()

    assert b"" == ended


def test_a_killed_process_is_replaced(front: Front) -> None:
    """The others serve on meanwhile."""
    before = {process.pid for process in front.workers()}
    killed = min(before)

    os.kill(killed, signal.SIGKILL)

    front.wait_until("two serve again", lambda: len({p.pid for p in front.workers()} - {killed}) == 2)
    front.wait_until("it answers", lambda: front.get("/livez")[0] == 200)
    assert front.master.is_running()


def test_a_second_front_does_not_take_half_of_the_first_ones_port(front: Front) -> None:
    """It says which setting to change, and ends."""
    second = subprocess.run([sys.executable, "-m", "web"], env=front.env, capture_output=True, text=True, timeout=60)

    assert 1 == second.returncode
    assert "COUPON_HTTP_PORT" in second.stderr
    assert 1 == len(second.stderr.strip().splitlines())


def test_a_setting_that_cannot_work_is_named(front: Front) -> None:
    """Exit code 2 and one line."""
    env = {**front.env, "COUPON_WEB_WORKERS": "none"}

    ended = subprocess.run([sys.executable, "-m", "web"], env=env, capture_output=True, text=True, timeout=60)

    assert 2 == ended.returncode
    assert "COUPON_WEB_WORKERS" in ended.stderr
    assert 1 == len(ended.stderr.strip().splitlines())


def test_a_request_under_way_is_answered_before_the_end(own_front: Front, key: str) -> None:
    """SIGTERM: no new work, and the old is done."""
    body = '{"name": "n", "scopes": ["ops"]}'
    head = ("POST /v1/api-keys HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", JSON)
    connection = own_front.begin(*head, f"Content-Length: {len(body)}", "", body[:5])
    time.sleep(0.3)

    own_front.master.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    connection.sendall(body[5:].encode())
    status, _ = _answer(connection)
    connection.close()

    assert 201 == status
    assert 0 == own_front.master.wait(15)


def test_no_process_outlives_a_killed_master(own_front: Front) -> None:
    """The port is free for the next one at once."""
    workers = own_front.workers()

    own_front.master.kill()

    _, alive = psutil.wait_procs(workers, timeout=5)
    assert [] == alive
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", own_front.port))


def test_claims_go_on_while_postgresql_hangs_and_wallets_are_read(
    own_front: Front, key: str, services: Services, servers: EmbeddedServers
) -> None:
    """Readers beyond the few that may wait are refused at once, and threads are left to claims."""
    template_id = open_sale(services).template_id
    own_front.show_to_all(key)
    postgresql = psutil.Process(servers.pids()["postgres"])
    hung = [postgresql, *postgresql.children()]

    for process in hung:
        process.suspend()
    try:
        readers = [
            own_front.begin(
                f"GET /v1/users/u{number}/coupons HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", "", ""
            )
            for number in range(160)
        ]
        time.sleep(0.5)
        statuses, waited_s = [], []
        for number in range(10):
            started_s = time.monotonic()
            statuses.append(_claim(own_front, key, template_id, f"u{number}"))
            waited_s.append(time.monotonic() - started_s)
    finally:
        for process in reversed(hung):
            process.resume()
    for reader in readers:
        reader.close()

    assert [202] * 10 == statuses
    assert max(waited_s) < POOL_WAIT_S, "a claim waited until a reader gave his thread up"


def _claim(front: Front, key: str, template_id: int, user_id: str) -> int:
    body = json.dumps({"template_id": str(template_id), "user_id": user_id, "request_id": "r1"})
    head = ("POST /v1/claims HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", JSON, f"Content-Length: {len(body)}")
    connection = front.begin(*head, "", body)
    try:
        return _answer(connection)[0]
    finally:
        connection.close()
