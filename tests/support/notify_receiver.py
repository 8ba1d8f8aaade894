"""A webhook's endpoint: a real HTTP server that answers what it is told to, and keeps what it was sent."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

from freezegun import freeze_time
from standardwebhooks import Webhook as Verifier

WAIT_S = 30.0


@dataclass(frozen=True)
class Received:
    """One request. ``headers`` by their names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        """The id by which a receiver knows a message again."""
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    def verified(self, secret: str) -> Any:
        """The body, whose signature must be good at the time at which it says it was sent.

        Raises ``WebhookVerificationError``.
        """
        with freeze_time(datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)):
            return Verifier(secret).verify(self.body, self.headers)


class Receiver:
    """What came lies in ``received``, and in ``arrivals`` for whoever waits. ``answers`` come in turn, then 200."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.arrivals: SimpleQueue[Received] = SimpleQueue()
        self.answers: list[int] = []
        self.location = ""
        self.content = b"thanks"
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._scheme = "https" if tls else "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/hook"

    def next_arrival(self) -> Received:
        """What comes next. Raises ``queue.Empty`` when nothing does for long."""
        return self.arrivals.get(timeout=WAIT_S)

    @contextmanager
    def serving(self) -> Iterator[Receiver]:
        """It listens meanwhile."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.may_answer.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _handler(receiver) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                arrived = Received(self.path, headers, body)
                receiver.received.append(arrived)
                status = receiver.answers.pop(0) if receiver.answers else 200
                receiver.arrivals.put(arrived)
                receiver.may_answer.wait(WAIT_S)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", str(len(receiver.content)))
                self.end_headers()
                self.wfile.write(receiver.content)

            do_GET = do_POST  # noqa: N815 - the library looks for it

            def log_message(self, *_: object) -> None:
                return

        return Handler
