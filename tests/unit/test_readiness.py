"""Whoever waits for the front is told what it answers, whatever that is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from coupon_workers.embedded.readiness import wait_until_ready
from coupon_workers.errors import EmbeddedServerError


@pytest.fixture
def babbler() -> Iterator[str]:
    """The address of somebody who speaks no HTTP."""

    def babble() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1_000)
                connection.sendall(b"HTTP/1.1 2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=babble)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_an_answer_that_is_no_http_is_not_ready(babbler: str) -> None:
    """As when a front is killed in the middle of a line."""
    with pytest.raises(EmbeddedServerError, match="was not ready within"):
        wait_until_ready(babbler, 0.2, lambda: None)
