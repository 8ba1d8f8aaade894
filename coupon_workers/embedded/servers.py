"""The three servers of one installation: PostgreSQL, Valkey for stock, Valkey for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock
from typing import Protocol

from coupon_workers.embedded.folder_lock import FolderLock
from coupon_workers.embedded.postgres import EmbeddedPostgres
from coupon_workers.embedded.servers_file import remove_servers_file, write_servers_file
from coupon_workers.embedded.startable import Startable
from coupon_workers.embedded.valkey import EmbeddedValkey
from coupon_workers.errors import EmbeddedServerError

DATABASE_URL = "COUPON_DATABASE_URL"
REDIS_URL = "COUPON_REDIS_URL"
BROKER_URL = "COUPON_BROKER_URL"


class EmbeddedServer(Protocol):
    """What the three have in common."""

    name: str

    @property
    def url(self) -> str:
        """Its address, once started."""

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""

    def start(self) -> None:
        """Start, and wait until it answers. Raises ``EmbeddedServerError``."""

    def wait(self) -> int:
        """Wait for its end; its exit code."""

    def stop(self, grace_s: float = ...) -> None:
        """Stop in order, by force after ``grace_s``."""


class EmbeddedServers(Startable):
    """Starts what has no address yet, and keeps ``data_dir`` to itself meanwhile.

    ``given`` maps ``COUPON_DATABASE_URL``, ``COUPON_REDIS_URL`` and ``COUPON_BROKER_URL`` to servers that exist; an
    empty address counts as none. ``durable=False`` is for tests: faster, and not safe against power loss.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True, given: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir.resolve()
        self._given = {name: url for name, url in (given or {}).items() if url}
        self._lock = FolderLock(self.data_dir)
        mine: dict[str, EmbeddedServer] = {
            DATABASE_URL: EmbeddedPostgres(self.data_dir / "postgres", durable=durable),
            REDIS_URL: EmbeddedValkey("redis", self.data_dir / "redis", durable=durable),
            BROKER_URL: EmbeddedValkey("broker", self.data_dir / "broker", durable=durable),
        }
        self._announced: dict[str, str] = {}
        self._recording = Lock()
        self._mine = {name: server for name, server in mine.items() if name not in self._given}

    @property
    def servers(self) -> tuple[EmbeddedServer, ...]:
        """Those we run ourselves."""
        return tuple(self._mine.values())

    def urls(self) -> dict[str, str]:
        """The address of each of the three, by its variable, given ones included."""
        own = {name: server.url for name, server in self._mine.items()}
        return {name: own.get(name) or self._given[name] for name in (DATABASE_URL, REDIS_URL, BROKER_URL)}

    def pids(self) -> dict[str, int]:
        """The process of each server that runs, by its name."""
        return {server.name: server.pid for server in self.servers if server.pid is not None}

    def start(self) -> None:
        """Start all of them at the same time and write ``servers.json``.

        Raises ``EmbeddedServerError`` when the folder is in use or cannot be used, or a server does not start;
        then none is left running.
        """
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except OSError as error:
            raise EmbeddedServerError(f"COUPON_DATA_DIR {self.data_dir} cannot be used: {error}") from error
        try:
            _at_once(server.start for server in self.servers)
            self.record()
        except BaseException:
            self.stop()
            raise

    def record(self) -> None:
        """Write ``servers.json`` anew: after a server was started again it has another process. Threads may call it at
        once, and after the end."""
        with self._recording:
            if self._lock.is_held:
                write_servers_file(self.data_dir, {**self.urls(), **self._announced}, self.pids())

    def announce(self, settings: Mapping[str, str]) -> None:
        """Add what else other shells should know, such as the port of the front, to ``servers.json``."""
        self._announced |= settings
        self.record()

    def stop(self) -> None:
        """Stop all of them at the same time, in order, and let the folder go. Does nothing when not started."""
        if not self._lock.is_held:
            return
        try:
            _at_once(server.stop for server in self.servers)
        finally:
            with self._recording:
                remove_servers_file(self.data_dir)
                self._lock.release()


def _at_once(tasks: Iterable[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(max_workers=3) as threads:
        futures = [threads.submit(task) for task in tasks]
        wait(futures)  # a signal that raises does so here; the end of the block then waits again
    for future in futures:
        try:
            future.result()
        except OSError as error:
            raise EmbeddedServerError(f"an embedded server cannot use its files: {error}") from error
