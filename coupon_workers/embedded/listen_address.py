"""The address the front is to listen on: whether it is free, and how it is called."""

from __future__ import annotations

import socket
from contextlib import closing

from coupon_workers.errors import EmbeddedServerError

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def base_url(host: str, port: int) -> str:
    """``http://HOST:PORT`` for a client on this machine."""
    called = _EVERY_ADDRESS.get(host, host)
    return f"http://[{called}]:{port}" if ":" in called else f"http://{called}:{port}"


def free_port(host: str, port: int) -> int:
    """``port`` when nobody listens there, or any free one for 0.

    Asked before anything starts, because the web server shares its port with whoever has it: two installations would
    each get half of the requests.

    Raises ``EmbeddedServerError`` naming the setting.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with closing(socket.socket(family, kind)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ended connections do not count
            probe.bind(address)
            probe.listen(1)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise EmbeddedServerError(
            f"cannot listen on {host} port {port} ({error.strerror or error}): "
            "set COUPON_HTTP_PORT (or COUPON_HTTP_HOST) to a free one"
        ) from None
