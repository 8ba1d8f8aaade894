"""A real installation: ``coupon-workers up`` in a process of its own, reached by HTTP and by commands, as users do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import redis

from coupon_workers.embedded.servers import REDIS_URL
from tests.support.http_caller import Caller, NetTransport
from tests.support.http_desk import Desk
from tests.support.mortal import mortal

COMMAND = (sys.executable, "-m", "coupon_workers.cli.main")
COMMAND_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
READERS = 4


class System:
    """What runs in ``folder``: data in ``data``, the logs of all processes in ``logs``."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self._logs = folder / "logs"
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self._transport = NetTransport(self.base_url)

    @property
    def base_url(self) -> str:
        """Where the front listens, the same after each start."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start everything, and return when the one line says that it is ready."""
        environ = self._environment(
            COUPON_HTTP_PORT=str(self._port), COUPON_CLAIM_RATE="0", COUPON_WEBHOOK_PRIVATE="true"
        )
        command = mortal(*COMMAND, "up", "--log-dir", str(self._logs))
        self._process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert f"ready {self.base_url}\n" == self._process.stdout.readline()
        self._transport.hang_up()

    def tell_to_stop(self) -> None:
        """SIGTERM."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait_for_end(self) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None
        return self._process.wait(STOP_TIMEOUT_S)

    def close(self) -> None:
        """Stop it in order, by force if it does not."""
        if self._process is not None:
            self.tell_to_stop()
            try:
                self.wait_for_end()
            finally:
                self._process.kill()
                self._process.communicate()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``coupon-workers`` with these words, from another shell."""
        return subprocess.run(
            [*COMMAND, *words],
            env=self._environment(),
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
        return Caller(self._transport, made.stdout.strip())

    @cached_property
    def desk(self) -> Desk:
        """The operator's work."""
        return Desk(self.admin)

    @cached_property
    def front(self) -> Caller:
        """A storefront; its key was made over HTTP."""
        made = self.admin.ask("POST", "/v1/api-keys", {"name": "tests", "scopes": ["storefront"]}).ok(201)
        return Caller(self._transport, made["key"])

    @property
    def redis(self) -> redis.Redis:
        """The stock's Redis, for looking and for emptying."""
        return redis.Redis.from_url(self._running()["settings"][REDIS_URL])

    def pid(self, server: str) -> int:
        """The process of a server: postgres, redis or broker."""
        return int(self._running()["pids"][server])

    def ends(self, claim_ids: Iterable[str]) -> list[Any]:
        """The last word on each claim, waited for; the seconds that a front lets one wait are enough for all."""
        with ThreadPoolExecutor(READERS) as threads:
            return list(threads.map(lambda claim_id: self.front.read_claim(claim_id, 10).ok(), claim_ids))

    def assert_sound(self) -> None:
        """``coupon-workers check`` finds nothing."""
        checked = self.command("check")
        assert 0 == checked.returncode, checked.stdout + checked.stderr

    def _running(self) -> Any:
        return json.loads((self.data_dir / "servers.json").read_text())

    def _environment(self, **changed: str) -> dict[str, str]:
        """Ours, without the servers of whoever runs the tests."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("COUPON_")}
        return {**ours, "COUPON_DATA_DIR": str(self.data_dir), **changed}


def free_port() -> int:
    """One nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def eventually(holds: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait until ``holds``."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)
