"""Messages to a webhook: signed JSON by POST (Standard Webhooks)."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from httpcore import ConnectionPool, NetworkError, ProtocolError, TimeoutException, UnsupportedProtocol
from standardwebhooks import Webhook as Signer

from coupon_workers.notify.channel import Message
from coupon_workers.notify.failure import Gone, TryAgain, Unreachable
from coupon_workers.notify.guarded_network import AddressRefused, Deadline, GuardedBackend
from coupon_workers.runtime.clock import Clock, rfc3339

SEND_S = 10.0
"""For one message, from the look-up of the name to the answer's first line: within a worker's shutdown."""

CONNECT_S = 3.0

MOST_ANSWER = 4_096
"""Bytes of an answer that are read: nobody looks at them, but a connection whose answer was read can be used again."""

BUSY = (408, 429)

GONE = 410


class WebhookChannel:
    """One webhook's endpoint. Redirects are not followed: where they lead was not agreed upon."""

    def __init__(self, url: str, secret: str, clock: Clock, *, allow_private: bool) -> None:
        self._url = url
        self._signer = Signer(secret)
        self._clock = clock
        self._deadline = Deadline(SEND_S)
        self._pool = ConnectionPool(
            ssl_context=_trust(),
            max_connections=1,
            network_backend=GuardedBackend(self._deadline, allow_private=allow_private),
        )

    def send(self, message: Message) -> int:
        """POST the message; the status of the answer, which is of the 200s.

        Raises ``Gone`` at 410, ``Unreachable`` when there is no answer or the endpoint is at fault or busy,
        ``TryAgain`` at any other answer.
        """
        body = json.dumps(
            {"type": message.event, "timestamp": rfc3339(message.occurred_at), "data": message.data},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        status = self._post(body, self._headers(message.message_id, body))
        if 200 <= status < 300:
            return status
        if status == GONE:
            raise Gone("the endpoint answered 410", status)
        if status >= 500 or status in BUSY:
            raise Unreachable(f"the endpoint answered {status}", status)
        raise TryAgain(f"the endpoint answered {status}", status)

    def close(self) -> None:
        """Hang up."""
        self._pool.close()

    def _headers(self, message_id: str, body: str) -> list[tuple[bytes | str, bytes | str]]:
        now = self._clock()
        return [
            ("Host", urlsplit(self._url).netloc),
            ("Content-Type", "application/json"),
            ("User-Agent", "coupon-workers"),
            ("webhook-id", message_id),
            ("webhook-timestamp", str(int(now.timestamp()))),
            ("webhook-signature", self._signer.sign(message_id, now, body)),
        ]

    def _post(self, body: str, headers: Sequence[tuple[bytes | str, bytes | str]]) -> int:
        self._deadline.start()
        timeouts = {"connect": CONNECT_S, "read": SEND_S, "write": SEND_S, "pool": SEND_S}
        try:
            with self._pool.stream(
                "POST", self._url, headers=headers, content=body.encode(), extensions={"timeout": timeouts}
            ) as answer:
                read = 0
                for piece in answer.iter_stream():
                    read += len(piece)
                    if read > MOST_ANSWER:
                        break
                return answer.status
        except AddressRefused as error:
            raise Unreachable(str(error)) from error
        except (NetworkError, TimeoutException, ProtocolError, UnsupportedProtocol) as error:
            raise Unreachable(f"{type(error).__name__}: {error}"[:500]) from error


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    """The authorities of this machine; ``SSL_CERT_FILE`` names others."""
    return ssl.create_default_context()
