"""A whole installation on this machine: servers, migration, front, workers, scheduler."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from coupon_workers.embedded.child import ChildProcess
from coupon_workers.embedded.folder_lock import refuse_held
from coupon_workers.embedded.kept_pepper import CODE_PEPPER, kept_pepper
from coupon_workers.embedded.listen_address import base_url, free_port
from coupon_workers.embedded.output import Output, PrefixedOutput
from coupon_workers.embedded.procfile import RELEASE, Procfile, find_procfile
from coupon_workers.embedded.readiness import wait_until_ready
from coupon_workers.embedded.servers import BROKER_URL, DATABASE_URL, REDIS_URL, EmbeddedServers
from coupon_workers.embedded.startable import Startable
from coupon_workers.embedded.supervisor import Supervisor
from coupon_workers.errors import EmbeddedServerError

HTTP_HOST = "COUPON_HTTP_HOST"
HTTP_PORT = "COUPON_HTTP_PORT"
_RELEASE_GRACE_S = 5.0
READY_TIMEOUT_S = 120.0


class RunningSystem(Startable):
    """Everything ``coupon-workers up`` runs, as an object. Use it in a ``with`` block, or call ``start`` and ``stop``.

    ``overrides`` go over the environment of this process; an empty address there means an embedded server. ``port`` 0
    takes a free one. ``procfile`` defaults to the project's. ``output`` defaults to our standard error.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        overrides: Mapping[str, str] | None = None,
        procfile: Procfile | None = None,
        output: Output | None = None,
        durable: bool = True,
    ) -> None:
        self._host = host
        self._port = port
        self._settings = {**os.environ, **(overrides or {})}
        self._procfile = procfile or find_procfile()
        self._output = output or PrefixedOutput(sys.stderr)
        given = {name: self._settings.get(name, "") for name in (DATABASE_URL, REDIS_URL, BROKER_URL)}
        self.servers = EmbeddedServers(data_dir, durable=durable, given=given)
        self.base_url = ""
        self.env: dict[str, str] = {}
        self.supervisor: Supervisor | None = None

    def start(self, ready_timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start all of it, in order, and return when the front says it is ready. Then ``base_url`` and ``env`` are set.

        Raises ``EmbeddedServerError`` when the folder or the port is taken (nothing has been started then), a server
        does not start, the migration fails, or a process does not come up; what had been started is stopped.
        """
        refuse_held(self.servers.data_dir)  # first: who has the folder mostly has the port too
        port = free_port(self._host, self._port)
        try:
            self.servers.start()
            self.base_url = base_url(self._host, port)
            self.env = self._environment(port)
            self._release()
            self._keep(ready_timeout_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the processes in order, then the servers. Does nothing when nothing runs."""
        try:
            if self.supervisor is not None:
                self.supervisor.stop()
        finally:
            self.supervisor = None
            self.servers.stop()

    def _release(self) -> None:
        if self._procfile.release is None:
            return
        child = ChildProcess(RELEASE, self._procfile.release, self.env, self._procfile.folder, self._output)
        child.start()
        try:
            code = child.wait()
        finally:
            child.stop(_RELEASE_GRACE_S)
        if code != 0:
            reason = signal.Signals(-code).name if code < 0 else f"code {code}"
            raise EmbeddedServerError(f"`{' '.join(self._procfile.release)}` ended with {reason}; its output says why")

    def _keep(self, ready_timeout_s: float) -> None:
        self.supervisor = Supervisor(
            self._procfile, self.env, self._output, services=self.servers.servers, restarted=self.servers.record
        )
        self.supervisor.start()
        wait_until_ready(self.base_url, ready_timeout_s, self.supervisor.check_alive)
        told = (HTTP_HOST, HTTP_PORT, CODE_PEPPER)
        self.servers.announce({name: self.env[name] for name in told if self.env.get(name)})

    def _pepper(self) -> dict[str, str]:
        """A pepper of our own for a database of our own; a given one may have fronts elsewhere, with theirs."""
        if self._settings.get(CODE_PEPPER) or self._settings.get(DATABASE_URL):
            return {}
        return {CODE_PEPPER: kept_pepper(self.servers.data_dir)}

    def _environment(self, port: int) -> dict[str, str]:
        programs = os.pathsep.join([str(Path(sys.executable).parent), sysconfig.get_path("scripts")])
        return {
            **self._settings,
            **self.servers.urls(),
            **self._pepper(),
            HTTP_HOST: self._host,
            HTTP_PORT: str(port),
            "COUPON_DATA_DIR": str(self.servers.data_dir),
            "PATH": f"{programs}{os.pathsep}{self._settings.get('PATH', os.defpath)}",  # the venv need not be active
            "PYTHONUNBUFFERED": "1",  # a line of a log is seen when it is written
        }
