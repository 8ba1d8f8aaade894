"""The keys a process has seen: quick, soon revoked, and believed for a while when PostgreSQL is away."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from threading import enumerate as enumerate_threads

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, event
from sqlalchemy.engine import make_url

from coupon_workers.access import key_ring
from coupon_workers.access.api_key import create_key, revoke_key
from coupon_workers.access.key_ring import KeyRing
from coupon_workers.errors import StoreUnavailable
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.settings import Settings

SOCKET = ".s.PGSQL.5432"


class Door:
    """A way to the run's PostgreSQL that can be shut: then there is no server, or one that hangs."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        assert settings.database_url is not None
        url = make_url(settings.database_url.get_secret_value())
        self._socket = Path(str(url.query["host"])) / SOCKET
        self._link = folder / SOCKET
        self._hung: list[socket.socket] = []
        through = url.set(query={"host": str(folder)})
        shut = SecretStr(through.render_as_string(hide_password=False))
        self.engine = make_engine(settings.model_copy(update={"database_url": shut}))
        self.open()

    def open(self) -> None:
        """Let connections through to the server."""
        self._link.unlink(missing_ok=True)
        self._link.symlink_to(self._socket)

    def shut(self) -> None:
        """No server: connections are refused at once."""
        self._link.unlink(missing_ok=True)
        self.engine.dispose()

    def hang(self) -> None:
        """A server that takes connections and says nothing."""
        self.shut()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._link))
        listener.listen(64)
        self._hung.append(listener)

    def close(self) -> None:
        """Let go of everything."""
        for listener in self._hung:
            listener.close()
        self.engine.dispose()


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def door(settings: Settings, engine: Engine) -> Iterator[Door]:
    """A door to the empty database. Its folder is short: the path of a socket has 107 bytes at most."""
    with TemporaryDirectory(dir="/tmp") as folder:
        made = Door(settings, Path(folder))
        yield made
        made.close()


@pytest.fixture
def clock() -> Clock:
    """The ring's clock."""
    return Clock()


def _wait_for(what: str, condition: object) -> None:
    deadline = time.monotonic() + 5
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


@pytest.mark.alone
def test_a_key_seen_before_costs_microseconds(door: Door) -> None:
    """The path of claims pays a look into a dictionary."""
    ring = KeyRing(door.engine)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    ring.verify(key)

    started_s = time.perf_counter()
    for _ in range(1_000):
        ring.verify(key)
    each_s = (time.perf_counter() - started_s) / 1_000

    assert each_s < 20e-6


def test_a_revoked_key_is_refused_within_its_limit(door: Door, clock: Clock) -> None:
    """Another process revoked it: five seconds later nobody is let in without PostgreSQL's word."""
    ring = KeyRing(door.engine, clock)
    made = create_key(door.engine, name="n", scopes=["ops"])
    assert ring.verify(made.key) is not None

    revoke_key(door.engine, made.record.key_id)
    clock.now_s += key_ring.LIMIT_S + 0.1

    assert ring.verify(made.key) is None


def test_a_key_in_use_is_confirmed_in_the_background(door: Door, clock: Clock) -> None:
    """Between two and five seconds the caller does not wait, and soon knows of a revocation."""
    ring = KeyRing(door.engine, clock)
    made = create_key(door.engine, name="n", scopes=["ops"])
    ring.verify(made.key)
    revoke_key(door.engine, made.record.key_id)
    clock.now_s += key_ring.FRESH_S + 0.1

    assert ring.verify(made.key) is not None

    _wait_for("the key is refused", lambda: ring.verify(made.key) is None)


def test_a_key_revoked_here_is_refused_at_once(door: Door) -> None:
    """The process that revokes does not wait for itself."""
    ring = KeyRing(door.engine)
    made = create_key(door.engine, name="n", scopes=["ops"])
    ring.verify(made.key)

    revoke_key(door.engine, made.record.key_id)
    ring.forget(made.record.key_id)

    assert ring.verify(made.key) is None


