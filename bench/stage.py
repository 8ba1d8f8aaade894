"""Where rows are measured: embedded servers as in production, in a folder of their own, and programs beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import SecretStr

import coupon_workers
from bench.failure import BenchFailure
from bench.scale import Scale
from bench.world import World
from coupon_workers.access.api_key import create_key
from coupon_workers.embedded.child import ChildProcess
from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL, EmbeddedServers
from coupon_workers.runtime.redis_client import client_without_retries
from coupon_workers.runtime.settings import Settings

ROOT = Path(coupon_workers.__file__).resolve().parents[1]
HOST = "127.0.0.1"
BACKLOG_LIMIT = 10_000_000
"""Queued claims a template may have: where no worker runs, the front must not be stopped by a full backlog."""

_STOP_GRACE_S = 1.0
"""What a program was started for is over: nothing is lost when it is killed, and a polite end takes five seconds."""

_BROKER_TIMEOUT_MS = 10_000


class Stage:
    """Use it in a ``with`` block. Servers are durable: fsync, synchronous commit, append-only file.

    Settings of the environment (``COUPON_WEB_WORKERS`` …) hold, but for the addresses: the servers are always our own.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.scale = scale
        self.folder = folder
        self.servers = EmbeddedServers(folder, durable=True)
        self._output = LogFolder(folder / "logs")
        self._made = 0
        self.world: World
        self.key = ""

    def __enter__(self) -> Self:
        self.servers.start()
        try:
            self.world = World(self.settings())
            self.key = self.new_key(self.world)
        except BaseException:
            self.servers.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.world.close()
        finally:
            self.servers.stop()

    def new_key(self, world: World) -> str:
        """An API key of ``world`` that opens whatever is measured."""
        return create_key(world.services.engine, name="bench", scopes=["storefront", "orders"]).key

    def settings(self, *, database_url: str | None = None, redis_url: str | None = None) -> Settings:
        """Settings on our servers, or on other databases of them."""
        urls = self.servers.urls()
        return Settings(
            database_url=SecretStr(database_url or urls[DATABASE_URL]),
            redis_url=SecretStr(redis_url or urls[REDIS_URL]),
            broker_url=SecretStr(urls[BROKER_URL]),
            data_dir=self.folder,
            http_host=HOST,
            backlog_limit=BACKLOG_LIMIT,
        )

    @contextmanager
    def program(self, name: str, module: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[ChildProcess]:
        """``python -m`` and the words, on the main world, until the block ends; its output in ``logs/NAME.log``."""
        child = ChildProcess(name, [sys.executable, "-m", *module], self._environment(env or {}), ROOT, self._output)
        child.start()
        try:
            yield child
        finally:
            child.stop(_STOP_GRACE_S)

    def check_runs(self, child: ChildProcess) -> None:
        """Raise ``BenchFailure`` with its last line when a program has ended."""
        if child.pid is None:
            lines = (self.folder / "logs" / f"{child.name}.log").read_text(errors="replace").split("\n")
            raise BenchFailure(f"{child.name} ended: {next((line for line in reversed(lines) if line), '')}")

    def flush_broker(self) -> None:
        """Drop every message: bells of sales that are over. No program may be reading them."""
        client = client_without_retries(self.servers.urls()[BROKER_URL], _BROKER_TIMEOUT_MS)
        client.flushall()
        client.close()

    def mark(self) -> str:
        """A text no other load of this run has in its users and requests."""
        self._made += 1
        return f"{self._made:04}"

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {
            **os.environ,
            **self.servers.urls(),
            "COUPON_DATA_DIR": str(self.folder),
            "COUPON_HTTP_HOST": HOST,
            "COUPON_BACKLOG_LIMIT": str(BACKLOG_LIMIT),
            "PYTHONUNBUFFERED": "1",
            **env,
        }
