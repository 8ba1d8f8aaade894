"""A message, and what every way of sending it offers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """An event on its way to one target. ``message_id`` is the same however often it is sent.

    ``data`` is what programs read. ``address``, ``subject`` and ``text`` are for people, and empty for webhooks.
    """

    message_id: str
    event: str
    occurred_at: datetime
    user_id: str
    data: dict[str, object]
    address: str = ""
    subject: str = ""
    text: str = ""


class Channel(Protocol):
    """A way to one target. One thread at a time uses it, for the messages of one turn."""

    def send(self, message: Message) -> int | None:
        """Send one message; the status of the answer, if the way has such a thing.

        Raises ``TryAgain``, ``Unreachable``, ``Refused`` or ``Gone``.
        """

    def close(self) -> None:
        """End what connections there are."""
