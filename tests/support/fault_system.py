"""A whole installation to break: every process can be killed, held down, stopped, or started with other settings."""

from __future__ import annotations

import json
import os
import shlex
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import redis

from coupon_workers.access.api_key import create_key
from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.procfile import Procfile, find_procfile
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.runtime.database import make_engine
from coupon_workers.runtime.settings import Settings
from tests.support.fault_hold import WITH_SETTINGS, descendants, held_process, held_server, is_copy, lives
from tests.support.fault_load import Front
from tests.support.fault_wait import until

_MARK = "FAULT_SETTINGS"
"""In the environment of a process: the number of the settings it was started with."""

BACKLOG_LIMIT = 1_000
"""Reached within seconds of a worker's or a database's absence."""

PEPPER = "pepper-that-no-log-shows"
BASE = {
    DATABASE_URL: "",
    REDIS_URL: "",
    BROKER_URL: "",
    "COUPON_CODE_PEPPER": PEPPER,
    "COUPON_LOG_LEVEL": "WARNING",
    "COUPON_WEB_WORKERS": "2",
    "COUPON_WORKER_PROCESSES": "1",
    "COUPON_REDIS_TIMEOUT_MS": "1000",
    "COUPON_BACKLOG_LIMIT": str(BACKLOG_LIMIT),
}


