"""Short messages. Gateways differ: this is the place for a shop's own, and an example of one.

A shop writes a class with ``send_sms`` and names it in ``COUPON_SMS_GATEWAY`` as ``module:factory``; the factory is
called without arguments, once a turn.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from coupon_workers.notify.channel import Message
from coupon_workers.runtime.structured_log import get_logger

log = get_logger(__name__)


class SmsGateway(Protocol):
    """Whoever takes short messages to a network."""

    def send_sms(self, message_id: str, number: str, text: str) -> None:
        """Send ``text`` to ``number`` (E.164: ``+8613800138000``); a ``message_id`` seen before is not sent again.

        Raises ``TryAgain``, ``Unreachable`` or ``Refused`` (notify/failure.py).
        """


class LoggedSms:
    """The example: it takes every message and writes a line, without the number, and sends nothing."""

    def send_sms(self, message_id: str, number: str, text: str) -> None:
        """Write a line."""
        log.info("short message", message_id=message_id, number_ends=number[-2:], text=text)


class SmsChannel:
    """Messages to users by a gateway."""

    def __init__(self, gateway: SmsGateway) -> None:
        self._gateway = gateway

    def send(self, message: Message) -> None:
        """Hand the text over; a short message has no subject."""
        self._gateway.send_sms(message.message_id, message.address, message.text)

    def close(self) -> None:
        """A gateway keeps its own connections."""


def load_gateway(path: str) -> SmsGateway:
    """The gateway of ``module:factory``. Raises ``ImportError`` or ``AttributeError`` when there is none."""
    module, _, factory = path.partition(":")
    return cast(SmsGateway, getattr(import_module(module), factory)())
