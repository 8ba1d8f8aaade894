"""Messages to users as lines of the log: for development, and for shops that read them from there."""

from __future__ import annotations

from coupon_workers.notify.channel import Message
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)


class LogChannel:
    """Every message is taken. It needs no address."""

    def send(self, message: Message) -> None:
        """Write a line."""
        log.info(
            "message to a user",
            message_id=message.message_id,
            about=message.event,
            user_id=message.user_id,
            subject=message.subject,
            text=message.text,
        )

    def close(self) -> None:
        """Nothing is open."""