class FaultSystem:
    """``coupon-workers up`` in ``folder``, with one web front, one worker, one scheduler and three servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self._settings = folder / "settings"
        self._settings.mkdir()
        self._changed: set[str] = set()
        self._marks = count(1)
        self._running = RunningSystem(
            folder / "data",
            overrides=BASE,
            procfile=self._procfile(),
            output=LogFolder(self.logs),
            durable=False,
        )
        self.key = ""

    def start(self) -> None:
        """Start all of it and make a key with every scope."""
        self._running.start()
        engine = make_engine(self.settings)
        self.key = create_key(engine, name="faults", scopes=["admin", "storefront", "ops"]).key
        engine.dispose()

    def stop(self) -> None:
        """Stop all of it in order."""
        self._running.stop()

    @property
    def settings(self) -> Settings:
        """Settings that lead to its servers."""
        env = self._running.env
        return Settings.model_validate({name: env[f"COUPON_{name.upper()}"] for name in _ADDRESSES})

    @property
    def front(self) -> Front:
        """The web front."""
        return Front(self.settings.http_port, self.key)

    @property
    def log_files(self) -> list[Path]:
        """What its processes and servers have written."""
        return sorted([*self.logs.glob("*.log"), *(self.folder / "data").glob("*.log")])

    def family(self, name: str) -> list[int]:
        """The living processes of one entry, master first; nothing while it is down.

        Only those that do its work: a passing helper of the interpreter's is none of them.
        """
        supervisor = self._running.supervisor
        assert supervisor is not None
        with suppress(psutil.Error):
            if (pid := supervisor.pids().get(name)) is not None:
                master = psutil.Process(pid)
                command = master.cmdline()
                return [pid, *(child.pid for child in master.children() if is_copy(child, command))]
        return []

    def master(self, name: str) -> int | None:
        """The process that the Procfile names, or the server's; None while it is down."""
        return next(iter(self.family(name)), None)

    def wait_for_another(self, name: str, than: int | None) -> None:
        """Return when an entry has a living master that is not ``than``."""
        until(lambda: self.master(name) not in (None, than), what=f"a new {name}")

    def send(self, name: str, number: signal.Signals, pids: Sequence[int] | None = None) -> None:
        """Send ``number`` to the master of an entry, or to ``pids`` of it."""
        for pid in self.family(name)[:1] if pids is None else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Have the master end by ``number``; returns when another has taken its place."""
        before = self.master(name)
        self.send(name, number)
        self.wait_for_another(name, before)

    def restart(self, name: str, number: signal.Signals = signal.SIGTERM, **settings: str) -> None:
        """Have one entry run with other settings, and none of those it was given before."""
        mark = self.prepare(name, **settings)
        while self.setting(name, _MARK) != mark:  # whoever was just being started has read the old ones
            self.end(name, number)
            until(lambda: self.setting(name, _MARK), what=f"{name} with its settings")

    def count_deaths(self, name: str, most: int, within_s: float = 60.0) -> int:
        """Return when so many of the processes that a master has made have died; how many, and no fewer.

        Whoever dies between two looks, as briefly as it lived, is missed.
        """
        seen: set[int] = set()

        def dead() -> int:
            living = set(self.family(name)[1:])
            seen.update(living)
            return len(seen - living)

        until(lambda: dead() >= most, within_s, f"{most} deaths of {name}")
        return dead()

    def restore(self) -> None:
        """Every process has its own settings again, and no dead letter lies about."""
        for name in sorted(self._changed):
            self.restart(name)
        self.wait_ready()
        assert self.settings.broker_url is not None
        with redis.Redis.from_url(self.settings.broker_url.get_secret_value()) as broker:
            broker.delete(*(f"dramatiq:{queue}.{part}" for queue in ("settle", "care") for part in ("XQ", "XQ.msgs")))

    def prepare(self, name: str, **settings: str) -> str:
        """Like ``restart``, but for whenever it is started next; the mark of these settings."""
        self._changed = self._changed | {name} if settings else self._changed - {name}
        mark = str(next(self._marks))
        lines = [f"{key}={shlex.quote(value)}\n" for key, value in (settings | {_MARK: mark}).items()]
        unfinished = self._settings / f"{name}.unfinished"
        unfinished.write_text("".join(lines))
        unfinished.replace(self._settings / f"{name}.env")
        return mark

    def setting(self, name: str, key: str) -> str:
        """What the master of an entry was started with; an empty text while it is down or without it."""
        with suppress(psutil.Error):
            for pid in self.family(name)[:1]:
                return str(psutil.Process(pid).environ().get(key, ""))
        return ""

    def wait_ready(self, within_s: float = 60.0) -> float:
        """Return the seconds until the front says that everything it needs is there."""
        return until(self._is_ready, within_s, "readiness")

    @contextmanager
    def held_down(self, name: str, number: signal.Signals = signal.SIGKILL) -> Iterator[None]:
        """End a server or a process by ``number``; the block runs while it is down. Then it is started again."""
        with self.held_once_ended(name, lambda pid: self.send(name, number, [pid])):
            yield

    @contextmanager
    def held_once_ended(self, name: str, ends: Callable[[int], None]) -> Iterator[None]:
        """Like ``held_down``, of a master that comes to its end by what ``ends`` does to it."""
        servers = {server.name: server for server in self._running.servers.servers}
        with held_server(servers[name]) if name in servers else held_process(self._settings / f"{name}.env"):
            before = self.family(name)
            for pid in before[:1]:
                ends(pid)
            until(lambda: not any(map(lives, before)), what=f"the end of {name}")
            yield
        self.wait_for_another(name, next(iter(before), None))

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """SIGSTOP for all processes of an entry; they go on after the block."""
        family = [pid for master in self.family(name)[:1] for pid in (master, *descendants(master))]
        self.send(name, signal.SIGSTOP, family)
        try:
            yield
        finally:
            self.send(name, signal.SIGCONT, family)

    def _procfile(self) -> Procfile:
        known = find_procfile()
        commands: dict[str, list[str]] = {}
        for name, command in known.commands.items():
            self.prepare(name)
            commands[name] = ["sh", "-c", WITH_SETTINGS, str(self._settings / f"{name}.env"), *command]
        return Procfile(commands, known.folder)

    def _is_ready(self) -> bool:
        try:
            with _open(f"{self._running.base_url}/readyz", timeout=5) as answer:
                return bool(json.load(answer)["status"] == "ok")
        except (urllib.error.URLError, OSError):
            return False


_ADDRESSES = ("database_url", "redis_url", "broker_url", "http_port")
_open: Any = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
