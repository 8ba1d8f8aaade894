"""The lean connection of the gate: answers in order, any address, and never an answer to another question."""

from __future__ import annotations

import shutil
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest
import redis

from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.lean_redis import LeanConnection, pack
from coupon_workers.runtime.settings import Settings
from tests.support.redis_proxy import Fault, RedisProxy, proxied

TIMEOUT_MS = 2_000
BRIEF_MS = 400


@pytest.fixture
def url(settings: Settings, redis_client: redis.Redis) -> str:
    """The stock's Redis, empty, by its Unix socket."""
    assert settings.redis_url is not None
    return settings.redis_url.get_secret_value()


@pytest.fixture
def proxy(settings: Settings, redis_client: redis.Redis) -> Iterator[RedisProxy]:
    """The same by TCP."""
    with proxied(settings) as (made, _):
        yield made


def test_answers_come_in_the_order_of_the_questions_and_errors_among_them(url: str) -> None:
    """One write, any number of answers; an error answer is a value, and the connection is still good."""
    connection = LeanConnection(url, TIMEOUT_MS)

    answers = connection.ask([pack("SET", "a", "1"), pack("LPUSH", "a", "x"), pack("INCR", "a"), pack("GET", "none")])

    assert [b"OK", 2, None] == [answers[0], answers[2], answers[3]]
    assert isinstance(answers[1], hiredis.ReplyError)
    assert [b"2"] == connection.ask([pack("GET", "a")])


def test_an_answer_larger_than_a_read_is_read_to_its_end(url: str) -> None:
    """A megabyte, there and back."""
    text = b"x" * 1_000_000
    connection = LeanConnection(url, TIMEOUT_MS)

    assert [b"OK", text, b"PONG"] == connection.ask([pack("SET", "a", text), pack("GET", "a"), pack("PING")])


def test_the_database_of_the_address_is_chosen(url: str, proxy: RedisProxy, redis_client: redis.Redis) -> None:
    """As a path or as an option."""
    for address in (url.replace("db=0", "db=3"), f"redis://{proxy.address}/3", f"redis://{proxy.address}?db=3"):
        LeanConnection(address, TIMEOUT_MS).ask([pack("INCR", "in-three")])

    assert not redis_client.exists("in-three")
    assert [b"3"] == LeanConnection(f"redis://{proxy.address}/3", TIMEOUT_MS).ask([pack("GET", "in-three")])


def test_a_user_and_a_password_are_given(proxy: RedisProxy, redis_client: redis.Redis) -> None:
    """Unquoted; a wrong one is unavailable, and so is a database that is not there."""
    redis_client.acl_setuser("tester", enabled=True, passwords=["+p@ss/word"], commands=["+@all"], keys=["*"])
    try:
        right = LeanConnection(f"redis://tester:p%40ss%2Fword@{proxy.address}/0", TIMEOUT_MS)
        wrong = LeanConnection(f"redis://tester:else@{proxy.address}/0", TIMEOUT_MS)

        assert [b"tester"] == right.ask([pack("ACL", "WHOAMI")])
        with pytest.raises(StoreUnavailable, match="WRONGPASS"):
            wrong.ask([pack("PING")])
        with pytest.raises(StoreUnavailable):
            LeanConnection(f"redis://{proxy.address}/9999", TIMEOUT_MS).ask([pack("PING")])
    finally:
        redis_client.acl_deluser("tester")


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_QUESTION, Fault.HOLD_ANSWER, Fault.HOLD_QUESTION])
def test_after_a_lost_answer_the_next_question_gets_its_own(proxy: RedisProxy, fault: Fault) -> None:
    """The connection is thrown away: what may still come over it would answer the wrong question."""
    connection = LeanConnection(proxy.url, BRIEF_MS)
    proxy.plan(fault)

    with pytest.raises(StoreUnavailable):
        connection.ask([pack("ECHO", "first")])
    proxy.release()

    assert [b"second"] == connection.ask([pack("ECHO", "second")])


class Interrupted(BaseException):
    """What a signal does to a thread that waits."""


def test_after_an_interruption_the_next_question_gets_its_own(proxy: RedisProxy) -> None:
    """Its answer was on the way."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    connection = LeanConnection(proxy.url, TIMEOUT_MS)
    proxy.plan(Fault.HOLD_ANSWER)
    timer = threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(Interrupted):
            connection.ask([pack("ECHO", "first")])
        proxy.release()

        assert [b"second"] == connection.ask([pack("ECHO", "second")])
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("address", ["unix:///nonexistent/valkey.sock", "redis://127.0.0.1:1/0"])
def test_a_server_that_is_not_there_is_unavailable(address: str) -> None:
    """Every time it is asked."""
    connection = LeanConnection(address, TIMEOUT_MS)

    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            connection.ask([pack("PING")])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_a_server_behind_tls_is_asked_when_its_certificate_is_good(url: str, tmp_path: Path) -> None:
    """The options are those of the ordinary client, so that one address serves both."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make + names, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = RedisProxy(url, context)
    try:
        trusted = f"rediss://{server.address}/0?ssl_ca_certs={certificate}"
        unchecked = f"rediss://{server.address}/0?ssl_cert_reqs=none"

        assert [b"a"] == LeanConnection(trusted, TIMEOUT_MS).ask([pack("ECHO", "a")])
        assert [b"b"] == LeanConnection(unchecked, TIMEOUT_MS).ask([pack("ECHO", "b")])
        assert b"c" == redis.Redis.from_url(trusted).echo("c")
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            LeanConnection(f"rediss://{server.address}/0", TIMEOUT_MS).ask([pack("PING")])
    finally:
        server.close()
