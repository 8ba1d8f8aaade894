"""A real installation: every process of the Procfile, reached as users reach it, by HTTP and by its command line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from coupon_workers.embedded.output import LogFolder
from coupon_workers.embedded.running_system import RunningSystem
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL
from coupon_workers.runtime.process import make_services
from coupon_workers.runtime.services import Services
from coupon_workers.runtime.settings import Settings
from tests.support.http_caller import Caller, NetTransport
from tests.support.http_desk import Desk

EMBEDDED = {DATABASE_URL: "", REDIS_URL: "", BROKER_URL: ""}
MANY_CLAIMS = {"COUPON_CLAIM_RATE": "0"}
COMMAND_TIMEOUT_S = 60.0
READERS = 4


class System:
    """An installation that runs in ``data_dir`` and listens at ``base_url``."""

    def __init__(self, data_dir: Path, base_url: str, running: RunningSystem | None = None) -> None:
        self.data_dir = data_dir
        self.base_url = base_url
        self.processes = running

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[System]:
        """One in ``folder``, stopped at the end; its logs are in ``folder / "logs"``."""
        data_dir = folder / "data"
        output = LogFolder(folder / "logs")
        with RunningSystem(data_dir, overrides=EMBEDDED | MANY_CLAIMS, output=output, durable=False) as running:
            yield cls(data_dir, running.base_url, running)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``coupon-workers`` with these words, from another shell."""
        return subprocess.run(
            [sys.executable, "-m", "coupon_workers.cli.main", *words],
            env=environment(self.data_dir),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    @cached_property
    def admin(self) -> Caller:
        """An operator; the key comes from the command line, as the first of every installation does."""
        made = self.command("keys", "create", "--name", "tests", "--scope", "admin", "--scope", "ops")
        assert 0 == made.returncode, made.stderr
        return Caller(NetTransport(self.base_url), made.stdout.strip())

    @cached_property
    def desk(self) -> Desk:
        """The operator's work."""
        return Desk(self.admin)

    @cached_property
    def front(self) -> Caller:
        """A storefront; its key was made over HTTP."""
        return self.caller("storefront")

    def caller(self, *scopes: str) -> Caller:
        """Somebody with a new key of these scopes; nobody's key when there are none."""
        if not scopes:
            return Caller(NetTransport(self.base_url), None)
        key = self.admin.ask("POST", "/v1/api-keys", {"name": "tests", "scopes": scopes}).ok(201)["key"]
        return Caller(NetTransport(self.base_url), key)

    @cached_property
    def services(self) -> Services:
        """The stores behind it, for looking and for breaking."""
        assert self.processes is not None
        urls = {name: SecretStr(url) for name, url in self.processes.servers.urls().items()}
        return make_services(
            Settings(database_url=urls[DATABASE_URL], redis_url=urls[REDIS_URL], broker_url=urls[BROKER_URL])
        )

    def pid(self, name: str) -> int:
        """The process ``name``: web, worker, scheduler, postgres, redis or broker."""
        assert self.processes is not None and self.processes.supervisor is not None
        return self.processes.supervisor.pids()[name]

    def ends(self, claim_ids: Iterable[str]) -> list[Any]:
        """The last word on each claim, waited for; the seconds that a front lets one wait are enough for all."""
        with ThreadPoolExecutor(READERS) as threads:
            return list(threads.map(lambda claim_id: self.front.read_claim(claim_id, 10).ok(), claim_ids))

    def assert_sound(self) -> None:
        """``coupon-workers check`` finds nothing."""
        checked = self.command("check")
        assert 0 == checked.returncode, checked.stdout + checked.stderr


def environment(data_dir: Path, **changed: str) -> dict[str, str]:
    """Ours, without the servers of whoever runs the tests."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
    return {**ours, "COUPON_DATA_DIR": str(data_dir), **changed}


def eventually(holds: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait until ``holds``."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)
