"""A replica of a Redis whose link can be held, and which takes its master's place when that is gone (FAULTS 6)."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis

from coupon_workers.embedded.valkey import EmbeddedValkey
from tests.support.fault_wait import until

_CHUNK = 65_536


class ReplicaLink:
    """A port of 127.0.0.1 that leads to the Redis at ``path``; what that says is kept back while the link is held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._flows = threading.Event()
        self._flows.set()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)
        self.port: int = self._listener.getsockname()[1]

    def hold(self) -> None:
        """Pass on nothing more of what the master says."""
        self._flows.clear()

    def close(self) -> None:
        """End the link; what was kept back is lost."""
        self._closed = True
        self._flows.set()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                replica, _ = self._listener.accept()
                master = socket.socket(socket.AF_UNIX)
                self._sockets += [replica, master]
                master.connect(str(self._path))
                self._begin(self._pass_on, replica, master)
                self._begin(self._pass_on, master, replica)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if sink.family is not socket.AF_UNIX:
                    self._flows.wait()
                if self._closed:
                    return
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _begin(self, work: Any, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


class Replica:
    """A Valkey with an append-only file that follows the one at ``path``."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._server = EmbeddedValkey("replica", folder, durable=False)
        self._link = ReplicaLink(path)

    @property
    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self._server.url)

    def start(self) -> None:
        """Start it; returns when it has everything the master has."""
        with redis.Redis(unix_socket_path=str(self._path)) as master:
            master.config_set("repl-diskless-sync-delay", 0)  # five seconds otherwise, for more replicas to come
        self._server.start()
        self._client.replicaof("127.0.0.1", self._link.port)
        until(lambda: self._info("replication")["master_link_status"] == "up", what="the first copy")
        until(lambda: not self._info("persistence")["aof_rewrite_in_progress"], what="its own file")

    def fall_behind(self) -> None:
        """Hear nothing of what the master does from now on."""
        self._link.hold()

    @contextmanager
    def in_the_masters_place(self) -> Iterator[None]:
        """Who asks at the master's address gets the replica; the master must be gone. It still refuses to write."""
        self._link.close()
        self._path.unlink(missing_ok=True)
        self._path.symlink_to(self._server.socket_path)
        yield
        self._path.unlink()

    def promote(self) -> None:
        """It is the master now."""
        self._client.replicaof("NO", "ONE")

    def hand_back(self, folder: Path) -> None:
        """End it, and give the server that will start in ``folder`` everything it has."""
        self.stop()
        shutil.rmtree(folder / "appendonlydir")
        shutil.copytree(self._server.data_dir / "appendonlydir", folder / "appendonlydir")

    def stop(self) -> None:
        """End it and its link."""
        self._link.close()
        self._server.stop()

    def _info(self, section: str) -> Any:
        return self._client.info(section)


@contextmanager
def replica_of(path: Path, folder: Path) -> Iterator[Replica]:
    """A replica, in ``folder``, of the Redis at ``path``; whole when the block begins."""
    replica = Replica(path, folder)
    try:
        replica.start()
        yield replica
    finally:
        replica.stop()
