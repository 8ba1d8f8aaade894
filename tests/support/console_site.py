"""The console on a port of its own, in this process, on the test's stores: the test plays the worker beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from werkzeug.serving import WSGIRequestHandler, make_server

from tests.support.http_shop import Shop


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:
        """Requests are in the application's own log."""


@contextmanager
def served(shop: Shop) -> Iterator[str]:
    """Serve ``shop`` until the end of the block; its address."""
    server = make_server("127.0.0.1", 0, shop.app, threaded=True, request_handler=_Quiet)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