def test_a_key_first_seen_while_others_are_confirmed_is_known_from_then_on(door: Door, clock: Clock) -> None:
    """The question was asked without it: its answer says nothing of it."""
    ring = KeyRing(door.engine, clock)
    old, new = (create_key(door.engine, name="n", scopes=["storefront"]).key for _ in range(2))
    ring.verify(old)
    clock.now_s += key_ring.FRESH_S + 0.1
    asked, answered = Event(), Event()

    def hold(*_: object) -> None:
        if not asked.is_set():
            asked.set()
            answered.wait(5)

    event.listen(door.engine, "after_cursor_execute", hold)
    ring.verify(old)
    assert asked.wait(5)
    assert ring.verify(new) is not None
    answered.set()
    _wait_for("the answer is heard", lambda: "key-ring" not in {thread.name for thread in enumerate_threads()})
    door.shut()

    assert ring.verify(new) is not None


@pytest.mark.parametrize("fault", ["shut", "hang"])
def test_a_known_key_is_believed_while_postgresql_is_away(door: Door, clock: Clock, fault: str) -> None:
    """Claims go on; only the first caller waits, and for a second at most."""
    ring = KeyRing(door.engine, clock)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    ring.verify(key)
    getattr(door, fault)()
    clock.now_s += key_ring.LIMIT_S + 1

    started_s = time.monotonic()
    first = ring.verify(key)
    waited_s = time.monotonic() - started_s
    started_s = time.monotonic()
    others = [ring.verify(key) for _ in range(1_000)]
    others_s = time.monotonic() - started_s

    assert first is not None
    assert None not in others
    assert waited_s < key_ring.WAIT_S + 0.5
    assert others_s < 0.5


def test_belief_has_an_end(door: Door, clock: Clock) -> None:
    """After ten minutes without PostgreSQL a key opens nothing, and no error says it is wrong."""
    ring = KeyRing(door.engine, clock)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    ring.verify(key)
    door.shut()
    clock.now_s += key_ring.TRUST_S + 1

    with pytest.raises(StoreUnavailable):
        ring.verify(key)


def test_a_known_key_is_confirmed_again_when_postgresql_is_back(door: Door, clock: Clock) -> None:
    """What was revoked in the meantime is then refused."""
    ring = KeyRing(door.engine, clock)
    made = create_key(door.engine, name="n", scopes=["ops"])
    ring.verify(made.key)
    door.shut()
    clock.now_s += key_ring.LIMIT_S + 1
    assert ring.verify(made.key) is not None

    door.open()
    revoke_key(door.engine, made.record.key_id)
    clock.now_s += key_ring.AWAY_S + 1

    _wait_for("the key is refused", lambda: ring.verify(made.key) is None)


@pytest.mark.parametrize("fault", ["shut", "hang"])
def test_an_unknown_key_is_neither_let_in_nor_called_wrong_while_postgresql_is_away(door: Door, fault: str) -> None:
    """503: the caller asks again."""
    ring = KeyRing(door.engine)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    getattr(door, fault)()

    with pytest.raises(StoreUnavailable):
        ring.verify(key)


def test_a_flood_of_wrong_keys_drives_out_no_right_one(
    door: Door, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong keys are remembered apart, briefly, and so many of them."""
    monkeypatch.setattr(key_ring, "MOST_REFUSALS", 10)
    ring = KeyRing(door.engine, clock)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    ring.verify(key)
    wrong = [f"cw_{number:016x}_{'A' * 43}" for number in range(30)]

    refused = [ring.verify(text) for text in wrong]
    door.shut()

    assert [None] * 30 == refused
    assert ring.verify(key) is not None
    assert ring.verify(wrong[-1]) is None  # remembered: PostgreSQL is not asked
    with pytest.raises(StoreUnavailable):
        ring.verify(wrong[0])  # forgotten for the later ones


def test_a_wrong_secret_of_a_known_key_opens_nothing(door: Door) -> None:
    """The id alone is no key."""
    ring = KeyRing(door.engine)
    key = create_key(door.engine, name="n", scopes=["storefront"]).key
    ring.verify(key)

    assert ring.verify(f"{key[:20]}{'A' * 43}") is None
